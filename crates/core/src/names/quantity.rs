//! Kubernetes quantities, such as `500Gi` or `2900m`.

/// The suffixes of Kubernetes quantities with their factors, from its resource model: binary, decimal, none.
/// A suffix comes before any other suffix that it ends in.
pub const QUANTITY_SUFFIXES: [(&str, f64); 14] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("", 1.0),
];

/// Parses a quantity of bytes or CPUs.
pub fn quantity(text: &str) -> Option<f64> {
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
            ("2900m", Some(2.9)),
            ("1.5Ki", Some(1536.0)),
            ("1e3", Some(1000.0)),
            ("", None),
            ("Gi", None),
            ("many", None),
            ("inf", None),
        ] {
            assert_eq!(quantity(text), expected, "{text}");
        }
    }
}
