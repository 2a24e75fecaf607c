//! The queues of one host interface, opened together.

use shoal_link::{AdminState, IfIndex, Layer, Link, set_admin_state};

use crate::send::Sender;
use crate::{Error, Qdisc, RingVersion, RxConfig, RxRing, TxConfig, TxQueue};

/// Frames sent by one system call.
pub(crate) const TX_BATCH: usize = 64;

/// Who completes the checksums of packets that are sent, and cuts large ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TxOffload {
    /// The kernel, or the device it knows to be able to.
    #[default]
    Kernel,
    /// The router, before the kernel sees them (VPP's `cksum-gso-disable`).
    Router,
}

/// How many queues, and of which kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueConfig {
    pub(crate) rx: usize,
    pub(crate) tx: usize,
    pub(crate) qdisc: Qdisc,
    pub(crate) version: RingVersion,
    pub(crate) offload: TxOffload,
    pub(crate) layer: Layer,
}

impl QueueConfig {
    /// Geometry of the receive rings.
    pub(crate) fn ring(&self, link: &Link) -> RxConfig {
        match self.version {
            RingVersion::V3 => RxConfig::blocks(),
            RingVersion::V2 => RxConfig::slots(link.mtu),
        }
    }

    /// Opens all queues of an interface, or none.
    pub(crate) fn open(&self, link: &Link) -> Result<(Vec<RxRing>, Vec<Sender>), Error> {
        Ok((self.open_rx(link)?, self.open_tx(link.index)?))
    }

    fn open_rx(&self, link: &Link) -> Result<Vec<RxRing>, Error> {
        let config = self.ring(link);
        match RxRing::open_queues(link.index, &config, self.rx) {
            // Before Linux 6.14 a fanout needs an interface that is up.
            Err(e) if e.errno() == Some(libc::EINVAL) && self.rx > 1 && link.admin == AdminState::Down => {
                set_admin_state(link.index, AdminState::Up)?;
                RxRing::open_queues(link.index, &config, self.rx)
            }
            opened => opened,
        }
    }

    pub(crate) fn open_tx(&self, link: IfIndex) -> Result<Vec<Sender>, Error> {
        let config = TxConfig { batch: TX_BATCH, qdisc: self.qdisc, ..TxConfig::default() };
        let sender = |_| Ok(Sender::new(TxQueue::open(link, &config)?, self.offload, self.layer));
        (0..self.tx).map(sender).collect()
    }
}
