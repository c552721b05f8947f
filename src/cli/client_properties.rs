//! `streamfleet client-properties`: prints what a Kafka client needs to reach a cluster.

use clap::Args;

use crate::cli::console::Console;
use crate::cli::daemon_client::RunningDaemon;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::named_cluster;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::views::clients::{self, ClusterListeners};
use crate::views::find_cluster;
use crate::views::pods::NotRead;

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
    /// The user of the cluster that logs in, by its identifier in the specs.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Print the properties of clients of the cluster's schema registry instead.
    #[arg(long, conflicts_with_all = ["listener", "user"])]
    registry: bool,
}

/// The order of preference when no listener is named.
const USUAL: [&str; 3] = ["external", "tls", "admin"];

pub fn run(verb: &ClientProperties, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let arguments = settings.arguments.clone();
    let ClusterListeners { cluster, listeners, schema_registry } = match RunningDaemon::of(&settings)? {
        Some(mut daemon) => {
            let request =
                named_cluster::request(&verb.cluster, "client-properties").with("user", verb.user.as_ref());
            named_cluster::ask(&mut daemon, &verb.cluster, request, console)?
        }
        None => {
            let look = round::plan_tree(settings, StateAccess::ReadOnly, round::time(None), console)?;
            let cluster = find_cluster(&look.round.clusters(), &verb.cluster)?;
            clients::listeners(&look.round, &cluster, verb.user.as_deref())
                .map_err(|NotRead { message, hint, .. }| Failure::new(message).hint(hint))?
        }
    };
    let Some(listeners) = listeners else {
        return Err(Failure::new(format!("cluster {cluster} is unknown: it was not applied"))
            .hint(format!("apply it first: streamfleet apply {arguments}")));
    };
    if verb.registry {
        let Some(properties) = schema_registry else {
            return Err(Failure::new(format!("cluster {cluster} has no schema registry")).hint(
                "describe one in its spec: streamfleet explain cluster.advanced_config.schema_registry",
            ));
        };
        console.print(&properties)?;
        return Ok(exit::OK);
    }
    let find = |name: &str| listeners.iter().find(|it| it.listener == name);
    let found = match &verb.listener {
        Some(name) => find(name),
        None => USUAL.into_iter().find_map(find),
    };
    let Some(found) = found else {
        let names: Vec<&str> = listeners.iter().map(|it| it.listener.as_str()).collect();
        let named = verb.listener.as_deref().unwrap_or_default();
        let whose = verb.user.as_ref().map(|user| format!(" for user {user}")).unwrap_or_default();
        return Err(Failure::usage(format!("cluster {cluster} has no listener `{named}`{whose}"))
            .hint(format!("it has {}", names.join(", "))));
    };
    console.print(&found.properties)?;
    Ok(exit::OK)
}
