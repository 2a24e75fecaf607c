//! A port over memif: shared memory with another process, or within this one.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use shoal_memif::{Found, Place, Refusal};

use super::memif_words::{LONGEST, MemifEnd, MemifError, RING_FRAMES};
use super::{Drops, Flushed, PortError, Received, Transport};

/// Between two tries to get a peer back.
const AGAIN: Duration = Duration::from_millis(5);

/// Refusals in a row after which it is asked whether the peer lives: a system call.
const LOOK_AFTER: u32 = 256;

/// How a peer that went away is got back.
enum Return {
    /// It is not: there is no socket to ask at.
    Never,
    /// By connecting again.
    Connect { place: Place, id: u32, coming: Option<Coming> },
}

/// A thread that tries. It ends when `wanted` has no owner any more.
struct Coming {
    end: Receiver<MemifEnd>,
    _wanted: Arc<()>,
}

/// One end of a memif.
pub struct MemifPort {
    end: Option<MemifEnd>,
    back: Return,
    name: String,
    found: Found,
    /// Where a frame is put together that is read or written: the peer could change it under us where it lies.
    frame: Box<[u8]>,
    /// What is to be sent next: bytes of it, if it was written and there was no room in the ring.
    outgoing: Box<[u8]>,
    kept: Option<usize>,
    accepted: usize,
    refused: u64,
    /// Refusals in a row.
    waiting: u32,
    drops: Drops,
}

impl MemifPort {
    /// Attaches as a slave to the master that listens at `socket`.
    ///
    /// # Errors
    ///
    /// It is not there, refuses, or does not answer in time.
    pub fn attach(socket: &Path, id: u32) -> Result<MemifPort, MemifError> {
        let place = Place::of(&socket.to_string_lossy(), Path::new("/"))?;
        let end = MemifEnd::slave(&place, id)?;
        let name = format!("memif {} id {id}", socket.display());
        Ok(MemifPort::new(end, name, Return::Connect { place, id, coming: None }))
    }

    /// Is the master of the slave that has connected to `socket` and wants interface `id`.
    ///
    /// # Errors
    ///
    /// It goes away, wants something else, or does not answer in time.
    pub fn serve(socket: OwnedFd, id: u32) -> Result<MemifPort, MemifError> {
        Ok(MemifPort::new(MemifEnd::master(socket, id)?, format!("memif id {id}, master"), Return::Never))
    }

    /// A slave and its master in this process, joined: what one sends the other receives.
    ///
    /// # Errors
    ///
    /// The system gives no memory or sockets.
    pub fn pair() -> Result<[MemifPort; 2], MemifError> {
        let failed = |source: std::io::Error| MemifError::Socket { place: "memif pair".into(), source };
        // An abstract name: nothing is left behind, whatever happens.
        let place = Place::Abstract(format!("shoal-lab-{}-{:016x}", std::process::id(), fastrand::u64(..)));
        let listening = listen(&place).map_err(failed)?;
        let slave = std::thread::Builder::new()
            .name("lab-memif".into())
            .spawn(move || MemifEnd::slave(&place, 0))
            .map_err(failed)?;
        let socket = rustix::net::accept(&listening).map_err(|e| failed(e.into()))?;
        let master = MemifEnd::master(socket, 0)?;
        let slave =
            slave.join().map_err(|_| failed(std::io::Error::other("the slave's thread panicked")))??;
        let port = |end, side: &str| MemifPort::new(end, format!("memif pair, {side}"), Return::Never);
        Ok([port(slave, "slave"), port(master, "master")])
    }

    fn new(end: MemifEnd, name: String, back: Return) -> MemifPort {
        let memory = || vec![0; LONGEST].into();
        MemifPort {
            end: Some(end),
            back,
            name,
            found: Found::default(),
            frame: memory(),
            outgoing: memory(),
            kept: None,
            accepted: 0,
            refused: 0,
            waiting: 0,
            drops: Drops::default(),
        }
    }

    /// Puts the frame that was written into the ring; whether there was room.
    #[inline]
    fn put(&mut self, length: usize) -> Result<bool, PortError> {
        let frame = self.outgoing.get(..length).unwrap_or_default();
        match self.end.as_mut().map(|end| end.tx.send_parts(std::iter::once(frame))) {
            Some(Ok(())) => self.waiting = 0,
            Some(Err(Refusal::Full)) => {
                self.kept = Some(length);
                self.refused += 1;
                self.waiting += 1;
                // A peer that has died does not keep up either, and the frames that are due meanwhile must not wait for it.
                if self.waiting.is_multiple_of(LOOK_AFTER) {
                    self.tend();
                }
                return Ok(false);
            }
            Some(Err(Refusal::TooLong)) => return Err(PortError::TooLong { length, most: LONGEST }),
            // As a cable does that somebody has pulled.
            Some(Err(Refusal::Lie)) => {
                self.drops.sending += 1;
                self.end = None;
            }
            None => self.drops.sending += 1,
        }
        self.accepted += 1;
        Ok(true)
    }

    /// Sees how far the peer has come, and puts in what was kept; whether there is room for more.
    #[inline]
    fn make_room(&mut self) -> Result<bool, PortError> {
        if self.end.as_mut().is_some_and(|end| end.tx.begin().is_err()) {
            self.end = None;
        }
        match self.kept.take() {
            Some(length) => self.put(length),
            None => Ok(true),
        }
    }
}

/// Tries to get a peer back, on a thread of its own: words take time that the engine does not have.
fn try_again(place: &Place, id: u32) -> Option<Coming> {
    let (give, end) = channel();
    let wanted = Arc::new(());
    let (place, still) = (place.clone(), Arc::downgrade(&wanted));
    let connect = move || {
        while still.strong_count() > 0 {
            if let Ok(end) = MemifEnd::slave(&place, id) {
                let _ = give.send(end);
                return;
            }
            std::thread::sleep(AGAIN);
        }
    };
    std::thread::Builder::new().name("lab-memif".into()).spawn(connect).ok()?;
    Some(Coming { end, _wanted: wanted })
}

/// A socket that a slave in this process connects to.
fn listen(place: &Place) -> Result<OwnedFd, std::io::Error> {
    let Place::Abstract(name) = place else {
        return Err(std::io::Error::other("the pair's socket has no file"));
    };
    let address = rustix::net::SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(kind.0, kind.1, kind.2, None)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, 1)?;
    Ok(socket)
}

impl Transport for MemifPort {
    fn kind(&self) -> &'static str {
        "memif"
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn ring(&self) -> u32 {
        self.end.as_ref().map_or(RING_FRAMES, |end| end.ring)
    }

    fn most_frame(&self) -> usize {
        LONGEST
    }

    #[inline]
    fn receive(&mut self, most: usize, take: &mut impl FnMut(Received<'_>)) -> Result<usize, PortError> {
        if self.end.is_none() {
            // At each look, so that the end of a reset is seen when it comes.
            self.tend();
        }
        let Some(end) = &mut self.end else { return Ok(0) };
        let mut count = 0;
        while count < most {
            if end.rx.find(&mut self.found).is_err() {
                self.end = None;
                break;
            }
            if self.found.is_empty() {
                break;
            }
            self.drops.full += u64::from(u32::from(end.rx.waiting()) >= end.ring);
            for i in 0..self.found.len() {
                let mut length = 0;
                for part in self.found.packet(i) {
                    let to = self.frame.get_mut(length..length + part.length as usize);
                    let copied = to.and_then(|to| end.regions.copy_out(part.region, part.offset, to));
                    length += copied.map_or(0, |()| part.length as usize);
                }
                take(Received { bytes: self.frame.get(..length).unwrap_or_default(), stamp: None });
            }
            count += self.found.len();
            end.rx.release(&self.found);
        }
        Ok(count)
    }

    #[inline]
    fn send(
        &mut self,
        length: usize,
        most: usize,
        write: &mut impl FnMut(&mut [u8]),
    ) -> Result<usize, PortError> {
        if length > LONGEST {
            return Err(PortError::TooLong { length, most: LONGEST });
        }
        if !self.make_room()? {
            return Ok(0);
        }
        for sent in 0..most {
            if let Some(frame) = self.outgoing.get_mut(..length) {
                write(frame);
            }
            if !self.put(length)? {
                return Ok(sent + 1);
            }
        }
        Ok(most)
    }

    #[inline]
    fn flush(&mut self) -> Result<Flushed, PortError> {
        if self.kept.is_some() {
            self.make_room()?;
        }
        if let Some(end) = &mut self.end {
            end.tx.publish();
        }
        let (accepted, refused) = (std::mem::take(&mut self.accepted), std::mem::take(&mut self.refused));
        Ok(Flushed { accepted, refused })
    }

    fn drops(&mut self) -> Result<Drops, PortError> {
        Ok(self.drops)
    }

    fn tend(&mut self) {
        if self.end.as_ref().is_some_and(|end| !end.is_alive()) {
            self.end = None;
        }
        if self.end.is_some() {
            return;
        }
        let Return::Connect { place, id, coming } = &mut self.back else { return };
        match coming.as_ref().map(|coming| coming.end.try_recv()) {
            Some(Ok(end)) => {
                self.end = Some(end);
                *coming = None;
            }
            Some(Err(TryRecvError::Empty)) => {}
            Some(Err(TryRecvError::Disconnected)) | None => *coming = try_again(place, *id),
        }
    }

    fn is_attached(&self) -> bool {
        self.end.is_some()
    }
}
