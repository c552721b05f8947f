//! `streamfleet role`: prints the rights that a fleet's kubeconfig needs.

use clap::Args;

use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::component::{Extras, MONITORING_NAMESPACE};
use crate::plan::preflight;
use crate::render::yaml::to_yaml;

/// Print the rights that the user of a `byok` fleet's kubeconfig needs, and no more: two ClusterRoles, a
/// ClusterRoleBinding for a service account, and a ValidatingAdmissionPolicy that restricts it to namespaces
/// of streamfleet.
///
/// An administrator of the Kubernetes cluster applies it: streamfleet role | kubectl apply -f -
#[derive(Debug, Args)]
pub struct Role {
    /// The name of the ClusterRole, its binding and the policy.
    #[arg(long, default_value = "streamfleet", value_parser = name)]
    name: String,
    /// The service account whose token is in the kubeconfig.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "streamfleet-system/streamfleet", value_parser = account)]
    service_account: Account,
    /// Add the rights to install the Strimzi operator. An account with these can do whatever the operator
    /// can, which includes reading the Secrets of all namespaces: better let an administrator install the
    /// operator.
    #[arg(long)]
    operator: bool,
    /// Add the rights to create the Gateway of a fleet with `exposure: tlsroute`.
    #[arg(long)]
    gateway: bool,
    /// Add the rights for the objects of a fleet with `prometheus: existing`. The namespace is the fleet's
    /// `monitoring.namespace`, if it has one.
    #[arg(long, value_name = "NAMESPACE", num_args = 0..=1, require_equals = true, default_missing_value = MONITORING_NAMESPACE, value_parser = name)]
    monitoring: Option<String>,
    /// Add the rights for the schema registries and consoles of clusters: to run Deployments in the namespaces of clusters, with
    /// Services, TLSRoutes and disruption budgets. An account with these can run any image there.
    #[arg(long)]
    workloads: bool,
    /// Add the rights to run the Prometheus of a fleet with `prometheus: own` in the namespace `kafka-monitoring`, and a
    /// ClusterRole for that Prometheus, with which it finds pods and nodes and reads the metrics of the latter. An account with these can run any image
    /// in that namespace.
    #[arg(long)]
    prometheus: bool,
    /// Add the right to read the logs of pods in the namespaces of clusters, for `streamfleet logs`.
    #[arg(long)]
    logs: bool,
    /// Add the right to reach the ports of pods through the API server in the namespaces of clusters, for the
    /// metrics of fleets with `monitoring.federate: true`. It holds for every port of these pods, and only for
    /// reading.
    #[arg(long)]
    metrics: bool,
}

#[derive(Debug, Clone)]
struct Account {
    namespace: String,
    name: String,
}

/// Checks the form of a Kubernetes name, since it becomes part of CEL expressions.
fn name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    match (1..=253).contains(&text.len()) && text.bytes().all(fits) {
        true => Ok(text.to_owned()),
        false => Err("a name in Kubernetes consists of lower-case letters, digits, `-` and `.`".to_owned()),
    }
}

fn account(text: &str) -> Result<Account, String> {
    let (namespace, account) = text.split_once('/').ok_or("write it as NAMESPACE/NAME")?;
    Ok(Account { namespace: name(namespace)?, name: name(account)? })
}

pub fn run(verb: &Role, console: &mut Console) -> Result<u8, Failure> {
    let Account { namespace, name: account } = verb.service_account.clone();
    // The first topic should not need a new role.
    let extras = Extras {
        operator: verb.operator,
        gateway: verb.gateway,
        topics: true,
        monitoring: verb.monitoring.is_some(),
        workloads: verb.workloads,
        prometheus: verb.prometheus,
    };
    let Role { logs, metrics, .. } = *verb;
    let monitoring = verb.monitoring.clone().filter(|namespace| namespace != MONITORING_NAMESPACE);
    let name = verb.name.clone();
    let role = preflight::RoleManifests { name, namespace, account, extras, monitoring, logs, metrics };
    let objects: Vec<String> = role.objects().iter().map(to_yaml).collect();
    console.print(&objects.join("---\n"))?;
    Ok(exit::OK)
}
