//! Asks a daemon about a cluster that the user named: `acme/orders`, `orders` or `cluster/acme/orders`.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use crate::cli::console::Console;
use crate::cli::daemon_client::{DaemonError, DaemonRequest, RunningDaemon};
use crate::cli::failure::Failure;
use crate::http::problem::code;
use crate::http::query::encoded;
use crate::names::{Kind, ResourceKey};
use crate::views::status::StatusList;
use crate::views::{find_cluster, split_cluster};

/// Sends a request for a route of the cluster.
///
/// # Errors
/// When there is no such cluster, or several; the error lists those that there are.
pub fn ask<T: DeserializeOwned>(
    daemon: &mut RunningDaemon,
    named: &str,
    request: DaemonRequest,
    console: &mut Console,
) -> Result<T, Failure> {
    match daemon.ask(request, console) {
        Ok(answer) => Ok(answer),
        Err(error) => Err(explained(daemon, named, error, console)?),
    }
}

/// The request for a route of the cluster. `what` is its last segment.
pub fn request(named: &str, what: &str) -> DaemonRequest {
    let (organization, name) = split_cluster(named);
    DaemonRequest::get(format!("/v1/clusters/{}/{what}", encoded(name))).with("organization", organization)
}

/// The error of such a request.
///
/// # Errors
/// When there is no such cluster, or several; the error lists those that there are.
pub fn explained(
    daemon: &mut RunningDaemon,
    named: &str,
    error: DaemonError,
    console: &mut Console,
) -> Result<Failure, Failure> {
    if error.is(&code::NOT_FOUND) || error.is(&code::MALFORMED) {
        let list: StatusList = daemon.ask(DaemonRequest::get("/v1/status"), console)?;
        let keys = list.items.iter().map(|line| &line.resource);
        let known: BTreeSet<&ResourceKey> = keys.filter(|key| key.kind == Kind::Cluster).collect();
        find_cluster(&known, named)?;
    }
    Ok(error.into())
}
