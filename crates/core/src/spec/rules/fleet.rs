use super::Rules;
use crate::problem::quote_untrusted;
use crate::spec::{Exposure, Fleet, InfraType, Monitoring, Prometheus};

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
        for (index, window) in config.maintenance.iter().flatten().enumerate() {
            if let Some((field, why, hint)) = window.fault() {
                self.refuse(
                    &format!("/advanced_config/maintenance/{index}/{field}"),
                    "invalid-value",
                    why,
                    hint,
                );
            }
        }
        if let Some(monitoring) = &config.monitoring {
            self.monitoring(fleet, monitoring);
        }
    }

    fn monitoring(&mut self, fleet: &Fleet, monitoring: &Monitoring) {
        const AT: &str = "/advanced_config/monitoring";
        let is_own = monitoring.prometheus == Prometheus::Own;
        if is_own && monitoring.own.is_none() {
            self.refuse(
                &format!("{AT}/prometheus"),
                "missing-key",
                "`prometheus: own` needs `monitoring.own`, with the password of its user",
                "add `own` with a `password`: `streamfleet secret encrypt` makes one that may be in the file",
            );
        }
        if is_own && fleet.domain.is_none() {
            self.refuse(
                &format!("{AT}/prometheus"),
                "missing-key",
                "`prometheus: own` needs `domain`, which contains its address",
                "add `domain` to the fleet",
            );
        }
        if !is_own && monitoring.own.is_some() {
            self.refuse(
                &format!("{AT}/own"),
                "no-effect",
                "`monitoring.own` has no effect without `prometheus: own`",
                "remove it, or set `prometheus: own` to have a Prometheus run on the fleet",
            );
        }
        if fleet.advanced_config.exposure == Exposure::TlsRoute
            && monitoring.own.as_ref().is_some_and(|own| own.private)
        {
            self.refuse(
                &format!("{AT}/own/private"),
                "no-effect",
                "`own.private` has no effect behind a Gateway",
                "remove it; `gateway.private` says whether the Gateway is private",
            );
        }
        let (idle, when, instead): (&[&str], _, _) = match monitoring.prometheus {
            Prometheus::None => (
                &["labels", "namespace", "dashboards", "alerts"],
                "without a Prometheus",
                "add `prometheus: existing` if one is there, or ",
            ),
            Prometheus::Own => (&["labels", "namespace"], "with `prometheus: own`", ""),
            Prometheus::Existing => (&[], "", ""),
        };
        for field in idle {
            let place = format!("{AT}/{field}");
            if self.is_given(&place) {
                self.refuse(
                    &place,
                    "no-effect",
                    format!("`monitoring.{field}` has no effect {when}"),
                    format!("{instead}remove `{field}`"),
                );
            }
        }
        for (label, value) in &monitoring.labels {
            let place = format!("{AT}/labels/{}", label.replace('~', "~0").replace('/', "~1"));
            let (name, text) = (quote_untrusted(label), quote_untrusted(value));
            if is_ours(label) {
                self.refuse(
                    &place,
                    "invalid-value",
                    format!("the label `{name}` can't be set: streamfleet or Strimzi sets it"),
                    "remove it",
                );
            } else if !is_label_key(label) {
                self.refuse(
                    &place,
                    "invalid-value",
                    format!("`{name}` is not the name of a label in Kubernetes"),
                    "write letters, digits, `-`, `_` and `.`, at most 63, such as `release`, if need be after a domain \
                     and `/`",
                );
            } else if !value.is_empty() && !is_label_name(value) {
                self.refuse(
                    &place,
                    "invalid-value",
                    format!("`{text}` is not the value of a label in Kubernetes"),
                    "write at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
                );
            }
        }
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

/// Whether a label identifies objects for streamfleet, or for the operator of its clusters.
fn is_ours(label: &str) -> bool {
    let prefix = label.split_once('/').map_or("", |(prefix, _)| prefix);
    let is_of = |domain: &str| prefix == domain || prefix.ends_with(&format!(".{domain}"));
    is_of("streamfleet.io") || is_of("strimzi.io") || label == "app.kubernetes.io/managed-by"
}

/// `release` or `example.com/release`.
fn is_label_key(label: &str) -> bool {
    let is_part = |part: &str| {
        let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && part.bytes().all(is_inside) && !part.starts_with('-') && !part.ends_with('-')
    };
    match label.split_once('/') {
        Some((prefix, name)) => prefix.len() <= 253 && prefix.split('.').all(is_part) && is_label_name(name),
        None => is_label_name(label),
    }
}

fn is_label_name(name: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    bytes.len() <= 63 && is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(is_inside)
}
