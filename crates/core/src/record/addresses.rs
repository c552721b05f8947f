//! The addresses in records that follow from the settings, or why there are none.

use uuid::Uuid;

use super::outputs::NullReasons;
use crate::config::Config;
use crate::names::{Identifier, ResourceKey};
use crate::spec::{Cluster, Fleet};

/// An address, or why there is none: a sentence without a full stop.
type Address = Result<String, String>;

/// The inputs of the addresses of a resource.
#[derive(Debug, Clone, Copy)]
pub struct AddressInputs<'a> {
    pub config: &'a Config,
    pub resource: &'a ResourceKey,
    /// Whether it was applied. Until then it has no address.
    pub is_applied: bool,
}

impl AddressInputs<'_> {
    /// `own` is the address of the cluster's own.
    pub fn console(&self, fleet: &Identifier, own: Option<String>) -> Address {
        self.applied()?;
        if let Some(url) = own {
            return Ok(url);
        }
        let template = self.config.console_url_template.as_ref();
        let template = template.ok_or(
            "the cluster's `advanced_config.operations.console` is not on, and the settings have no \
             `console_url_template`",
        )?;
        Ok(template.url(self.resource, fleet))
    }

    pub fn cost(&self) -> Address {
        self.applied()?;
        self.config.prices.table().ok_or("the settings have no `[prices]`")?;
        self.of_fleet("cost")
    }

    pub fn logs(&self, fleet: &Fleet) -> Address {
        self.applied()?;
        if !fleet.infra_type.capabilities().observes {
            return Err("the fleet is a folder, and nothing runs there".to_owned());
        }
        self.of_fleet("logs")
    }

    /// `prometheus` is the host name of the fleet's own.
    pub fn metrics(&self, fleet: &Fleet, prometheus: Option<String>) -> Address {
        self.applied()?;
        if let Some(host) = prometheus {
            return Ok(format!("https://{host}"));
        }
        federates(fleet)?;
        self.of_fleet("metrics")
    }

    /// `id` is the cluster's: several organizations may have one of its name. `fleet` is `None` while it isn't known.
    pub fn cluster_metrics(&self, cluster: &Cluster, fleet: Option<&Fleet>, id: Uuid) -> Address {
        self.applied()?;
        federates(fleet.ok_or("its fleet isn't known")?)?;
        if !cluster.advanced_config.operations.metrics {
            return Err("the cluster's `advanced_config.operations.metrics` is not on".to_owned());
        }
        Ok(format!("{}/v1/clusters/{id}/metrics", self.base_url()?))
    }

    fn of_fleet(&self, what: &str) -> Address {
        let base = self.base_url()?;
        let ResourceKey { organization, name, .. } = self.resource;
        Ok(format!("{base}/organizations/{organization}/infrastructure/{name}/{what}"))
    }

    fn base_url(&self) -> Result<&str, String> {
        let base = self.config.api.full_base_url();
        Ok(base.ok_or("`api.base_url` of the settings is not a full URL")?)
    }

    fn applied(&self) -> Result<(), String> {
        if self.is_applied { Ok(()) } else { Err("it was not applied yet".to_owned()) }
    }
}

fn federates(fleet: &Fleet) -> Result<(), String> {
    match fleet.advanced_config.federates() {
        true => Ok(()),
        false => Err("the fleet's `advanced_config.monitoring.federate` is not on".to_owned()),
    }
}

/// Returns the value of a field, and notes why it is null.
pub fn noted(field: &'static str, address: Address, reasons: &mut NullReasons) -> Option<String> {
    let reason = |why| drop(reasons.insert(field, why));
    address.map_err(reason).ok()
}
