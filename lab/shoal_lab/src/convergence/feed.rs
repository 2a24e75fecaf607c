//! Where routes come from: sessions with a daemon, the kernel's table, FPM.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use shoal_lab_dut::{Daemon, LINKS, PeerLink, RoutingBed};
use shoal_lab_engine::run_in;
use shoal_lab_routes::bgp::{Messages, Origin, messages4, messages6};
use shoal_lab_routes::rtnetlink::{Change, Way, for_fpm, for_kernel, replay};
use shoal_lab_routes::speaker::Session;
use shoal_lab_routes::table::{self, Ip4, Ip6};

use super::kernel::KernelTable;

/// BGP's (RFC 4271 8).
const PORT: u16 = 179;
/// How long a daemon may take to connect.
const CONNECTS: Duration = Duration::from_mins(1);

/// The table that is announced.
#[derive(Debug)]
pub struct Table {
    /// IPv4 prefixes.
    pub four: Vec<Ip4>,
    /// IPv6 prefixes.
    pub six: Vec<Ip6>,
    /// Seeds prefixes and attributes.
    pub seed: u64,
}

impl Table {
    /// The same for the same seed.
    pub fn new(four: usize, six: usize, seed: u64) -> Self {
        Table { four: table::ip4(four, seed), six: table::ip6(six, seed), seed }
    }

    /// Prefixes of both families.
    pub fn len(&self) -> usize {
        self.four.len() + self.six.len()
    }

    fn messages(&self, system: u32, link: &PeerLink) -> (Origin, [Messages; 2]) {
        let origin = Origin { system, address4: link.peer4, address6: link.peer6, seed: self.seed };
        (origin, [messages4(&self.four, &origin), messages6(&self.six, &origin)])
    }
}

/// Something under way; at its end it says whether it went well.
pub type Job = JoinHandle<Result<(), String>>;

/// Starts one.
///
/// # Errors
///
/// There are no more threads.
pub fn job(what: impl FnOnce() -> Result<(), String> + Send + 'static) -> Result<Job, String> {
    thread::Builder::new().name("lab-feed".into()).spawn(what).map_err(|e| e.to_string())
}

/// A peer's sessions over one link: one for each family, with what is sent over it.
pub struct Peer(Vec<(Arc<Session>, Arc<Messages>)>);

/// A peer that listens and has no sessions yet.
pub struct Listening {
    sockets: Vec<TcpListener>,
    origin: Origin,
    messages: [Arc<Messages>; 2],
}

impl Listening {
    /// Over this link, in the peer's namespace.
    ///
    /// # Errors
    ///
    /// The port cannot be had.
    pub fn start(namespace: &Path, system: u32, link: &PeerLink, table: &Table) -> Result<Self, String> {
        let (origin, [four, six]) = table.messages(system, link);
        let mut sockets = Vec::new();
        for at in [IpAddr::from(link.peer4), IpAddr::from(link.peer6)] {
            let at = SocketAddr::new(at, PORT);
            let opened = run_in(Some(namespace), || Ok(TcpListener::bind(at)));
            sockets.push(opened.map_err(|e| e.to_string())?.map_err(|e| format!("{at}: {e}"))?);
        }
        Ok(Listening { sockets, origin, messages: [Arc::new(four), Arc::new(six)] })
    }

    /// Waits for the daemon.
    ///
    /// # Errors
    ///
    /// It does not come, or does not speak BGP.
    pub fn accept(self) -> Result<Peer, String> {
        let mut all = Vec::new();
        for (socket, messages) in self.sockets.iter().zip(self.messages) {
            let at = socket.local_addr().map_or_else(|_| String::new(), |at| at.ip().to_string());
            let session = Session::accept(socket, &self.origin, CONNECTS);
            let session = session.map_err(|e| format!("no session with the peer at {at}: {e}"))?;
            all.push((Arc::new(session), messages));
        }
        Ok(Peer(all))
    }
}

impl Peer {
    fn send(&self, which: fn(&Messages) -> &[u8]) -> Result<Job, String> {
        let all = self.0.clone();
        job(move || {
            // As a router would: both families at the same time.
            let mut jobs = Vec::new();
            for (session, messages) in all {
                jobs.push(job(move || session.send(which(&messages)).map_err(|e| e.to_string()))?);
            }
            jobs.into_iter().try_for_each(ended)
        })
    }

    /// # Errors
    ///
    /// A session is over.
    pub fn alive(&self) -> Result<(), String> {
        self.0.iter().try_for_each(|(session, _)| session.alive().map_err(|e| e.to_string()))
    }

    /// Announces the whole table.
    ///
    /// # Errors
    ///
    /// There are no more threads.
    pub fn announce(&self) -> Result<Job, String> {
        self.send(|messages| &messages.announce)
    }

    /// Withdraws the whole table.
    ///
    /// # Errors
    ///
    /// There are no more threads.
    pub fn withdraw(&self) -> Result<Job, String> {
        self.send(|messages| &messages.withdraw)
    }
}

/// Waits for a job.
///
/// # Errors
///
/// What it says.
pub fn ended(job: Job) -> Result<(), String> {
    job.join().unwrap_or_else(|_| Err("a thread of the lab failed".into()))
}

/// Where routes come from.
pub enum Source {
    /// A peer of the daemon's.
    Peer(Peer),
    /// The lab writes into the kernel's table: messages that add and that remove.
    Kernel(Arc<KernelTable>, [Arc<Vec<Vec<u8>>>; 2]),
    /// The lab sends frames, of which so many are answered.
    Fpm(Arc<TcpStream>, [Arc<Vec<u8>>; 2], u64, Arc<AtomicBool>),
}

impl Source {
    /// The daemon is started and connected.
    ///
    /// # Errors
    ///
    /// Something of it fails.
    pub fn open(bed: &mut RoutingBed, daemon: Daemon, table: &Table) -> Result<Self, String> {
        let [link, _] = &LINKS;
        if daemon.speaks_bgp() {
            let listening = Listening::start(&bed.peer(), bed.peer_system(), link, table)?;
            bed.start_daemon().map_err(|e| e.to_string())?;
            return listening.accept().map(Source::Peer).map_err(|why| match bed.alive() {
                Ok(()) => why,
                Err(died) => died.to_string(),
            });
        }
        let routes = bed.routes();
        let name = bed.way_out();
        let interface = run_in(Some(&routes), || Ok(nix::net::if_::if_nametoindex(name)))
            .map_err(|e| e.to_string())?
            .map_err(|e| format!("{name}: {e}"))?;
        let way = Way { interface, next_hop4: link.peer4, next_hop6: link.peer6 };
        if daemon == Daemon::Fpm {
            let at = SocketAddr::from(([127, 0, 0, 1], bed.fpm_port()));
            let stream = run_in(Some(&routes), || Ok(TcpStream::connect(at)));
            let stream = stream.map_err(|e| e.to_string())?.map_err(|e| format!("FPM at {at}: {e}"))?;
            let frames =
                [Change::Add, Change::Remove].map(|c| Arc::new(for_fpm(&table.four, &table.six, &way, c)));
            return Ok(Source::Fpm(Arc::new(stream), frames, table.len() as u64, Arc::default()));
        }
        let kernel = Arc::new(KernelTable::open(&routes)?);
        let pieces =
            [Change::Add, Change::Remove].map(|c| Arc::new(for_kernel(&table.four, &table.six, &way, c)));
        Ok(Source::Kernel(kernel, pieces))
    }

    /// Announces the whole table.
    ///
    /// # Errors
    ///
    /// There are no more threads.
    pub fn announce(&self) -> Result<Job, String> {
        match self {
            Source::Peer(peer) => peer.announce(),
            Source::Kernel(kernel, [add, _]) => write(kernel, add),
            Source::Fpm(stream, [add, _], routes, over) => frames(stream, add, *routes, over),
        }
    }

    /// Withdraws the whole table.
    ///
    /// # Errors
    ///
    /// There are no more threads.
    pub fn withdraw(&self) -> Result<Job, String> {
        match self {
            Source::Peer(peer) => peer.withdraw(),
            Source::Kernel(kernel, [_, remove]) => write(kernel, remove),
            // Nothing is answered to a route that goes.
            Source::Fpm(stream, [_, remove], _, over) => frames(stream, remove, 0, over),
        }
    }

    /// # Errors
    ///
    /// A session is over.
    pub fn alive(&self) -> Result<(), String> {
        match self {
            Source::Peer(peer) => peer.alive(),
            Source::Kernel(..) | Source::Fpm(..) => Ok(()),
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Source::Fpm(_, _, _, over) = self {
            over.store(true, Ordering::Relaxed);
        }
    }
}

fn write(kernel: &Arc<KernelTable>, pieces: &Arc<Vec<Vec<u8>>>) -> Result<Job, String> {
    let (kernel, pieces) = (kernel.clone(), pieces.clone());
    job(move || kernel.write(&pieces))
}

fn frames(
    stream: &Arc<TcpStream>,
    frames: &Arc<Vec<u8>>,
    answers: u64,
    over: &Arc<AtomicBool>,
) -> Result<Job, String> {
    let (stream, frames, over) = (stream.clone(), frames.clone(), over.clone());
    job(move || {
        replay(&stream, &frames, answers, &|| over.load(Ordering::Relaxed))
            .map(drop)
            .map_err(|e| format!("FPM: {e}"))
    })
}
