//! OpenSSL as a client that verifies the host name and the chain.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The chain in PEM that a server presents under a name to a client that trusts the certificates of a file. The error is
/// OpenSSL's.
pub fn presented(host: &str, address: SocketAddr, trusted: &Path) -> Result<String, String> {
    let mut client = Command::new("openssl");
    client.args(["s_client", "-showcerts", "-verify_return_error"]).arg("-CAfile").arg(trusted);
    client.args(["-servername", host, "-verify_hostname", host, "-connect", &address.to_string()]);
    let said = client.stdin(Stdio::null()).output().unwrap();
    if !said.status.success() {
        return Err(String::from_utf8_lossy(&said.stderr).into_owned());
    }
    let text = String::from_utf8(said.stdout).unwrap();
    let mut is_inside = false;
    let lines = text.lines().filter(|line| {
        let is_of_certificate = is_inside || *line == "-----BEGIN CERTIFICATE-----";
        is_inside = is_of_certificate && *line != "-----END CERTIFICATE-----";
        is_of_certificate
    });
    Ok(lines.map(|line| format!("{line}\n")).collect())
}
