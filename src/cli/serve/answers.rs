//! The address on which a running process answers over HTTP.

use std::sync::Arc;

use tokio::runtime::Runtime;

use super::wake::Stop;
use crate::api::Api;
use crate::cli::failure::Failure;
use crate::config::ApiConfig;
use crate::vitals::Vitals;

/// Listens where the settings say so, and answers beside everything else until it is time to stop.
pub(super) fn begin(
    config: &ApiConfig,
    vitals: &Arc<Vitals>,
    stop: &Stop,
    runtime: &Runtime,
) -> Result<(), Failure> {
    let Some(address) = config.listen else { return Ok(()) };
    let refused = |error: &std::io::Error| {
        Failure::during(format!("could not listen on {address}"), error)
            .hint("name another address by `api.listen` in the config file, or end what listens there")
    };
    let api = runtime.block_on(Api::bind(address)).map_err(|error| refused(&error))?;
    let address = api.address().map_err(|error| refused(&error))?;
    tracing::info!(%address, "answers over HTTP");
    runtime.spawn(api.answer(Arc::clone(vitals), stop.clone_asked()));
    Ok(())
}
