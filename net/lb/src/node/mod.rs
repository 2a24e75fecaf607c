//! Nodes.

pub mod balance;
pub mod encap;
pub mod return_path;

use std::io;
use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_buffer::slot::SlotKey;
use shoal_derive::ErrorCounters;
use shoal_graph::counter::{Counters, Simple};
use shoal_infra::Published;
use shoal_nat::icmp::Fault;
use shoal_nat::{Flow, LaterFragment};
use shoal_reassembly::L4;

use crate::config::Config;

/// Virtual addresses there may be.
pub const MOST_VIPS: usize = 1 << 16;

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no error
    #[severity(info)]
    #[counter("none")]
    Balanced,
    /// protocol not supported
    #[counter("proto_not_supported")]
    ProtoNotSupported,
    /// no server configured
    #[counter("no_server")]
    NoServer,
    /// no source address for the tunnel: lb conf
    #[counter("no_source")]
    NoSource,
    /// fragments whose ports are not known
    #[counter("fragments")]
    Fragments,
    /// malformed packets
    #[counter("malformed")]
    Malformed,
    /// packets too large for a tunnel, or left to a device to cut
    #[counter("too_large")]
    TooLarge,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Short | Fault::Checksum => Error::Malformed,
            Fault::Unsupported => Error::ProtoNotSupported,
        }
    }
}

/// What nodes and control plane share.
pub struct Shared {
    /// The configuration.
    pub config: Published<Config>,
    /// Packets of flows that are known, by virtual address.
    pub existing: Simple,
    /// Packets that begin a flow.
    pub first: Simple,
    /// Packets of flows for which there is no room.
    pub untracked: Simple,
    /// Packets dropped because there is no server.
    pub no_server: Simple,
    /// What the first fragment says.
    pub words: SlotKey<L4>,
}

impl Shared {
    pub(crate) fn new(counters: &Counters, words: SlotKey<L4>) -> io::Result<Arc<Self>> {
        // The names are VPP's, which have no path.
        let of = |name: &str| counters.simple(name, MOST_VIPS);
        Ok(Arc::new(Shared {
            config: Published::new(Config::default()),
            existing: of("packet from existing sessions")?,
            first: of("first session packet")?,
            untracked: of("untracked packet")?,
            no_server: of("no server configured")?,
            words,
        }))
    }

    /// The flow of a packet; of a fragment that is not the first by what shallow reassembly knows of it.
    #[inline(always)]
    pub(crate) fn flow(&self, is_ip6: bool, pkt: &Packet<'_>) -> Result<Flow, Fault> {
        let words = self.words.get(pkt);
        let later = (words.is_non_first_fragment != 0).then_some(LaterFragment {
            protocol: words.protocol,
            what: words.icmp_type_or_tcp_flags,
            sport: words.src_port,
            dport: words.dst_port,
        });
        Flow::read(is_ip6, pkt.data(), later)
    }
}
