//! The addresses in records that follow from the settings, or why there are none.

use super::outputs::NullReasons;
use crate::config::Config;
use crate::names::{Identifier, ResourceKey};
use crate::spec::Fleet;

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
    pub fn console(&self, fleet: &Identifier) -> Address {
        self.applied()?;
        let template = self.config.console_url_template.as_ref();
        let template = template.ok_or("the settings have no `console_url_template`")?;
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

    fn of_fleet(&self, what: &str) -> Address {
        let base = self.config.api.full_base_url();
        let base = base.ok_or("`api.base_url` of the settings is not a full URL")?;
        let ResourceKey { organization, name, .. } = self.resource;
        Ok(format!("{base}/organizations/{organization}/infrastructure/{name}/{what}"))
    }

    fn applied(&self) -> Result<(), String> {
        if self.is_applied { Ok(()) } else { Err("it was not applied yet".to_owned()) }
    }
}

/// Returns the value of a field, and notes why it is null.
pub fn noted(field: &'static str, address: Address, reasons: &mut NullReasons) -> Option<String> {
    let reason = |why| drop(reasons.insert(field, why));
    address.map_err(reason).ok()
}
