//! Where a routing daemon on this machine and the router meet: a loopback address, one connection at a time.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use async_io::{Async, Timer};
use futures_lite::future;
use shoal_graph::process::{Processes, Receiver};
use shoal_interface::HostSide;
use shoal_module::cli::{Args, CliError};
use shoal_module::{Control, word};

/// Why a setting was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// What a daemon says is taken from any client that connects, so only from this machine.
    #[error("{0} is no loopback address, nearest {nearest}", nearest = loopback(*.0))]
    NotLoopback(SocketAddr),
    /// The port cannot be had.
    #[error("cannot listen at {0}: {1}")]
    Refused(SocketAddr, String),
}

fn loopback(at: SocketAddr) -> SocketAddr {
    let ip = if at.is_ipv4() { IpAddr::from([127, 0, 0, 1]) } else { IpAddr::from(Ipv6Addr::LOCALHOST) };
    SocketAddr::new(ip, at.port())
}

/// Where a daemon and the router meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonAddress {
    /// A loopback address and a port.
    pub at: SocketAddr,
    /// The network namespace of the daemon, that of the router if none.
    pub netns: Option<String>,
}

/// As commands have it.
impl fmt::Display for DaemonAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        self.netns.as_ref().map_or(Ok(()), |netns| write!(f, " netns {}", word(netns)))
    }
}

impl ListenError {
    /// What a command says of it, whose address has the name `address`.
    pub fn of_command(self) -> CliError {
        match self {
            ListenError::NotLoopback(_) => CliError::argument("address", self.to_string()),
            ListenError::Refused(..) => CliError::failed(self.to_string()),
        }
    }
}

impl DaemonAddress {
    /// What the words `address` and `netns` of a command say; `usual` is one that would do.
    ///
    /// # Errors
    /// It is no address and port.
    pub fn of(args: &Args, usual: &str) -> Result<DaemonAddress, CliError> {
        let text = args.text("address").unwrap_or_default();
        let expected = || {
            CliError::argument("address", format!("{text} is no address and port such as {usual}"))
                .nearest(Some(usual.to_owned()))
        };
        let at = text.parse().map_err(|_| expected())?;
        Ok(DaemonAddress { at, netns: args.text("netns").map(str::to_owned) })
    }

    /// Waits for the daemon there. Where the port is 0 the kernel chooses one, which is returned.
    ///
    /// # Errors
    /// It is no loopback address, or the port cannot be had.
    pub fn bind(&self, control: &Control) -> Result<(Async<TcpListener>, SocketAddr), ListenError> {
        if !self.at.ip().is_loopback() {
            return Err(ListenError::NotLoopback(self.at));
        }
        let refused = |why: String| ListenError::Refused(self.at, why);
        let socket = match &self.netns {
            None => TcpListener::bind(self.at).map_err(|e| refused(e.to_string()))?,
            Some(netns) => {
                let side = control.get::<HostSide>().map_err(|e| refused(e.to_string()))?;
                side.0.listen_tcp(netns, self.at).map_err(refused)?
            }
        };
        let at = socket.local_addr().map_err(|e| refused(e.to_string()))?;
        Ok((Async::new(socket).map_err(|e| refused(e.to_string()))?, at))
    }

    /// Connects to the daemon that waits there.
    ///
    /// # Errors
    /// Nothing waits there, or the namespace cannot be entered.
    pub async fn connect(&self, side: Option<&HostSide>) -> io::Result<Async<TcpStream>> {
        let Some(netns) = &self.netns else { return Async::<TcpStream>::connect(self.at).await };
        let side = side.ok_or_else(|| io::Error::other(format!("there is no way into {netns}")))?;
        let stream = Async::new(side.0.connect_tcp(netns, self.at).map_err(io::Error::other)?)?;
        stream.writable().await?;
        match stream.get_ref().take_error()? {
            Some(error) => Err(error),
            None => Ok(stream),
        }
    }
}

/// What takes the connections of a daemon.
pub trait ConnectionTaker: 'static {
    /// What the log calls it.
    const NAME: &'static str;

    /// Whether there is a connection.
    fn is_busy(&self) -> bool;

    /// A second connection is turned away.
    fn turned_away(&self);

    /// Serves a connection to its end.
    fn serve(&self, stream: Async<TcpStream>) -> impl Future<Output = ()> + 'static;
}

/// Takes connections until the other end of `closed` is dropped.
pub async fn accept<T: ConnectionTaker>(
    taker: T,
    socket: Async<TcpListener>,
    closed: Receiver<()>,
    processes: Processes,
) {
    loop {
        let stop = async {
            let _ = closed.recv().await;
            None
        };
        match future::or(stop, async { Some(socket.accept().await) }).await {
            None => return,
            Some(Ok(_)) if taker.is_busy() => {
                taker.turned_away();
                tracing::warn!("{}: a second connection is turned away", T::NAME);
            }
            Some(Ok((stream, _))) => processes.spawn_unlisted(taker.serve(stream)),
            Some(Err(error)) => {
                // Out of file descriptors, most likely: trying at once again would spin.
                tracing::warn!("{}: a connection cannot be accepted: {error}", T::NAME);
                Timer::after(Duration::from_millis(200)).await;
            }
        }
    }
}
