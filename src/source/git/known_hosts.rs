//! Checks ssh host keys against a file in OpenSSH's format (`man sshd`, "SSH_KNOWN_HOSTS FILE FORMAT").

use aws_lc_rs::hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, Key, verify};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The port that is omitted in the file.
const SSH_PORT: u16 = 22;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostKeyJudgement {
    /// The server has this key.
    Known,
    /// The server has other keys.
    Other,
    Unknown,
    Revoked,
}

/// Looks up the key that a server showed, in its binary form.
pub(super) fn judge(file: &str, host: &str, port: u16, key: &[u8]) -> HostKeyJudgement {
    let name = if port == SSH_PORT { host.to_owned() } else { format!("[{host}]:{port}") };
    let mut judgement = HostKeyJudgement::Unknown;
    for line in file.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace().peekable();
        let marker = words.next_if(|word| word.starts_with('@'));
        let (Some(hosts), Some(_kind), Some(known)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if !names(hosts, &name) {
            continue;
        }
        let is_it = STANDARD.decode(known).is_ok_and(|known| known == key);
        match (marker, is_it) {
            (Some("@revoked"), true) => return HostKeyJudgement::Revoked,
            // A `@cert-authority` key signs host keys; it isn't one itself.
            (Some(_), _) => {}
            (None, true) => judgement = HostKeyJudgement::Known,
            (None, false) if judgement == HostKeyJudgement::Unknown => judgement = HostKeyJudgement::Other,
            (None, false) => {}
        }
    }
    judgement
}

fn names(hosts: &str, name: &str) -> bool {
    if let Some(hashed) = hosts.strip_prefix("|1|") {
        let parts = hashed.split_once('|').map(|(salt, hash)| (STANDARD.decode(salt), STANDARD.decode(hash)));
        let Some((Ok(salt), Ok(hash))) = parts else { return false };
        // The hash that OpenSSH uses. It only hides names in the file; no security depends on it.
        let key = Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
        return verify(&key, name.as_bytes(), &hash).is_ok();
    }
    let is_match = |pattern: &str| fits(pattern.to_lowercase().as_bytes(), name.to_lowercase().as_bytes());
    let mut patterns = hosts.split(',');
    !patterns.clone().any(|pattern| pattern.strip_prefix('!').is_some_and(is_match)) && patterns.any(is_match)
}

/// Matches a pattern: `*` stands for any characters and `?` for one.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut begin, mut star) = (0, 0, None);
    while begin < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, begin));
                at += 1;
            }
            Some(letter) if *letter == b'?' || Some(letter) == name.get(begin) => {
                at += 1;
                begin += 1;
            }
            _ => {
                // The last star matches one more character.
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, begin) = (place + 1, taken + 1);
            }
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_servers_only_where_the_file_says_so() {
        let (key, other) = (STANDARD.encode("key"), STANDARD.encode("other"));
        // The name `git.example.com`, hashed with the salt `0123456789abcdefghij` by Python's hmac module.
        let hashed = "|1|MDEyMzQ1Njc4OWFiY2RlZmdoaWo=|4XKDM3Rddj4Zr5SeQ6VLeII6A5s=";
        for (line, host, port, expected) in [
            (
                format!("git.example.com ssh-ed25519 {key} a comment"),
                "git.example.com",
                22,
                HostKeyJudgement::Known,
            ),
            (
                format!("# git.example.com ssh-ed25519 {key}"),
                "git.example.com",
                22,
                HostKeyJudgement::Unknown,
            ),
            (format!("git.example.com ssh-ed25519 {other}"), "git.example.com", 22, HostKeyJudgement::Other),
            (
                format!("git.example.com a {other}\ngit.example.com b {key}"),
                "git.example.com",
                22,
                HostKeyJudgement::Known,
            ),
            (
                format!("git.example.com ssh-ed25519 {key}"),
                "git.example.com",
                2222,
                HostKeyJudgement::Unknown,
            ),
            (format!("[git.example.com]:2222 a {key}"), "git.example.com", 2222, HostKeyJudgement::Known),
            (format!("a,192.0.2.1,GIT.example.com a {key}"), "git.example.com", 22, HostKeyJudgement::Known),
            (format!("*.example.com a {key}"), "git.example.com", 22, HostKeyJudgement::Known),
            (format!("*.ex?mple.*m a {key}"), "git.example.com", 22, HostKeyJudgement::Known),
            (format!("*.example.org a {key}"), "git.example.com", 22, HostKeyJudgement::Unknown),
            (format!("!git.example.com,* a {key}"), "git.example.com", 22, HostKeyJudgement::Unknown),
            (format!("{hashed} a {key}"), "git.example.com", 22, HostKeyJudgement::Known),
            (format!("{hashed} a {key}"), "git.example.org", 22, HostKeyJudgement::Unknown),
            (format!("@cert-authority * a {key}"), "git.example.com", 22, HostKeyJudgement::Unknown),
            (format!("* a {key}\n@revoked * a {key}"), "git.example.com", 22, HostKeyJudgement::Revoked),
            ("git.example.com".to_owned(), "git.example.com", 22, HostKeyJudgement::Unknown),
        ] {
            assert_eq!(judge(&line, host, port, b"key"), expected, "{line}");
        }
    }
}
