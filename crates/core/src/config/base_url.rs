//! The base URL of the API where that isn't the root of its port, usually behind a proxy.

/// The longest base URL, in characters.
const LONGEST: usize = 2000;

/// Returns the path of a base URL without a trailing slash, so an empty path for the root; `None` if the URL
/// is invalid.
pub fn path(base_url: &str) -> Option<&str> {
    let path = match after_scheme(base_url) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !is_authority(authority) {
                return None;
            }
            path
        }
        None if base_url.starts_with('/') => base_url,
        None => return None,
    };
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut parts = path.split('/').skip(1);
    (base_url.len() <= LONGEST && parts.all(is_part)).then_some(path)
}

/// Whether a valid base URL is a full URL, and not only a path.
pub fn has_host(base_url: &str) -> bool {
    after_scheme(base_url).is_some()
}

fn after_scheme(base_url: &str) -> Option<&str> {
    ["https://", "http://"].into_iter().find_map(|scheme| base_url.strip_prefix(scheme))
}

/// Accepts a host with an optional port, and no user.
pub(super) fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_address = |host: &str| host.parse::<std::net::Ipv6Addr>().is_ok();
    let is_name = |host: &str| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    bracketed.map_or_else(|| is_name(host), is_address)
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// Accepts a path segment that has only one spelling: no escapes, no dot segments.
fn is_part(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    !matches!(part, "" | "." | "..") && part.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths_have_a_path() {
        for (base_url, expected) in [
            ("https://kafka.example.com/streamfleet", "/streamfleet"),
            ("https://kafka.example.com/streamfleet/", "/streamfleet"),
            ("http://127.0.0.1:3000/a/b.c_d~e-f", "/a/b.c_d~e-f"),
            ("http://[::1]:3000", ""),
            ("http://[::1]/x", "/x"),
            ("https://kafka.example.com/", ""),
            ("/streamfleet", "/streamfleet"),
            ("/", ""),
        ] {
            assert_eq!(path(base_url), Some(expected), "{base_url}");
        }
    }

    #[test]
    fn what_is_neither_is_none() {
        for none in [
            "",
            "streamfleet",
            "kafka.example.com/streamfleet",
            "ftp://kafka.example.com",
            "https://",
            "https:///x",
            "https://ada@kafka.example.com/",
            "https://kafka.example.com:0/",
            "https://kafka.example.com:99999/",
            "https://kafka.example.com/x?y",
            "https://kafka.example.com/x#y",
            "//kafka.example.com",
            "/a//b",
            "/a/../b",
            "/{id}",
            "/a%2fb",
            "/a b",
            "/*x",
        ] {
            assert_eq!(path(none), None, "{none}");
        }
    }
}
