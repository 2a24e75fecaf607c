//! Connections of bfdd: one at a time.

use std::future::Future;
use std::io;
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;

use async_io::{Async, Timer};
use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use shoal_graph::process::{Processes, Receiver, channel};
use shoal_interface::HostSide;
use shoal_lcp::{ConnectionTaker, DaemonAddress};
use shoal_module::cli::Pace;

use crate::control::{Counts, Dataplane, QUEUE};
use crate::message::{HEADER, Header, Message};

/// How long a peer may not read what it is told.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often sessions that wait are looked at, and a bfdd that is away.
const AGAIN: Duration = Duration::from_secs(1);

/// Takes bfdd's connections.
pub(crate) struct Bfdd {
    pub plane: Rc<Dataplane>,
    pub processes: Processes,
}

impl ConnectionTaker for Bfdd {
    const NAME: &'static str = "bfd-dataplane";

    fn is_busy(&self) -> bool {
        self.plane.is_busy()
    }

    fn turned_away(&self) {
        Counts::one(&self.plane.counts.turned_away);
    }

    fn serve(&self, stream: Async<TcpStream>) -> impl Future<Output = ()> + 'static {
        serve(Rc::clone(&self.plane), stream, self.processes.clone())
    }
}

/// Connects to bfdd again and again, until the other end of `closed` is dropped.
pub(crate) async fn connect(
    plane: Rc<Dataplane>,
    (address, side): (DaemonAddress, Option<Rc<HostSide>>),
    closed: Receiver<()>,
    processes: Processes,
) {
    let stop = async {
        let _ = closed.recv().await;
    };
    let again_and_again = async {
        let mut is_noted = false;
        loop {
            match address.connect(side.as_deref()).await {
                Ok(stream) => {
                    is_noted = false;
                    serve(Rc::clone(&plane), stream, processes.clone()).await;
                }
                Err(error) if !is_noted => {
                    is_noted = true;
                    tracing::info!("bfd-dataplane: no bfdd at {}: {error}", address.at);
                }
                Err(_) => {}
            }
            processes.sleep(AGAIN).await;
        }
    };
    future::or(stop, again_and_again).await;
}

async fn serve(plane: Rc<Dataplane>, stream: Async<TcpStream>, processes: Processes) {
    let (tell, told) = channel(QUEUE);
    let (open, closed) = channel::<()>(1);
    let generation = plane.connected(tell, open, processes.clock().now());
    tracing::info!("bfd-dataplane: bfdd is connected");
    let stop = async {
        let _ = closed.recv().await;
        Ok(())
    };
    let again = async {
        loop {
            processes.sleep(AGAIN).await;
            plane.look_again();
        }
    };
    let work = future::or(read(&plane, &stream), future::or(write(&stream, told), again));
    match future::or(stop, work).await {
        Ok(()) => tracing::info!("bfd-dataplane: the connection has ended"),
        Err(error) => tracing::warn!("bfd-dataplane: the connection has ended: {error}"),
    }
    plane.disconnected(generation);
}

/// Reads messages to the end.
async fn read(plane: &Dataplane, mut stream: &Async<TcpStream>) -> io::Result<()> {
    let pace = Pace::default();
    loop {
        let mut header = [0; HEADER];
        match stream.read_exact(&mut header).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let header = Header::read(&header).map_err(io::Error::other)?;
        let mut rest = vec![0; header.rest];
        stream.read_exact(&mut rest).await?;
        plane.hear(header.version, header.id, Message::read(header.kind, &rest));
        pace.give_way().await;
    }
}

/// Writes what bfdd is told.
async fn write(mut stream: &Async<TcpStream>, told: Receiver<Vec<u8>>) -> io::Result<()> {
    while let Ok(message) = told.recv().await {
        let late = async {
            Timer::after(PATIENCE).await;
            Err(io::Error::other("bfdd does not read what it is told"))
        };
        future::or(stream.write_all(&message), late).await?;
    }
    Ok(())
}
