//! One of the engine's two ports, whatever wire it is on.
//!
//! The engine asks a port for what has come and lends it a place to write: a frame is written once, where the wire wants
//! it or as near as safe code gets, and read where it lies. All calls return at once.

mod dpdk;
mod dpdk_plugin;
mod dpdk_words;
mod interface;
mod memif;
mod memif_words;
mod namespace;
mod packet;
mod tap;
mod xdp;

use thiserror::Error;

pub use dpdk::DpdkPort;
pub use dpdk_plugin::{DpdkError, DpdkPlugin, DpdkSettings, dpdk_plugin, dpdk_settings};
pub use interface::InterfaceError;
pub use memif::MemifPort;
pub use memif_words::{MemifEnd, MemifError, RING_FRAMES as MEMIF_RING};
pub use namespace::run_in;
pub use packet::PacketPort;
pub use tap::TapPort;
pub use xdp::XdpPort;

/// A frame that came.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// From the destination MAC on, without FCS.
    pub bytes: &'a [u8],
    /// When it came, in nanoseconds of the engine's clock, if the wire knows better than the thread that polls it.
    pub stamp: Option<u64>,
}

/// What became of frames that were handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Taken since the last time, in the order in which they were written.
    pub accepted: usize,
    /// Times that the wire refused one; the frame is kept and offered again.
    pub refused: u64,
}

/// What a port has lost since it was opened. Each number only rises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Frames that came and for which the port's own ring had no room.
    pub receiving: u64,
    /// Frames that were accepted and then told to be lost.
    pub sending: u64,
    /// Times that the receive ring was found full to the last slot, so that the peer may have dropped what it could not
    /// put in. How many frames that were, only the peer knows.
    pub full: u64,
}

impl Drops {
    /// What was added since `before`.
    pub(crate) fn since(self, before: Drops) -> Drops {
        Drops {
            receiving: self.receiving.saturating_sub(before.receiving),
            sending: self.sending.saturating_sub(before.sending),
            full: self.full.saturating_sub(before.full),
        }
    }
}

/// Why a port is of no use any more.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PortError {
    /// The other end is not there.
    #[error("the peer has gone and has not come back")]
    Gone,
    /// The device is not there any more.
    #[error("its device has gone and does not come back: it has to be attached again")]
    Unplugged,
    /// Longer than the port takes.
    #[error("a frame of {length} bytes; at most {most} can be sent here")]
    TooLong {
        /// Without FCS.
        length: usize,
        /// Without FCS.
        most: usize,
    },
    /// Something else.
    #[error("{0}")]
    Other(String),
}

/// One port.
pub trait Transport {
    /// Its kind: `memif`, `af-packet`, `af-xdp`, `tap`, `dpdk`, `synthetic`.
    fn kind(&self) -> &'static str;

    /// For messages: the kind and which one it is.
    fn name(&self) -> String;

    /// Frames that its receive ring holds.
    fn ring(&self) -> u32;

    /// Longest frame, without FCS.
    fn most_frame(&self) -> usize;

    /// Gives up to `most` frames that have come to `take`, and returns how many they were.
    ///
    /// # Errors
    ///
    /// Nothing will come any more.
    fn receive(&mut self, most: usize, take: &mut impl FnMut(Received<'_>)) -> Result<usize, PortError>;

    /// Has up to `most` frames of `length` bytes written by `write`, one call for each, and returns how many there was room
    /// for. They count as sent when [`flush`](Self::flush) says so.
    ///
    /// # Errors
    ///
    /// Such a frame can never be sent.
    fn send(
        &mut self,
        length: usize,
        most: usize,
        write: &mut impl FnMut(&mut [u8]),
    ) -> Result<usize, PortError>;

    /// Gives what was written to the wire.
    ///
    /// # Errors
    ///
    /// Nothing can be sent any more.
    fn flush(&mut self) -> Result<Flushed, PortError>;

    /// What it has lost so far.
    ///
    /// # Errors
    ///
    /// The kernel does not say.
    fn drops(&mut self) -> Result<Drops, PortError>;

    /// Looks after the connection; called ten times a second. A port whose peer goes away takes frames and loses them, as
    /// an unplugged cable does, and tries to get the peer back.
    fn tend(&mut self) {}

    /// Whether the peer is there.
    fn is_attached(&self) -> bool {
        true
    }

    /// A trial begins at `moment` of the engine's clock.
    fn begin(&mut self, _moment: u64) {}

    /// When something will come next, if the port knows the future; only a simulated one does.
    fn next_event(&self) -> Option<u64> {
        None
    }
}
