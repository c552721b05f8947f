//! Shared parts of certificates, keys and kubeconfigs: how their faults are reported, and the PEM parser.

use rustls_pki_types::pem::{PemObject as _, SectionKind};
use zeroize::Zeroizing;

use crate::problem::Problem;

/// A mistake in a certificate, a key or a kubeconfig. It never quotes the text, so it is safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaterialFault {
    /// A stable identifier for programs: `key-does-not-fit`.
    pub code: &'static str,
    /// One sentence without a full stop.
    pub message: String,
    pub hint: String,
    pub part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Certificate,
    Key,
    Kubeconfig,
}

impl MaterialFault {
    pub fn new(part: Part, code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into(), part }
    }

    /// Converts the fault to a problem that has no location yet.
    pub fn problem(self) -> Problem {
        Problem::error(self.code, self.message).hint(self.hint)
    }
}

/// One block of a PEM text: from its `-----BEGIN` line to its `-----END` line.
pub(crate) struct PemBlock<'a> {
    /// The type of its content: `CERTIFICATE`, `RSA PRIVATE KEY`. One of [`LABELS`] or [`UNKNOWN_LABEL`] and
    /// never a piece of the text, so it is safe to quote.
    pub label: &'static str,
    pub text: &'a str,
}

/// The known labels: those of RFC 7468, section 4, and those that `openssl` and `ssh-keygen` write.
const LABELS: [&str; 15] = [
    "CERTIFICATE",
    "X509 CERTIFICATE",
    "TRUSTED CERTIFICATE",
    "CERTIFICATE REQUEST",
    "X509 CRL",
    "PKCS7",
    "CMS",
    "PUBLIC KEY",
    "PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
    "DSA PRIVATE KEY",
    "OPENSSH PRIVATE KEY",
    "EC PARAMETERS",
];

pub(crate) const UNKNOWN_LABEL: &str = "UNKNOWN";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PemError {
    /// The label of the first block without an end, or end without a beginning.
    Unfinished(&'static str),
    /// A BEGIN or END is not a line of its own: line breaks were lost.
    NotALine,
}

impl PemError {
    /// Converts the error to a fault of the certificate or the key. `damaged` makes the fault for a damaged
    /// text.
    pub fn fault(self, part: Part, damaged: impl Fn(&str) -> MaterialFault) -> MaterialFault {
        let (code, what, field) = match part {
            Part::Key => ("key-on-one-line", "private key", "tls_key"),
            Part::Certificate | Part::Kubeconfig => ("certificate-on-one-line", "certificate", "tls_cert"),
        };
        match self {
            PemError::Unfinished(UNKNOWN_LABEL) => damaged("one of its blocks has no END line"),
            PemError::Unfinished(label) => damaged(&format!("its `{label}` block has no END line")),
            PemError::NotALine => MaterialFault::new(
                part,
                code,
                format!("the {what} has lost its line breaks: BEGIN and END are not on lines of their own"),
                format!(
                    "in YAML, write `{field}: |` and indent the lines below it; elsewhere, keep its line breaks"
                ),
            ),
        }
    }
}

impl PemBlock<'_> {
    /// Returns the bytes of the block; `None` if they are damaged or the label is unknown.
    pub fn decode(&self) -> Option<Zeroizing<Vec<u8>>> {
        <(SectionKind, Vec<u8>)>::from_pem_slice(self.text.as_bytes())
            .ok()
            .map(|(_, der)| Zeroizing::new(der))
    }

    /// Whether the block is encrypted in the legacy way, with a header inside it (RFC 1421, section 4.6).
    pub fn is_encrypted_by_header(&self) -> bool {
        self.text.lines().any(|line| line.starts_with("Proc-Type:") && line.contains("ENCRYPTED"))
    }
}

/// Splits a PEM text into blocks. Text between blocks is a comment, as `openssl` writes it.
///
/// # Errors
/// If a block does not end or line breaks are missing. The error contains nothing of the text.
pub(crate) fn pem_blocks(text: &str) -> Result<Vec<PemBlock<'_>>, PemError> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &'static str)> = None;
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (position, position + line.len());
        position = end;
        match (boundary(line)?, open.take()) {
            (None, unchanged) => open = unchanged,
            (Some(Boundary::Begin(label)), None) => open = Some((start, label)),
            (Some(Boundary::End(label)), Some((from, begun))) if begun == label => {
                blocks.push(PemBlock { label, text: &text[from..end] });
            }
            (_, Some((_, label))) | (Some(Boundary::End(label)), None) => {
                return Err(PemError::Unfinished(label));
            }
        }
    }
    open.map_or(Ok(blocks), |(_, unfinished)| Err(PemError::Unfinished(unfinished)))
}

enum Boundary {
    Begin(&'static str),
    End(&'static str),
}

fn boundary(line: &str) -> Result<Option<Boundary>, PemError> {
    let line = line.trim_end();
    if let Some(label) = label_of(line, "-----BEGIN ") {
        return Ok(Some(Boundary::Begin(label)));
    }
    if let Some(label) = label_of(line, "-----END ") {
        return Ok(Some(Boundary::End(label)));
    }
    match line.contains("-----BEGIN") || line.contains("-----END") {
        true => Err(PemError::NotALine),
        false => Ok(None),
    }
}

fn label_of(line: &str, prefix: &str) -> Option<&'static str> {
    let label = line.strip_prefix(prefix)?.strip_suffix("-----")?;
    // A hyphen belongs to a second boundary on the line, with the block itself between them.
    (!label.contains('-')).then(|| LABELS.into_iter().find(|known| *known == label).unwrap_or(UNKNOWN_LABEL))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Result<Vec<&str>, PemError> {
        Ok(pem_blocks(text)?.iter().map(|block| block.label).collect())
    }

    #[test]
    fn a_text_is_taken_apart_and_comments_are_passed_over() {
        let text = "Bag Attributes\n-----BEGIN CMS-----\r\nAAAA\r\n-----END CMS-----\r\nx\n-----BEGIN B-----\n\
             -----END B-----";
        assert_eq!(labels(text), Ok(vec!["CMS", "UNKNOWN"]));
        assert_eq!(labels("no PEM at all"), Ok(vec![]));
    }

    #[test]
    fn a_block_that_does_not_end_is_named() {
        for text in [
            "-----BEGIN CMS-----\nAAAA\n",
            "-----BEGIN CMS-----\n-----BEGIN PKCS7-----\n-----END PKCS7-----\n",
            "-----BEGIN CMS-----\n-----END PKCS7-----\n",
            "-----END CMS-----\n",
        ] {
            assert_eq!(labels(text), Err(PemError::Unfinished("CMS")), "{text}");
        }
    }

    #[test]
    fn line_breaks_that_were_lost_are_told_as_such() {
        for text in [
            "-----BEGIN CMS----- AAAA -----END CMS-----",
            "-----BEGIN CMS-----AAAA-----END CMS-----\n",
            "  -----BEGIN CMS-----\n  AAAA\n  -----END CMS-----\n",
            "-----BEGIN CMS-----\nAAAA -----END CMS-----\n",
            "-----BEGIN CMS----- AAAA\n",
        ] {
            assert_eq!(labels(text), Err(PemError::NotALine), "{text}");
        }
    }
}
