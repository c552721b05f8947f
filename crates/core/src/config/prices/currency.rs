//! Currencies, by their codes in ISO 4217.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// A currency by its code in ISO 4217: `EUR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String", extend("examples" = ["EUR"]))]
pub struct Currency(&'static str);

impl Currency {
    /// How many decimals amounts are shown with: those of its smaller unit.
    pub fn decimals(self) -> u32 {
        let of = |codes: &[&str]| codes.contains(&self.0);
        match () {
            () if of(&WITHOUT_DECIMALS) => 0,
            () if of(&THREE_DECIMALS) => 3,
            () if of(&FOUR_DECIMALS) => 4,
            () => 2,
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl TryFrom<String> for Currency {
    type Error = String;

    fn try_from(code: String) -> Result<Self, String> {
        let tables: [&[&'static str]; 4] =
            [&TWO_DECIMALS, &WITHOUT_DECIMALS, &THREE_DECIMALS, &FOUR_DECIMALS];
        let known = tables.into_iter().flatten().find(|known| **known == code);
        known.map(|known| Currency(known)).ok_or_else(|| {
            let shown: String = code.chars().filter(|letter| !letter.is_control()).take(20).collect();
            let upper = code.to_ascii_uppercase();
            let meant = tables.into_iter().flatten().find(|known| **known == upper);
            let hint = meant.map_or_else(
                || "use a code of ISO 4217, such as `EUR` or `USD`".to_owned(),
                |code| format!("did you mean `{code}`?"),
            );
            format!("`{shown}` is not a currency; {hint}")
        })
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.0.to_owned()
    }
}

// The active codes of ISO 4217, without those of metals, funds of banks, tests and "no currency".
static TWO_DECIMALS: [&str; 140] = [
    "AED", "AFN", "ALL", "AMD", "ANG", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BGN", "BMD",
    "BND", "BOB", "BOV", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF", "CHE", "CHF", "CHW", "CNY",
    "COP", "COU", "CRC", "CUP", "CVE", "CZK", "DKK", "DOP", "DZD", "EGP", "ERN", "ETB", "EUR", "FJD", "FKP",
    "GBP", "GEL", "GHS", "GIP", "GMD", "GTQ", "GYD", "HKD", "HNL", "HTG", "HUF", "IDR", "ILS", "INR", "IRR",
    "JMD", "KES", "KGS", "KHR", "KPW", "KYD", "KZT", "LAK", "LBP", "LKR", "LRD", "LSL", "MAD", "MDL", "MGA",
    "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR", "MWK", "MXN", "MXV", "MYR", "MZN", "NAD", "NGN", "NIO",
    "NOK", "NPR", "NZD", "PAB", "PEN", "PGK", "PHP", "PKR", "PLN", "QAR", "RON", "RSD", "RUB", "SAR", "SBD",
    "SCR", "SDG", "SEK", "SGD", "SHP", "SLE", "SOS", "SRD", "SSP", "STN", "SVC", "SYP", "SZL", "THB", "TJS",
    "TMT", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "USD", "USN", "UYU", "UZS", "VED", "VES", "WST", "XCD",
    "XCG", "YER", "ZAR", "ZMW", "ZWG",
];
static WITHOUT_DECIMALS: [&str; 17] = [
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF",
    "XOF", "XPF",
];
static THREE_DECIMALS: [&str; 7] = ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"];
static FOUR_DECIMALS: [&str; 2] = ["CLF", "UYW"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_currency_has_the_decimals_of_its_smaller_unit() {
        for (code, decimals) in [("EUR", 2), ("USD", 2), ("JPY", 0), ("KWD", 3), ("CLF", 4)] {
            assert_eq!(Currency::try_from(code.to_owned()).unwrap().decimals(), decimals, "{code}");
        }
    }
}
