//! What the image, the composition file and the chart rely on.

mod ready;
mod volume;
