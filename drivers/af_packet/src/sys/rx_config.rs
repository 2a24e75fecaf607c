//! The geometry of a receive ring, checked before the kernel sees it.

use std::time::Duration;

use super::rx_block::RingVersion;
use crate::Error;

/// Bytes that a block must hold besides frames: its header, one frame header with the vnet header, and
/// the kernel's alignment.
const BLOCK_OVERHEAD: usize = 256;
const SUPERFRAME: usize = 65_536 + 18;
/// Bytes of a version 2 ring.
const RING: usize = 8 << 20;
/// What the kernel allocates at a time for one; slots lie in it without gaps.
const V2_PIECE: usize = 64 << 10;
/// A slot for frames of 1,500 bytes and less.
const MIN_SLOT: usize = 2048;
/// The largest slot that an MTU calls for: 512 of them are few enough.
const MAX_MTU_SLOT: usize = 16 << 10;

/// How several queues of an interface share its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fanout {
    /// A single queue gets everything. Costs nothing per frame.
    #[default]
    Alone,
    /// First queue of a new group, in which a flow's hash chooses the queue. The kernel picks an id that
    /// no other process uses; read it with [`crate::RxRing::fanout_id`].
    NewGroup,
    /// A further queue of that group.
    Join(u16),
}

/// Whether the interface is asked for frames that are not addressed to it. A router with its own MAC
/// addresses, or a bridge, wants them. Undone when the ring is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Promiscuous {
    /// As the interface is.
    #[default]
    Off,
    /// All frames.
    On,
}

/// Geometry of an [`crate::RxRing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxConfig {
    /// How frames are laid out and handed over.
    pub version: RingVersion,
    /// Bytes of a block: a power of two, at least 128 KiB so that a 64 KiB superframe fits. In version 2, of a slot: a
    /// power of two from 2 to 64 KiB.
    pub block_size: usize,
    /// Number of blocks, at least 2. In version 2, of slots: a power of two, at least 64.
    pub blocks: usize,
    /// How long the kernel may hold a block that is not full: the latency of a lone frame. Whole
    /// milliseconds, at least 1.
    pub retire: Duration,
    /// Sharing with further queues.
    pub fanout: Fanout,
    /// Promiscuous membership.
    pub promiscuous: Promiscuous,
}

impl Default for RxConfig {
    /// Version 2 for frames of 1,500 bytes.
    fn default() -> Self {
        Self::slots(1500)
    }
}

impl RxConfig {
    /// Version 3: 32 blocks of 256 KiB (8 MiB per queue), retired after 1 ms: measured, see the README.
    pub fn blocks() -> Self {
        Self {
            version: RingVersion::V3,
            block_size: 256 << 10,
            blocks: 32,
            retire: Duration::from_millis(1),
            fanout: Fanout::Alone,
            promiscuous: Promiscuous::Off,
        }
    }

    /// Version 2: 8 MiB per queue in slots that hold a frame of an interface with this MTU; longer ones, superframes
    /// above all, come by the socket.
    pub fn slots(mtu: u32) -> Self {
        let frame = usize::try_from(mtu).unwrap_or(usize::MAX).saturating_add(BLOCK_OVERHEAD);
        let slot = frame.clamp(MIN_SLOT, MAX_MTU_SLOT).next_power_of_two();
        Self { version: RingVersion::V2, block_size: slot, blocks: RING / slot, ..Self::blocks() }
    }

    /// Bytes that the kernel allocates in one piece.
    pub(super) fn piece(&self) -> usize {
        match self.version {
            RingVersion::V3 => self.block_size,
            RingVersion::V2 => V2_PIECE,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let config = |what, value, rule| Err(Error::Config { what, value, rule });
        if self.version == RingVersion::V2 {
            let slot = self.block_size;
            if !slot.is_power_of_two() || !(MIN_SLOT..=V2_PIECE).contains(&slot) {
                return config("slot size", slot as u64, "a power of two from 2048 to 65536");
            }
            if !self.blocks.is_power_of_two() || !(64..=65_536).contains(&self.blocks) {
                return config("number of slots", self.blocks as u64, "a power of two from 64 to 65536");
            }
            return Ok(());
        }
        let enough = (SUPERFRAME + BLOCK_OVERHEAD..=1 << 26).contains(&self.block_size);
        if !enough || !self.block_size.is_power_of_two() {
            return config("block size", self.block_size as u64, "a power of two from 131072 to 67108864");
        }
        if !(2..=4096).contains(&self.blocks) {
            return config("number of blocks", self.blocks as u64, "from 2 to 4096");
        }
        let ms = self.retire.as_millis();
        if !(1..=1000).contains(&ms) || !self.retire.subsec_nanos().is_multiple_of(1_000_000) {
            let rule = "whole milliseconds from 1 to 1000 (shown in microseconds)";
            return config("block retire timeout", self.retire.as_micros() as u64, rule);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_geometries_the_kernel_or_a_superframe_would_not_fit() {
        let (good, slots) = (RxConfig::blocks(), RxConfig::default());
        good.check().unwrap();
        for (mtu, slot) in [(0, 2048), (1500, 2048), (9000, 16_384), (65_535, 16_384), (u32::MAX, 16_384)] {
            let config = RxConfig::slots(mtu);
            config.check().unwrap();
            assert_eq!((config.block_size, config.block_size * config.blocks), (slot, 8 << 20), "{mtu}");
        }
        for bad in [
            RxConfig { block_size: 1024, ..slots },
            RxConfig { block_size: 2049, ..slots },
            RxConfig { block_size: 131_072, ..slots },
            RxConfig { blocks: 32, ..slots },
            RxConfig { blocks: 100, ..slots },
            RxConfig { block_size: 65_536, ..good },
            RxConfig { block_size: 200_000, ..good },
            RxConfig { block_size: 0, ..good },
            RxConfig { blocks: 1, ..good },
            RxConfig { retire: Duration::ZERO, ..good },
            RxConfig { retire: Duration::from_micros(1500), ..good },
        ] {
            assert!(matches!(bad.check(), Err(Error::Config { .. })), "{bad:?}");
        }
    }
}
