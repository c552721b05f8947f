//! Amounts of money, exact to a millionth.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Millionths in one unit of a currency.
const UNIT: u128 = 1_000_000;

/// How many decimals millionths have.
const DECIMALS: u32 = 6;

/// The highest price, in units of the currency.
const HIGHEST: u128 = 1_000_000;

/// An amount in millionths of a currency's unit. As text it is a decimal number: `12.345678`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(u128);

impl Amount {
    pub const fn of_millionths(millionths: u128) -> Amount {
        Amount(millionths)
    }

    pub fn millionths(self) -> u128 {
        self.0
    }

    pub fn plus(self, other: Amount) -> Amount {
        Amount(self.0.saturating_add(other.0))
    }

    pub fn less(self, other: Amount) -> Amount {
        Amount(self.0.saturating_sub(other.0))
    }

    /// Formats the amount with so many decimals, at most six, rounded half up.
    pub fn rounded(self, decimals: u32) -> String {
        let decimals = decimals.min(DECIMALS);
        let step = 10_u128.pow(DECIMALS - decimals);
        let rounded = self.0.saturating_add(step / 2) / step;
        let unit = 10_u128.pow(decimals);
        match decimals {
            0 => rounded.to_string(),
            _ => format!("{}.{:0width$}", rounded / unit, rounded % unit, width = decimals as usize),
        }
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Amount>>(amounts: I) -> Amount {
        amounts.fold(Amount::default(), Amount::plus)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rounded(DECIMALS))
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Amount, String> {
        let shown = || text.chars().filter(|letter| !letter.is_control()).take(40).collect::<String>();
        let no_amount = || format!("`{}` is not an amount of money; write it as `0.031`", shown());
        let (sign, number) = text.strip_prefix('-').map_or(("", text), |number| ("-", number));
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(part) {
            return Err(no_amount());
        }
        let part = part.trim_end_matches('0');
        if part.len() > DECIMALS as usize {
            return Err(format!(
                "`{}` has more than {DECIMALS} decimals, and amounts are exact to the sixth",
                shown()
            ));
        }
        let millionths = || {
            let whole: u128 = whole.parse().ok()?;
            let part: u128 = format!("{part:0<6}").parse().ok()?;
            whole.checked_mul(UNIT)?.checked_add(part)
        };
        match millionths().ok_or_else(no_amount)? {
            0 => Ok(Amount(0)),
            _ if !sign.is_empty() => {
                Err(format!("`{}` is negative, and a price must be at least 0", shown()))
            }
            millionths => Ok(Amount(millionths)),
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Amount".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^[0-9]+\.[0-9]{6}$", "examples": ["12.345678"]})
    }
}

/// A price in settings, which may also be a number. The shortest text of a floating-point number is the one that a
/// person wrote, so that nothing is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price(Amount);

impl Price {
    pub fn amount(self) -> Amount {
        self.0
    }
}

impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Price, String> {
        let amount: Amount = text.parse()?;
        if amount.0 > HIGHEST * UNIT {
            return Err(format!("a price must be at most {HIGHEST}"));
        }
        Ok(Price(amount))
    }
}

impl Serialize for Price {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfNumber;
        impl Visitor<'_> for OfNumber {
            type Value = Price;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a price of at least 0, such as 0.031")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Price, E> {
                number.to_string().parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Price, E> {
                number.to_string().parse().map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Price, E> {
                number.to_string().parse().map_err(E::custom)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Price, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(OfNumber)
    }
}

impl JsonSchema for Price {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Price".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["number", "string"],
            "minimum": 0,
            "maximum": HIGHEST as u64,
            "examples": [0.031],
            "x-expected": "a number of at least 0 with at most 6 decimals",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_exact_to_the_sixth_decimal() {
        for (text, expected) in [
            ("0", "0.000000"),
            ("-0", "0.000000"),
            ("0.031", "0.031000"),
            ("12.345678", "12.345678"),
            ("1.5000000000", "1.500000"),
            ("1000000", "1000000.000000"),
        ] {
            assert_eq!(text.parse::<Amount>().unwrap().to_string(), expected);
        }
        for wrong in ["", ".", "1.", ".5", "1e3", "inf", "NaN", "1,5", "--1", "+1"] {
            let error = wrong.parse::<Amount>().unwrap_err();
            assert!(error.contains("is not an amount of money"), "{error}");
        }
    }

    #[test]
    fn an_amount_is_rounded_half_up() {
        let amount = |text: &str| text.parse::<Amount>().unwrap();
        for (text, decimals, expected) in [
            ("412.375", 2, "412.38"),
            ("412.374999", 2, "412.37"),
            ("0.5", 0, "1"),
            ("0.0004", 3, "0.000"),
            ("9.999999", 2, "10.00"),
        ] {
            assert_eq!(amount(text).rounded(decimals), expected);
        }
    }
}
