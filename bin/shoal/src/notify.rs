//! Tells systemd how far we are, and that we are well (sd_notify's protocol: one datagram).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// Whether somebody wants to know.
pub fn is_wanted() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

fn connect() -> Option<io::Result<UnixDatagram>> {
    let path = std::env::var_os("NOTIFY_SOCKET")?;
    let connected = || {
        let address = match path.as_encoded_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&path)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        Ok(socket)
    };
    Some(connected())
}

/// Sends a state such as `READY=1`, if a service manager listens.
pub fn notify(state: &str) {
    let sent = connect().map(|socket| socket?.send(state.as_bytes()));
    if let Some(Err(error)) = sent {
        tracing::warn!("cannot tell the service manager {state}: {error}");
    }
}

/// The service manager's watchdog: it ends a service that does not feed it (`WatchdogSec=`).
pub struct Watchdog {
    socket: UnixDatagram,
    interval: Duration,
    fed: Option<Instant>,
}

impl Watchdog {
    /// If there is one for this process.
    pub fn wanted() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        let interval = interval(variable("WATCHDOG_USEC").as_deref(), variable("WATCHDOG_PID").as_deref())?;
        let socket = connect()?.and_then(|socket| {
            // Who feeds must not wait: a meal that finds no room comes again.
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        match socket {
            Ok(socket) => Some(Watchdog { socket, interval, fed: None }),
            Err(error) => {
                tracing::warn!("the service manager's watchdog is not fed: {error}");
                None
            }
        }
    }

    /// How often it is fed.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Feeds it, if it is time.
    pub fn feed(&mut self, now: Instant) {
        let is_due = self.fed.is_none_or(|fed| now.saturating_duration_since(fed) >= self.interval);
        if is_due && self.socket.send(b"WATCHDOG=1").is_ok() {
            self.fed = Some(now);
        }
    }
}

/// Half of the time that systemd gives; nothing when it gives none, or gives it to another process.
fn interval(usec: Option<&str>, pid: Option<&str>) -> Option<Duration> {
    let ours = std::process::id().to_string();
    let usec: u64 = usec?.parse().ok()?;
    (usec > 0 && pid.is_none_or(|pid| pid == ours)).then(|| Duration::from_micros(usec / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_fed_at_half_of_its_time_if_it_is_ours() {
        let ours = std::process::id().to_string();
        assert_eq!(interval(Some("30000000"), None), Some(Duration::from_secs(15)));
        assert_eq!(interval(Some("2000000"), Some(&ours)), Some(Duration::from_secs(1)));
        assert_eq!(interval(Some("2000000"), Some("1")), None, "another's");
        for nothing in [None, Some("0"), Some("soon"), Some("-1"), Some("")] {
            assert_eq!(interval(nothing, None), None, "{nothing:?}");
        }
    }
}
