//! The geometry of a receive ring, checked before the kernel sees it.

use std::time::Duration;

use super::rx_block::RingVersion;
use crate::Error;

/// Bytes that a block must hold besides frames: its header, one frame header with the vnet header, and
/// the kernel's alignment.
const BLOCK_OVERHEAD: usize = 256;
const SUPERFRAME: usize = 65_536 + 18;

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
    /// Bytes of a block: a power of two, at least 128 KiB so that a 64 KiB superframe fits.
    pub block_size: usize,
    /// Number of blocks, at least 2.
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
    /// 32 blocks of 256 KiB (8 MiB per queue), retired after 1 ms: measured, see the README.
    fn default() -> Self {
        Self {
            version: RingVersion::V3,
            block_size: 256 << 10,
            blocks: 32,
            retire: Duration::from_millis(1),
            fanout: Fanout::Alone,
            promiscuous: Promiscuous::Off,
        }
    }
}

impl RxConfig {
    /// A TPACKET_V2 ring: a lone frame is handed over at once, and it takes a slot that could hold a superframe, so
    /// that there are fewer: 128 slots of 68 KiB.
    pub fn low_latency() -> Self {
        Self { version: RingVersion::V2, block_size: 17 * 4096, blocks: 128, ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let config = |what, value, rule| Err(Error::Config { what, value, rule });
        let shape = match self.version {
            RingVersion::V3 => self.block_size.is_power_of_two(),
            RingVersion::V2 => self.block_size.is_multiple_of(4096),
        };
        if !shape || !(SUPERFRAME + BLOCK_OVERHEAD..=1 << 26).contains(&self.block_size) {
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
        let good = RxConfig::default();
        good.check().unwrap();
        RxConfig::low_latency().check().unwrap();
        for bad in [
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
