//! A port that is a TAP: what the engine sends, the kernel receives on an interface, and the other way round.

use std::path::{Path, PathBuf};

use shoal_link::Link;
use shoal_tap::{HostConfig, Lifetime, NetnsRef, Offload, RecvError, SendError, Tap, TapConfig, TapQueue};
use shoal_vnet::VnetHdr;

use super::interface::InterfaceError;
use super::namespace::run_in;
use super::{Drops, Flushed, PortError, Received, Transport};

/// Frames that the kernel holds for a reader (`tun`'s default queue length).
const QUEUE: u32 = 500;
/// Longest frame that is read: of an interface with the largest MTU, with its link layer.
const LONGEST: usize = 65_536 + 64;

/// A TAP. One that was made for it goes away with it.
pub struct TapPort {
    queue: TapQueue,
    _tap: Tap,
    name: String,
    longest: usize,
    incoming: Box<[u8]>,
    outgoing: Box<[u8]>,
    kept: Option<usize>,
    accepted: usize,
    refused: u64,
    drops: Drops,
    gone: bool,
}

impl TapPort {
    /// Makes the TAP `name`, up, in the namespace that the file at `namespace` is; one that is there already is attached to
    /// and stays.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn open(namespace: Option<&Path>, name: &str) -> Result<TapPort, InterfaceError> {
        let there = run_in(namespace, || Ok(Link::by_name(name).is_ok()))?;
        let lifetime = if there { Lifetime::Attached } else { Lifetime::Temporary };
        let netns = namespace.map(PathBuf::from).map(NetnsRef::Path);
        let host = HostConfig { netns, ..HostConfig::default() };
        let config = TapConfig {
            name: Some(name.to_owned()),
            offload: Offload::Nothing,
            lifetime,
            host,
            ..TapConfig::default()
        };
        let (tap, queues) = Tap::create(&config)?;
        let link = run_in(namespace, || Ok(Link::by_name(name)?))?;
        let none =
            || InterfaceError::Transport { name: name.to_owned(), asked: "tap without a queue".into() };
        let queue = queues.into_iter().next().ok_or_else(none)?;
        Ok(TapPort {
            queue,
            _tap: tap,
            name: format!("tap {name}"),
            longest: link.mtu as usize + 14,
            incoming: vec![0; LONGEST].into(),
            outgoing: vec![0; LONGEST].into(),
            kept: None,
            accepted: 0,
            refused: 0,
            drops: Drops::default(),
            gone: false,
        })
    }

    /// Hands the frame that was written to the kernel; whether it took it.
    fn put(&mut self, length: usize) -> Result<bool, PortError> {
        let frame = self.outgoing.get(..length).unwrap_or_default();
        match self.queue.send(VnetHdr::default(), [frame]) {
            Ok(()) => {}
            Err(SendError::QueueFull) => {
                self.kept = Some(length);
                self.refused += 1;
                return Ok(false);
            }
            Err(SendError::Invalid | SendError::TooManySegments) => {
                return Err(PortError::TooLong { length, most: self.longest });
            }
            Err(SendError::Down | SendError::Errno(_)) => self.drops.sending += 1,
            Err(SendError::Gone) => {
                self.drops.sending += 1;
                self.gone = true;
            }
        }
        self.accepted += 1;
        Ok(true)
    }
}

impl Transport for TapPort {
    fn kind(&self) -> &'static str {
        "tap"
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn ring(&self) -> u32 {
        QUEUE
    }

    fn most_frame(&self) -> usize {
        self.longest
    }

    fn receive(&mut self, most: usize, take: &mut impl FnMut(Received<'_>)) -> Result<usize, PortError> {
        for count in 0..most {
            match self.queue.recv([&mut *self.incoming]) {
                Ok(frame) => {
                    take(Received { bytes: self.incoming.get(..frame.len).unwrap_or_default(), stamp: None });
                }
                Err(RecvError::Empty | RecvError::Down) => return Ok(count),
                Err(RecvError::Gone) => {
                    self.gone = true;
                    return Ok(count);
                }
                Err(e) => return Err(PortError::Other(e.to_string())),
            }
        }
        Ok(most)
    }

    fn send(
        &mut self,
        length: usize,
        most: usize,
        write: &mut impl FnMut(&mut [u8]),
    ) -> Result<usize, PortError> {
        if length > self.longest {
            return Err(PortError::TooLong { length, most: self.longest });
        }
        if let Some(kept) = self.kept.take()
            && !self.put(kept)?
        {
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

    fn flush(&mut self) -> Result<Flushed, PortError> {
        if let Some(kept) = self.kept.take() {
            self.put(kept)?;
        }
        let (accepted, refused) = (std::mem::take(&mut self.accepted), std::mem::take(&mut self.refused));
        Ok(Flushed { accepted, refused })
    }

    fn drops(&mut self) -> Result<Drops, PortError> {
        Ok(self.drops)
    }

    fn is_attached(&self) -> bool {
        !self.gone
    }
}
