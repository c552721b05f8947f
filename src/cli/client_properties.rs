//! `streamfleet client-properties`: what a Kafka client needs to reach a cluster, as a file that it reads.

use clap::Args;

use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::round::{self, Access};
use crate::cli::settings::{Settings, TreeArgs};
use crate::interface;

/// Print the properties file by which a Kafka client reaches a cluster. No secret is in it: its comments say which one to
/// add, and from where.
#[derive(Debug, Args)]
pub struct ClientProperties {
    /// The cluster: `acme/orders`, or `orders` where only one organization has it.
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// The way in: `external` from outside of Kubernetes, `tls` from inside, `admin` for the administrator. By default the
    /// first of them that the cluster has.
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
}

/// The order in which listeners are looked for where none is named.
const USUAL: [&str; 3] = ["external", "tls", "admin"];

/// Runs the verb.
pub fn run(verb: &ClientProperties, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let look = round::look(settings, Access::ReadOnly, round::time(None), console)?;
    let key = look.find_cluster(&verb.cluster)?;
    let Some((cluster, known)) = look.round.applied_cluster(&key) else {
        return Err(Failure::new(format!("nothing is known of cluster {}: it was not applied", key.path()))
            .hint(format!("apply it first: streamfleet apply {}", look.settings.arguments)));
    };
    let all = interface::client_properties(cluster, known);
    let find = |name: &str| all.iter().find(|properties| properties.listener == name);
    let found = match &verb.listener {
        Some(name) => find(name),
        None => USUAL.into_iter().find_map(find),
    };
    let Some(properties) = found else {
        let names: Vec<&str> = all.iter().map(|properties| properties.listener).collect();
        let named = verb.listener.as_deref().unwrap_or_default();
        return Err(Failure::usage(format!("cluster {} has no listener `{named}`", key.path()))
            .hint(format!("it has {}", names.join(", "))));
    };
    console.print(&properties.to_java())?;
    Ok(exit::OK)
}
