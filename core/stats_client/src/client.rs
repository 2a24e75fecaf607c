//! A connection to a router's counters that outlives the router.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::connect::fetch;
use crate::directory::{Directory, Name};
use crate::segment::{Header, Segment};
use crate::{Counter, Error};

/// How long a reading may be retried, because the structure changed meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long to wait before looking again whether a change is over.
const PAUSE: Duration = Duration::from_micros(50);
/// A heart that has not beaten for so long makes the client ask whether the router is still there.
const SILENCE: Duration = Duration::from_secs(15);

/// A reader of one router's segment.
pub struct Client {
    /// The socket, and the device and inode of its file: a router that restarted has another. `None` for a segment that
    /// came otherwise.
    socket: Option<(PathBuf, (u64, u64))>,
    segment: Segment,
    directory: Option<Directory>,
    heartbeat: (u64, Instant),
}

impl Client {
    /// Fetches the segment through the router's socket.
    ///
    /// # Errors
    /// No router serves the socket, or what it serves is no segment of version 2.
    pub fn connect(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        // Before connecting: a socket that is replaced in between looks replaced afterwards too.
        let file = identity(&path)?;
        let segment = Segment::open(fetch(&path)?)?;
        Ok(Client { socket: Some((path, file)), segment, directory: None, heartbeat: (0, Instant::now()) })
    }

    /// Reads a segment whose descriptor came otherwise: a router's own.
    ///
    /// # Errors
    /// It is no segment of version 2.
    pub fn of(segment: OwnedFd) -> Result<Self, Error> {
        let segment = Segment::open(segment)?;
        Ok(Client { socket: None, segment, directory: None, heartbeat: (0, Instant::now()) })
    }

    /// The socket, if it came by one.
    pub fn path(&self) -> Option<&Path> {
        self.socket.as_ref().map(|(path, _)| path.as_path())
    }

    /// How often the directory's structure has changed.
    ///
    /// # Errors
    /// The segment cannot be read.
    pub fn epoch(&self) -> Result<u64, Error> {
        Ok(self.segment.header()?.epoch)
    }

    /// All names and their types, in the directory's order.
    ///
    /// # Errors
    /// The router has gone, or what it left cannot be read.
    pub fn list(&mut self) -> Result<Vec<Name>, Error> {
        self.follow()?;
        self.consistently(|_, directory| {
            Ok(directory.names.iter().filter(|n| !n.name.is_empty()).cloned().collect())
        })
    }

    /// The values of the names that are wanted, in the directory's order.
    ///
    /// # Errors
    /// The router has gone, or what it left cannot be read.
    pub fn read(&mut self, wanted: impl Fn(&str) -> bool) -> Result<Vec<Counter>, Error> {
        self.follow()?;
        self.consistently(|segment, directory| directory.values(segment, &wanted))
    }

    /// How often the router's collector has run; a number that stands still belongs to a router that does.
    ///
    /// # Errors
    /// The router has gone, or what it left cannot be read.
    pub fn heartbeat(&mut self) -> Result<u64, Error> {
        let counters = self.read(|name| name == "/sys/heartbeat")?;
        Ok(counters.first().map_or(0, |counter| counter.value.sum()))
    }

    /// Reconnects if the router restarted.
    fn follow(&mut self) -> Result<(), Error> {
        let Some((path, file)) = self.socket.clone() else { return Ok(()) };
        let replaced = identity(&path)? != file;
        // The first entry by VPP's contract; without asking for the others.
        let beat = self.consistently(|segment, directory| directory.number(segment, 0)).unwrap_or(0);
        if beat != self.heartbeat.0 {
            self.heartbeat = (beat, Instant::now());
        }
        let silent = self.heartbeat.1.elapsed() > SILENCE;
        if !replaced && !silent {
            return Ok(());
        }
        let new = Client::connect(path)?;
        if new.segment.identity == self.segment.identity {
            // It serves still, and beats slowly.
            (self.socket, self.heartbeat.1) = (new.socket, Instant::now());
        } else {
            *self = new;
        }
        Ok(())
    }

    /// Reads until nothing of the structure changed meanwhile.
    fn consistently<T>(
        &mut self,
        read: impl Fn(&Segment, &Directory) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            self.segment.begin();
            let before = self.segment.header()?;
            if before.in_progress == 0 {
                let result = self.attempt(before, &read);
                if self.segment.header()? == before {
                    return result;
                }
                // Whatever was read, or went wrong, was of two structures.
                self.directory = None;
            }
            if Instant::now() >= until {
                return Err(Error::Busy);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn attempt<T>(
        &mut self,
        header: Header,
        read: impl Fn(&Segment, &Directory) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let directory = match self.directory.take() {
            Some(directory) if directory.epoch == header.epoch => directory,
            _ => Directory::read(&self.segment, header.epoch, header.directory)?,
        };
        let result = read(&self.segment, &directory);
        self.directory = Some(directory);
        result
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("path", &self.path()).finish_non_exhaustive()
    }
}

fn identity(path: &Path) -> Result<(u64, u64), Error> {
    let meta = std::fs::symlink_metadata(path);
    let meta = meta.map_err(|source: io::Error| Error::Gone { path: path.to_owned(), source })?;
    Ok((meta.dev(), meta.ino()))
}
