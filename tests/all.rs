//! Every integration test, in one binary, because linking is what costs.

mod architecture;
