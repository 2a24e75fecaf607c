//! Accepts clients.

use std::cell::RefCell;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use async_io::{Async, Timer};
use shoal_graph::process::Processes;
use shoal_module::api::{ApiPart, Clients};
use shoal_module::door::SocketFile;
use shoal_module::{Control, InitError};

use crate::link::Link;
use crate::server_context::ServerContext;
use crate::session;
use crate::socket;
use crate::table::Table;
use crate::trace::Trace;

/// Clients at a time.
const MOST: usize = 4096;

/// Where the API is served, and what it offers; the daemon puts this on the shelf before modules start.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A path, `unix:PATH` or `abstract:NAME`.
    pub socket: PathBuf,
    /// The group that may connect, besides the owner.
    pub gid: Option<u32>,
    /// The messages of all modules.
    pub parts: Vec<&'static ApiPart>,
}

/// The server, on the shelf.
pub struct Server {
    pub(crate) desk: Rc<ServerContext>,
    file: RefCell<Option<SocketFile>>,
}

impl Server {
    /// Messages that were not answered, by reason.
    pub fn drops(&self) -> Vec<(&'static str, u64)> {
        self.desk.drops().collect()
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.desk.open.get()
    }

    /// Removes the socket's file: clients watch for that and reconnect.
    pub fn close(&self) {
        self.file.borrow_mut().take();
    }
}

/// Puts on the shelf what features need to tell clients of events.
pub fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put(Clients::default());
    Ok(())
}

/// Serves the API, if the shelf has [`Settings`].
pub fn start(control: &Rc<Control>) -> Result<(), InitError> {
    control.get::<Settings>().map_or(Ok(()), |settings| serve(control, &settings))
}

/// Serves the API.
///
/// # Errors
/// The socket cannot be had, or two messages have one name.
pub fn serve(control: &Rc<Control>, settings: &Settings) -> Result<(), InitError> {
    let failed = |error: &dyn std::fmt::Display| InitError::Other(error.to_string());
    let table = Table::new(settings.parts.iter().copied()).map_err(|e| failed(&e))?;
    let table = control.put(table);
    let clients = control.get::<Clients>()?;
    clients.number(table.iter().map(|(id, entry)| (entry.name.clone(), id)));
    let (socket, file) = socket::listen(&settings.socket, settings.gid).map_err(|e| failed(&e))?;
    let desk = Rc::new(ServerContext::new(Rc::clone(control), table, clients, Trace::configured(control)));
    control.put(Server { desk: Rc::clone(&desk), file: RefCell::new(file) });
    let processes = control.processes()?;
    processes.spawn("api-rx-from-ring", accept(desk, socket, (*processes).clone()));
    Ok(())
}

async fn accept(desk: Rc<ServerContext>, socket: Async<UnixListener>, processes: Processes) {
    loop {
        match socket.accept().await {
            Ok((stream, _)) => welcome(&desk, stream, &processes),
            Err(error) => {
                // Out of file descriptors, most likely: trying at once again would spin.
                tracing::warn!(%error, "the API cannot accept a client");
                Timer::after(Duration::from_millis(200)).await;
            }
        }
    }
}

/// Counts itself among the connections.
struct ConnectionGuard(Rc<ServerContext>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get().saturating_sub(1));
    }
}

fn welcome(desk: &Rc<ServerContext>, stream: Async<UnixStream>, processes: &Processes) {
    let open = desk.open.get();
    if open >= MOST {
        tracing::warn!("{open} clients of the API are connected, one more is turned away");
        return;
    }
    desk.open.set(open + 1);
    let seat = ConnectionGuard(Rc::clone(desk));
    let link = Rc::new(Link::new(stream));
    processes.spawn_unlisted(async move {
        session::serve(Rc::clone(&seat.0), link).await;
        drop(seat);
    });
}
