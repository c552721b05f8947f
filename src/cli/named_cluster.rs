//! Asks a daemon about a cluster that the user named: `acme/orders`, `orders` or `cluster/acme/orders`.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use crate::cli::console::Console;
use crate::cli::daemon_client::{DaemonRequest, RunningDaemon};
use crate::cli::failure::Failure;
use crate::http::problem::code;
use crate::http::query::encoded;
use crate::names::{Kind, ResourceKey};
use crate::views::status::StatusList;
use crate::views::{find_cluster, split_cluster};

/// `what` is the last segment of the route.
///
/// # Errors
/// When there is no such cluster, or several; the error lists those that there are.
pub fn ask<T: DeserializeOwned>(
    daemon: &mut RunningDaemon,
    named: &str,
    what: &str,
    console: &mut Console,
) -> Result<T, Failure> {
    let (organization, name) = split_cluster(named);
    let request = DaemonRequest::get(format!("/v1/clusters/{}/{what}", encoded(name)));
    let error = match daemon.ask(request.with("organization", organization), console) {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    if error.is(&code::NOT_FOUND) || error.is(&code::MALFORMED) {
        let list: StatusList = daemon.ask(DaemonRequest::get("/v1/status"), console)?;
        let keys = list.items.iter().map(|line| &line.resource);
        let known: BTreeSet<&ResourceKey> = keys.filter(|key| key.kind == Kind::Cluster).collect();
        find_cluster(&known, named)?;
    }
    Err(error.into())
}
