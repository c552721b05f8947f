use super::Rules;
use crate::spec::{Exposure, Fleet, InfraType};

impl Rules<'_> {
    pub(super) fn fleet(&mut self, fleet: &Fleet) {
        let config = &fleet.advanced_config;
        match fleet.infra_type {
            InfraType::Byok => {
                if config.kubeconfig.is_some() && config.in_cluster {
                    self.refuse(
                        "/advanced_config/in_cluster",
                        "no-effect",
                        "`in_cluster` takes the place of `kubeconfig`, and both are set",
                        "remove one of them",
                    );
                }
                if config.kubeconfig.is_none() && !config.in_cluster {
                    self.refuse(
                        "/advanced_config",
                        "missing-key",
                        "a `byok` fleet needs `advanced_config.kubeconfig`",
                        "add the kubeconfig of its Kubernetes cluster, or use `infra_type: directory`",
                    );
                }
                if config.path.is_some() {
                    self.refuse(
                        "/advanced_config/path",
                        "no-effect",
                        "a `byok` fleet can't have a `path`",
                        "remove `path`, or use `infra_type: directory`",
                    );
                }
            }
            InfraType::Directory if config.kubeconfig.is_some() => self.refuse(
                "/advanced_config/kubeconfig",
                "no-effect",
                "a `directory` fleet can't have a kubeconfig",
                "remove `kubeconfig`, or use `infra_type: byok`",
            ),
            InfraType::Directory if config.in_cluster => self.refuse(
                "/advanced_config/in_cluster",
                "no-effect",
                "a `directory` fleet can't have `in_cluster`",
                "remove `in_cluster`, or use `infra_type: byok`",
            ),
            InfraType::Directory if config.federates() => self.refuse(
                "/advanced_config/monitoring/federate",
                "no-effect",
                "a `directory` fleet can't have `monitoring.federate`: streamfleet can't reach the pods where its \
                 manifests are applied",
                "remove `federate`, and let a Prometheus there read the pods",
            ),
            InfraType::Directory => {}
        }
        self.gateway(fleet);
    }

    fn gateway(&mut self, fleet: &Fleet) {
        let config = &fleet.advanced_config;
        match (config.exposure, &config.gateway) {
            (Exposure::TlsRoute, None) => self.refuse(
                "/advanced_config/exposure",
                "missing-key",
                "`exposure: tlsroute` needs `advanced_config.gateway`",
                "add `gateway` with its `class`: `kubectl get gatewayclasses` lists the existing ones",
            ),
            (Exposure::LoadBalancer, Some(_)) => self.refuse(
                "/advanced_config/gateway",
                "no-effect",
                "`gateway` has no effect with `exposure: loadbalancer`",
                "remove `gateway`, or use `exposure: tlsroute`",
            ),
            _ => {}
        }
        if config.exposure == Exposure::TlsRoute && fleet.domain.is_none() {
            self.refuse(
                "/advanced_config/exposure",
                "missing-key",
                "`exposure: tlsroute` needs `domain`, which contains the addresses of the clusters",
                "add `domain` to the fleet, or use `exposure: loadbalancer`",
            );
        }
    }
}
