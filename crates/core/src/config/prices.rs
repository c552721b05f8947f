//! Prices, from which the costs of clusters follow.

mod amount;
mod currency;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use amount::{Amount, Price};
pub use currency::Currency;

/// The prices of a cluster's resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PricesConfig {
    /// The currency of all prices, by its code in ISO 4217.
    pub currency: Option<Currency>,
    /// The price of a processor that pods request, for an hour.
    pub cpu_hour: Option<Price>,
    /// The price of a GiB of memory that pods request, for an hour.
    pub memory_gib_hour: Option<Price>,
    /// The price of a GiB of disk for a month, which has 730 hours.
    pub disk_gib_month: Option<Price>,
    /// The price of a load balancer for an hour. A cluster that is exposed through load balancers has one for its
    /// bootstrap address and one for each broker.
    pub loadbalancer_hour: Option<Price>,
}

/// Prices with their currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceTable {
    pub currency: Currency,
    pub cpu_hour: Amount,
    pub memory_gib_hour: Amount,
    pub disk_gib_month: Amount,
    pub loadbalancer_hour: Amount,
}

impl PricesConfig {
    pub(super) fn out_of_bounds(&self) -> Option<String> {
        let Self { currency, cpu_hour, memory_gib_hour, disk_gib_month, loadbalancer_hour } = self;
        let prices = [
            ("cpu_hour", cpu_hour),
            ("memory_gib_hour", memory_gib_hour),
            ("disk_gib_month", disk_gib_month),
            ("loadbalancer_hour", loadbalancer_hour),
        ];
        let priced = prices.iter().find(|(_, price)| price.is_some());
        match (currency, priced) {
            (None, Some((key, _))) => {
                Some(format!("`prices.{key}` needs `prices.currency`, which is not set"))
            }
            (Some(_), None) => Some("`prices.currency` needs a price, such as `prices.cpu_hour`".to_owned()),
            _ => None,
        }
    }

    /// Returns the prices; `None` if there is no currency.
    pub fn table(&self) -> Option<PriceTable> {
        let amount = |price: Option<Price>| price.map(Price::amount).unwrap_or_default();
        Some(PriceTable {
            currency: self.currency?,
            cpu_hour: amount(self.cpu_hour),
            memory_gib_hour: amount(self.memory_gib_hour),
            disk_gib_month: amount(self.disk_gib_month),
            loadbalancer_hour: amount(self.loadbalancer_hour),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parsed(text: &str) -> Result<PricesConfig, String> {
        let config = Config::parse(&format!("[prices]\n{text}\n")).map(|config| config.prices);
        config.map_err(|error| error.to_string().trim_end().to_owned())
    }

    #[test]
    fn each_mistake_has_its_sentence_and_its_line() {
        for (text, sentence) in [
            ("cpu_hour = -0.5", "`-0.5` is negative, and a price must be at least 0"),
            ("cpu_hour = -2", "`-2` is negative, and a price must be at least 0"),
            ("disk_gib_month = \"-1\"", "`-1` is negative, and a price must be at least 0"),
            ("memory_gib_hour = 0.0000001", "has more than 6 decimals, and amounts are exact to the sixth"),
            ("loadbalancer_hour = 1000001", "a price must be at most 1000000"),
            ("cpu_hour = nan", "`NaN` is not an amount of money; write it as `0.031`"),
            ("cpu_hour = true", "expected a price of at least 0, such as 0.031"),
            ("cpu_hours = 1", "unknown field `cpu_hours`"),
        ] {
            let error = parsed(&format!("currency = \"EUR\"\n{text}")).unwrap_err();
            assert!(error.contains("line 3") && error.contains(sentence), "{error}");
        }
        for (code, sentence) in [
            ("BTC", "`BTC` is not a currency; use a code of ISO 4217, such as `EUR` or `USD`"),
            ("eur", "`eur` is not a currency; did you mean `EUR`?"),
            ("€", "`€` is not a currency; use a code"),
        ] {
            let error = parsed(&format!("cpu_hour = 1\ncurrency = \"{code}\"")).unwrap_err();
            assert!(error.contains("line 3") && error.contains(sentence), "{error}");
        }
        assert_eq!(
            parsed("cpu_hour = 0.031").unwrap_err(),
            "`prices.cpu_hour` needs `prices.currency`, which is not set"
        );
        assert_eq!(
            parsed("currency = \"EUR\"").unwrap_err(),
            "`prices.currency` needs a price, such as `prices.cpu_hour`"
        );
    }

    #[test]
    fn a_price_is_what_is_written() {
        let prices =
            parsed("currency = \"EUR\"\ncpu_hour = 0.1\nmemory_gib_hour = \"0.000001\"\ndisk_gib_month = 2");
        let table = prices.unwrap().table().unwrap();
        let amounts = [table.cpu_hour, table.memory_gib_hour, table.disk_gib_month, table.loadbalancer_hour];
        assert_eq!(amounts.map(Amount::millionths), [100_000, 1, 2_000_000, 0]);
        assert_eq!(parsed("").unwrap().table(), None);
    }
}
