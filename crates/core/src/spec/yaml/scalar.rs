//! Resolves scalars by the core schema of YAML 1.2 (section 10.3.2), in which `yes` and `on` are strings.

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar<'a> {
    Null,
    Bool(bool),
    /// An integer; `None` if it exceeds 64 bits.
    Integer(Option<i64>),
    /// A number that is not an integer. Its value is never needed.
    Float,
    /// All other texts, and everything in quotes.
    String(&'a str),
}

impl<'a> Scalar<'a> {
    pub fn resolve(text: &'a str, plain: bool) -> Self {
        if !plain {
            return Scalar::String(text);
        }
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
            "true" | "True" | "TRUE" => Scalar::Bool(true),
            "false" | "False" | "FALSE" => Scalar::Bool(false),
            _ => integer(text).map(Scalar::Integer).unwrap_or_else(|| match is_float(text) {
                true => Scalar::Float,
                false => Scalar::String(text),
            }),
        }
    }
}

/// Returns `None` for other texts, and `Some(None)` for an integer that doesn't fit.
fn integer(text: &str) -> Option<Option<i64>> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let fits = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            return fits.then(|| i64::from_str_radix(digits, radix).ok());
        }
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())
}

fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    // Rust parses the same grammar except for the words `inf`, `infinity` and `nan`.
    unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.bytes().any(|b| b.is_ascii_digit())
        && unsigned.parse::<f64>().is_ok()
}
