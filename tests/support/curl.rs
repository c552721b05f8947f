//! curl as a client of a server on this machine, under the host name that its certificate is for.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

pub struct Server<'a> {
    pub host: &'a str,
    pub port: u16,
    /// The file of the certificate that the client trusts.
    pub trusted: &'a Path,
}

impl Server<'_> {
    /// The status and the answer to a call, with further words for curl. The error is curl's.
    pub fn call(&self, path: &str, words: &[&str]) -> Result<(u16, Value), String> {
        let Server { host, port, trusted } = self;
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "60", "--write-out", "\n%{http_code}"]);
        curl.arg("--cacert").arg(trusted).args(["--resolve", &format!("{host}:{port}:127.0.0.1")]);
        let said = curl.args(words).arg(format!("https://{host}:{port}{path}")).output().unwrap();
        if !said.status.success() {
            return Err(String::from_utf8_lossy(&said.stderr).into_owned());
        }
        let text = String::from_utf8(said.stdout).unwrap();
        let (answer, status) = text.rsplit_once('\n').unwrap();
        Ok((status.parse().unwrap(), serde_json::from_str(answer).unwrap_or_default()))
    }
}
