//! `streamfleet role`: what the user of a fleet's kubeconfig has to be allowed.

use clap::Args;

use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::plan::preflight::{self, Extras};
use crate::render::yaml::to_yaml;

/// Print the ClusterRole that the user of a `byok` fleet's kubeconfig needs, and no more.
///
/// Bind it to a service account of its own: streamfleet role | kubectl apply -f -
#[derive(Debug, Args)]
pub struct Role {
    /// The name of the ClusterRole.
    #[arg(long, default_value = "streamfleet")]
    name: String,
    /// With what it takes to install the Strimzi operator: to give it its rights, the user may give any.
    #[arg(long)]
    operator: bool,
    /// With what it takes to make the Gateway of a fleet with `exposure: tlsroute`.
    #[arg(long)]
    gateway: bool,
}

/// Runs the verb.
pub fn run(verb: &Role, console: &mut Console) -> Result<u8, Failure> {
    let extras = Extras { operator: verb.operator, gateway: verb.gateway };
    console.print(&to_yaml(&preflight::role(&verb.name, extras)))?;
    Ok(exit::OK)
}
