//! What certificates, keys and kubeconfigs share: how a mistake in one is told, and how PEM is taken apart.

use rustls_pki_types::pem::{PemObject as _, SectionKind};
use zeroize::Zeroizing;

use crate::problem::Problem;

/// A mistake in a certificate, a key or a kubeconfig. It quotes nothing of what it judges, so it can be shown to
/// anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A stable name for programs: `key-does-not-fit`.
    pub code: &'static str,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// Which of the texts is at fault.
    pub part: Part,
}

/// Which text a [`Fault`] is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The certificate chain.
    Certificate,
    /// The private key.
    Key,
    /// The kubeconfig.
    Kubeconfig,
}

impl Fault {
    /// A fault in one of the texts.
    pub fn new(part: Part, code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into(), part }
    }

    /// The fault as a problem that is not yet placed.
    pub fn problem(self) -> Problem {
        Problem::error(self.code, self.message).hint(self.hint)
    }
}

/// One block of a PEM text: from its `-----BEGIN` line to its `-----END` line.
pub(crate) struct PemBlock<'a> {
    /// What it says it holds: `CERTIFICATE`, `RSA PRIVATE KEY`.
    pub label: &'a str,
    /// The whole block.
    text: &'a str,
}

impl PemBlock<'_> {
    /// The bytes of the block; none where they are damaged or the label is not a known one.
    pub fn decode(&self) -> Option<Zeroizing<Vec<u8>>> {
        <(SectionKind, Vec<u8>)>::from_pem_slice(self.text.as_bytes())
            .ok()
            .map(|(_, der)| Zeroizing::new(der))
    }

    /// Whether the block is encrypted in the old way, by a header inside of it (RFC 1421, section 4.6).
    pub fn is_encrypted_by_header(&self) -> bool {
        self.text.lines().any(|line| line.starts_with("Proc-Type:") && line.contains("ENCRYPTED"))
    }
}

/// Takes a PEM text apart. Text between blocks is a comment, as `openssl` writes it.
///
/// # Errors
/// The label of the first block that does not end.
pub(crate) fn pem_blocks(text: &str) -> Result<Vec<PemBlock<'_>>, &str> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &str)> = None;
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (position, position + line.len());
        position = end;
        if let Some(label) = label_of(line, "-----BEGIN ") {
            if let Some((_, unfinished)) = open {
                return Err(unfinished);
            }
            open = Some((start, label));
        } else if let Some(label) = label_of(line, "-----END ") {
            match open.take() {
                Some((from, begun)) if begun == label => {
                    blocks.push(PemBlock { label, text: &text[from..end] });
                }
                Some((_, begun)) => return Err(begun),
                None => return Err(label),
            }
        }
    }
    open.map_or(Ok(blocks), |(_, unfinished)| Err(unfinished))
}

/// The label of a line such as `-----BEGIN CERTIFICATE-----`.
fn label_of<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    line.trim_end().strip_prefix(prefix)?.strip_suffix("-----")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Result<Vec<&str>, &str> {
        Ok(pem_blocks(text)?.iter().map(|block| block.label).collect())
    }

    #[test]
    fn a_text_is_taken_apart_and_comments_are_passed_over() {
        let text = "Bag Attributes\n-----BEGIN A-----\r\nAAAA\r\n-----END A-----\r\nx\n-----BEGIN B-----\n-----END B-----";
        assert_eq!(labels(text), Ok(vec!["A", "B"]));
        assert_eq!(labels("no PEM at all"), Ok(vec![]));
    }

    #[test]
    fn a_block_that_does_not_end_is_named() {
        for text in [
            "-----BEGIN A-----\nAAAA\n",
            "-----BEGIN A-----\n-----BEGIN B-----\n-----END B-----\n",
            "-----BEGIN A-----\n-----END B-----\n",
            "-----END A-----\n",
        ] {
            assert_eq!(labels(text), Err("A"), "{text}");
        }
    }
}
