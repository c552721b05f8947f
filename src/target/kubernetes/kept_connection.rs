//! The connection to a cluster that the daemon keeps from round to round.

use std::sync::Arc;

use secrecy::ExposeSecret as _;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OnceCell};

use super::api::Api;
use super::facts::FactsCache;
use super::watch::ClusterWatch;
use super::{KubernetesCluster, KubernetesTarget, access};
use crate::spec::kubeconfig::{KubeAccess, KubeAuth};
use crate::target::dns::RecentFaults;

#[derive(Clone)]
pub(in crate::target) struct KeptConnection {
    cluster: Arc<KubernetesCluster>,
    api: Arc<Api>,
    view: Arc<ClusterWatch>,
    facts: Arc<FactsCache>,
    /// The DNS servers that didn't answer lately.
    silent: Arc<RecentFaults>,
}

impl KeptConnection {
    pub(in crate::target) fn forget_facts(&self) {
        self.facts.forget();
    }
}

impl KubernetesTarget {
    /// Reuses the connection of an earlier round if it leads to the same server as the same user, and
    /// connects otherwise. Returns the connection to keep. None when there is nothing to connect with; the
    /// next read reports that.
    pub(in crate::target) fn reuse_connection(
        &mut self,
        kept: Option<KeptConnection>,
        runtime: &Handle,
        wake: &Arc<Notify>,
    ) -> Option<KeptConnection> {
        let kept = match kept.filter(|kept| kept.cluster.leads_where(&self.cluster)) {
            Some(kept) => {
                kept.view.renew(Arc::clone(&self.cluster));
                KeptConnection { cluster: Arc::clone(&self.cluster), ..kept }
            }
            None => self.connect(runtime, wake)?,
        };
        self.look_over(&kept);
        Some(kept)
    }

    /// Uses another target's connection if it leads to the same server as the same user.
    pub(in crate::target) fn borrow(&mut self, kept: &KeptConnection) {
        if kept.cluster.leads_where(&self.cluster) {
            self.look_over(kept);
        }
    }

    fn look_over(&mut self, kept: &KeptConnection) {
        self.api = Arc::new(OnceCell::new_with(Some(Arc::clone(&kept.api))));
        self.view = Some(Arc::clone(&kept.view));
        self.facts = Arc::clone(&kept.facts);
        self.zones = self.zones.remembering(&kept.silent);
    }

    fn connect(&self, runtime: &Handle, wake: &Arc<Notify>) -> Option<KeptConnection> {
        // The client spawns tasks.
        let _inside = runtime.enter();
        let KubernetesCluster { access, allowed, .. } = &*self.cluster;
        let client = access::client(access.as_ref().ok()?, allowed).ok()?;
        let (api, cluster) = (Arc::new(Api::remembering(client)), Arc::clone(&self.cluster));
        let whose = (self.fleet.clone(), self.installation);
        let view = ClusterWatch::start(
            whose,
            Arc::clone(&cluster),
            Arc::clone(&api),
            runtime.clone(),
            Arc::clone(wake),
        );
        Some(KeptConnection {
            cluster,
            api,
            view: Arc::new(view),
            facts: Arc::default(),
            silent: Arc::default(),
        })
    }
}

impl KubernetesCluster {
    fn leads_where(&self, other: &KubernetesCluster) -> bool {
        match (&self.access, &other.access) {
            (Ok(a), Ok(b)) => same_access(a, b) && self.allowed == other.allowed,
            _ => false,
        }
    }
}

fn same_access(a: &KubeAccess, b: &KubeAccess) -> bool {
    let KubeAccess { server, host: _, tls_server_name, certificate_authority, auth, namespace: _ } = a;
    let same_auth = match (auth, &b.auth) {
        (KubeAuth::Token(a), KubeAuth::Token(b)) => a.expose_secret() == b.expose_secret(),
        (
            KubeAuth::ClientCertificate { certificate: a, key: a_key },
            KubeAuth::ClientCertificate { certificate: b, key: b_key },
        ) => a == b && a_key.expose_secret() == b_key.expose_secret(),
        (KubeAuth::TokenFile(a), KubeAuth::TokenFile(b)) => a == b,
        _ => false,
    };
    same_auth
        && *server == b.server
        && *tls_server_name == b.tls_server_name
        && *certificate_authority == b.certificate_authority
}
