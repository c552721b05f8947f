//! What the image, the composition file and the chart rely on.

mod chart;
mod image;
mod in_cluster;
mod ready;
mod refusals;
mod release;
mod systemd;
mod values;
mod volume;
