//! `streamfleet client-properties`: prints what a Kafka client needs to reach a cluster.

use clap::Args;

use crate::cli::console::Console;
use crate::cli::daemon_client::{DaemonRequest, RunningDaemon};
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::views::clients::{self, ClusterListeners};

/// Print a client.properties file for a cluster. Secrets are left out: comments in the file say which to add
/// and where to find them.
#[derive(Debug, Args)]
pub struct ClientProperties {
    /// The cluster: `acme/orders`, or `orders` if only one organization has a cluster of that name.
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// The listener: `external` from outside of Kubernetes, `tls` from inside, `admin` for the administrator.
    /// By default the first of these that the cluster has.
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
}

/// The order of preference when no listener is named.
const USUAL: [&str; 3] = ["external", "tls", "admin"];

pub fn run(verb: &ClientProperties, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let arguments = settings.arguments.clone();
    let ClusterListeners { cluster, ways } = match RunningDaemon::of(&settings)? {
        Some(daemon) => daemon.ask(DaemonRequest::get("/clients", &[("cluster", &verb.cluster)]), console)?,
        None => {
            let look = round::plan_tree(settings, StateAccess::ReadOnly, round::time(None), console)?;
            clients::ways(&look.round, &verb.cluster)?
        }
    };
    let Some(ways) = ways else {
        return Err(Failure::new(format!("cluster {cluster} is unknown: it was not applied"))
            .hint(format!("apply it first: streamfleet apply {arguments}")));
    };
    let find = |name: &str| ways.iter().find(|way| way.listener == name);
    let found = match &verb.listener {
        Some(name) => find(name),
        None => USUAL.into_iter().find_map(find),
    };
    let Some(way) = found else {
        let names: Vec<&str> = ways.iter().map(|way| way.listener.as_str()).collect();
        let named = verb.listener.as_deref().unwrap_or_default();
        return Err(Failure::usage(format!("cluster {cluster} has no listener `{named}`"))
            .hint(format!("it has {}", names.join(", "))));
    };
    console.print(&way.properties)?;
    Ok(exit::OK)
}
