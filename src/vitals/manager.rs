//! Notifies a service manager with datagrams in the protocol of sd_notify(3).

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A service manager that expects notifications.
pub(super) struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
    /// The time without a notification after which it considers the process dead.
    pub(super) watchdog: Option<Duration>,
}

impl Manager {
    /// Reads the service manager from the environment; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the environment contains an invalid socket address.
    pub(super) fn of(environment: &dyn Fn(&str) -> Option<OsString>) -> io::Result<Option<Manager>> {
        let Some(name) = environment("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        // A leading `@` marks a socket in the abstract namespace.
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&name)?,
        };
        let number = |name: &str| environment(name)?.to_str()?.parse::<u64>().ok();
        // Another id is that of our parent process, and the watchdog isn't meant for us.
        let is_ours = environment("WATCHDOG_PID").is_none()
            || number("WATCHDOG_PID") == Some(u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&micros| is_ours && micros > 0);
        let socket = UnixDatagram::unbound()?;
        // A stuck service manager must not block us.
        socket.set_nonblocking(true)?;
        Ok(Some(Manager { socket, address, watchdog: watchdog.map(Duration::from_micros) }))
    }

    /// Sends assignments, one per line.
    pub(super) fn tell(&self, lines: &str) {
        if let Err(error) = self.socket.send_to_addr(lines.as_bytes(), &self.address) {
            tracing::debug!(%error, lines, "cannot notify the service manager");
        }
    }

    /// Reports that settings are being reloaded, until readiness is reported again.
    pub(super) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Option<Duration>> {
        let environment = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        Manager::of(&environment).unwrap().map(|manager| manager.watchdog)
    }

    #[test]
    fn only_the_process_that_is_meant_feeds_the_watchdog() {
        let (socket, own) = (("NOTIFY_SOCKET", "/run/nobody"), std::process::id().to_string());
        let every = ("WATCHDOG_USEC", "2000000");
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("NOTIFY_SOCKET", "")]), None);
        assert_eq!(of(&[socket]), Some(None));
        assert_eq!(of(&[socket, every]), Some(Some(Duration::from_secs(2))));
        assert_eq!(of(&[socket, every, ("WATCHDOG_PID", &own)]), Some(Some(Duration::from_secs(2))));
        assert_eq!(of(&[socket, every, ("WATCHDOG_PID", "1")]), Some(None));
        assert_eq!(of(&[socket, ("WATCHDOG_USEC", "often")]), Some(None));
    }
}
