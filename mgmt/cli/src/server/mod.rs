//! The command line on a UNIX stream socket or a TCP port.
//!
//! One socket speaks two protocols. Everybody is greeted with VPP's telnet options; a client that answers
//! with the terminal type `vppctl` gets VPP's non-interactive protocol (a NUL byte after each executed line),
//! any other gets a prompt. A client whose first byte is `{` speaks lines of JSON instead: see `json.rs`; it skips what
//! the server sent before the first `{`.
//!
//! A client costs bounded memory: input lines of 1 MiB, 1 MiB of output that it has not read, and ten
//! seconds in which it must read some of it. Answers as long as a table are made while it reads. When all sessions are
//! in use, one that has been idle for a minute gives way to a new one, and some are kept for the router's own user. A
//! port also hears from web pages; a client that speaks HTTP is hung up on before any of its lines is taken for a
//! command.

mod edit;
mod json;
mod link;
mod session_table;
mod socket;
mod stream;
mod telnet;
mod terminal;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use async_io::Timer;

use shoal_module::Control;

use crate::session::Cli;
use crate::sessions::{Sessions, Style};
use link::Link;
use session_table::{Limits, SessionTable};
pub use socket::{ListenError, Listener, listen};
use stream::Stream;
use terminal::SessionEnd;

/// A task of one session.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Runs tasks on the control thread.
pub trait Spawn {
    /// Starts a task; it runs until it ends.
    fn spawn(&self, task: Task);
}

impl<F: Fn(Task)> Spawn for F {
    fn spawn(&self, task: Task) {
        self(task);
    }
}

/// Where the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A UNIX socket of this file.
    Path(PathBuf),
    /// A TCP port. No password is asked for: every host that can connect controls the router.
    Tcp(SocketAddr),
}

/// How the socket looks and what it allows.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens.
    pub address: Address,
    /// The group that may connect to the socket's file, besides the owner; the owner's own if not given.
    pub gid: Option<u32>,
    /// What interactive sessions print before each line.
    pub prompt: String,
    /// What interactive sessions print first.
    pub banner: String,
    /// Sessions at a time.
    pub max_sessions: usize,
    /// Sessions of these that only the router's own user and root get, at a UNIX socket.
    pub reserved_sessions: usize,
    /// How long a session may say nothing before it gives way, when there are too many.
    pub idle_limit: Duration,
    /// How long a client may leave output unread.
    pub write_deadline: Duration,
}

impl Settings {
    /// The usual settings for a socket at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::at(Address::Path(path.into()))
    }

    /// The usual settings for a server anywhere.
    pub fn at(address: Address) -> Self {
        Self {
            address,
            gid: None,
            prompt: "shoal# ".into(),
            banner: String::new(),
            max_sessions: 64,
            reserved_sessions: 4,
            idle_limit: Duration::from_mins(1),
            write_deadline: Duration::from_secs(10),
        }
    }
}

/// What every session needs.
pub(crate) struct ServerContext {
    cli: Rc<Cli>,
    control: Rc<Control>,
    settings: Settings,
    seats: SessionTable,
    sessions: Rc<Sessions>,
}

/// One open session.
struct SessionGuard(Rc<ServerContext>, Rc<Link>);

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.0.seats.leave(&self.1);
    }
}

impl Listener {
    /// Accepts clients until the task is dropped; the socket's file goes with it.
    pub async fn serve(self, cli: Rc<Cli>, control: Rc<Control>, spawn: impl Spawn) {
        // A command line without the module has nothing that lists them.
        let sessions = control.get::<Sessions>().unwrap_or_default();
        let settings = self.settings.clone();
        let desk =
            Rc::new(ServerContext { cli, control, settings, seats: SessionTable::default(), sessions });
        loop {
            match self.accept().await {
                Ok(stream) => welcome(&desk, stream, &spawn),
                Err(error) => {
                    // Out of file descriptors, most likely: trying at once again would spin.
                    tracing::warn!(%error, "the command line cannot accept a client");
                    Timer::after(Duration::from_millis(200)).await;
                }
            }
        }
    }
}

fn welcome(desk: &Rc<ServerContext>, stream: Stream, spawn: &impl Spawn) {
    let Settings { max_sessions, reserved_sessions, idle_limit, .. } = desk.settings;
    let (whose, local) = (stream.whose(), !stream.is_tcp());
    let limits = Limits {
        most: max_sessions,
        // A port has no owner to keep them for.
        reserved: if local { reserved_sessions } else { 0 },
        idle: idle_limit,
    };
    let link = Rc::new(Link::new(stream, desk.settings.write_deadline, &desk.sessions));
    if !desk.seats.take(whose, &link, limits) {
        let open = desk.seats.open();
        let refusal = format!("all {open} sessions of the command line are in use, try again later\n");
        // The socket buffer of a new client is empty, so this does not block; if it fails, it has left.
        let _: io::Result<usize> = link.write_now(refusal.as_bytes());
        return;
    }
    let seat = SessionGuard(Rc::clone(desk), Rc::clone(&link));
    spawn.spawn(Box::pin(async move {
        let talk = async {
            talk(&seat.0, &link).await;
            link.drain().await;
        };
        futures_lite::future::or(talk, link.pump()).await;
        drop(seat);
    }));
}

/// Finds out which protocol the client speaks, and speaks it. One that speaks JSON may have had a greeting and a prompt before.
async fn talk(desk: &ServerContext, link: &Rc<Link>) {
    if link.send(telnet::GREETING).await.is_err() {
        return;
    }
    let in_time = link.wait_input(terminal::NEGOTIATION).await && link.peek() == Some(b'{');
    if in_time || terminal::session(desk, link).await == SessionEnd::SpeaksJson {
        link.session.style.set(Style::Json);
        link.session.stays.set(false);
        json::session(desk, link).await;
    }
}
