//! Kubernetes quantities of bytes.

use crate::names::QUANTITY_SUFFIXES;

/// A quantity such as `500Gi` in bytes; none for what isn't one.
pub(super) fn bytes(text: &str) -> Option<f64> {
    let (number, factor) = QUANTITY_SUFFIXES.iter().find_map(|(suffix, factor)| {
        let number = text.strip_suffix(suffix)?;
        number.ends_with(|c: char| c.is_ascii_digit() || c == '.').then_some((number, factor))
    })?;
    number.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_compared_whatever_their_suffix() {
        for (text, expected) in [
            ("1Gi", Some(1_073_741_824.0)),
            ("1024Mi", Some(1_073_741_824.0)),
            ("2G", Some(2e9)),
            ("512", Some(512.0)),
            ("1.5Ki", Some(1536.0)),
            ("1e3", Some(1000.0)),
            ("", None),
            ("Gi", None),
            ("many", None),
            ("inf", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
