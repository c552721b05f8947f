//! Rules of fleets.

use super::Rules;
use crate::spec::{Exposure, Fleet, InfraType};

impl Rules<'_> {
    pub(super) fn fleet(&mut self, fleet: &Fleet) {
        let config = &fleet.advanced_config;
        match (fleet.infra_type, &config.kubeconfig) {
            (InfraType::Byok, None) => self.refuse(
                "/advanced_config",
                "missing-key",
                "a `byok` fleet needs `advanced_config.kubeconfig`",
                "add the kubeconfig of its Kubernetes cluster, or use `infra_type: directory`",
            ),
            (InfraType::Directory, Some(_)) => self.refuse(
                "/advanced_config/kubeconfig",
                "no-effect",
                "a `directory` fleet takes no kubeconfig",
                "remove `kubeconfig`, or use `infra_type: byok`",
            ),
            _ => {}
        }
        if fleet.infra_type == InfraType::Byok && config.path.is_some() {
            self.refuse(
                "/advanced_config/path",
                "no-effect",
                "a `byok` fleet takes no `path`",
                "remove `path`, or use `infra_type: directory`",
            );
        }
        if config.exposure == Exposure::TlsRoute {
            self.refuse(
                "/advanced_config/exposure",
                "not-supported",
                "`exposure: tlsroute` is not supported yet",
                "use `exposure: loadbalancer`",
            );
        }
        if config.components.strimzi.as_deref().is_some_and(|version| version != "existing") {
            self.refuse(
                "/advanced_config/components/strimzi",
                "not-supported",
                "installing the Strimzi operator is not supported yet",
                "install the operator yourself and write `strimzi: existing`",
            );
        }
    }
}
