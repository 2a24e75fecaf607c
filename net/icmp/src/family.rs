//! What differs between the families, so that errors and listening are written once.

use std::fmt;
use std::net::IpAddr;

use shoal_buffer::Packet;
use shoal_infra::Guard;
use shoal_interface::{IfTable, SwIfIndex};
use shoal_wire::checksum::Sum;

use crate::echo_answers::Answer;
use crate::node::error::Error;

mod ip4;
mod ip6;

/// IPv4.
#[derive(Clone, Copy)]
pub(crate) struct Ip4;

/// IPv6.
#[derive(Clone, Copy)]
pub(crate) struct Ip6;

/// Bytes of every error in front of the packet it quotes: type, code, checksum and a word.
pub(crate) const HEAD: usize = 8;

/// What a node that gives a packet up has left in its scratch.
#[derive(Clone, Copy)]
pub(crate) struct ErrorFields {
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// The word behind the checksum.
    pub(crate) data: u32,
    /// The packet came as far as one of the router's own addresses.
    pub(crate) for_us: bool,
}

impl ErrorFields {
    /// The message without its checksum.
    pub(crate) fn head(self) -> [u8; HEAD] {
        let [a, b, c, d] = self.data.to_be_bytes();
        [self.kind, self.code, 0, 0, a, b, c, d]
    }
}

/// An echo request of ours that a message is about.
pub(crate) struct QuotedEcho {
    pub(crate) id: u16,
    pub(crate) sequence: u16,
    pub(crate) answer: Answer,
    pub(crate) ttl: u8,
    /// Bytes of the message.
    pub(crate) bytes: usize,
}

/// A message that is about no request: a reply that is none, or an error about something else.
pub(crate) enum NotAbout {
    Reply,
    Error,
    TooShort,
}

/// A family of addresses.
pub(crate) trait Family: Copy + Send + Sync + 'static {
    /// The node that turns packets into errors.
    const ERROR: &'static str;
    /// The node that hears answers.
    const LISTENER: &'static str;
    /// The node for packets that may be the host's.
    const PUNT: &'static str;
    /// Where what this router sends is looked up.
    const LOOKUP: &'static [&'static str];
    /// As much of a packet as an error may quote.
    const QUOTE: usize;

    /// The family of forwarding.
    type Forwarding: 'static;
    type Address: Copy + fmt::Display + Into<IpAddr> + Send;
    /// What packets know of the addresses of interfaces.
    type Addresses: Send + Sync + 'static;

    /// What the node before has left in the packet.
    fn say(pkt: &mut Packet<'_>) -> ErrorFields;
    /// Who sent the packet, if an error may be sent about it at all.
    fn asker(pkt: &Packet<'_>, say: ErrorFields) -> Result<Self::Address, Error>;
    /// Our address to speak from to the one who sent a packet.
    fn source(
        addresses: &Self::Addresses,
        pkt: &Packet<'_>,
        say: ErrorFields,
        guard: Guard<'_>,
    ) -> Option<Self::Address>;
    /// What the checksum of a message of `len` bytes begins with.
    fn sum(src: Self::Address, dst: Self::Address, len: u16) -> Sum;
    /// Puts the header of this router's packet with an error of `len` bytes in front of it.
    fn push_header(pkt: &mut Packet<'_>, src: Self::Address, dst: Self::Address, len: u16) -> Option<()>;
    /// The table packets received on an interface are looked up in.
    fn table(interfaces: &IfTable, interface: SwIfIndex, guard: Guard<'_>) -> u32;
    /// Which counter an error that is sent goes to.
    fn sent(kind: u8) -> Error;
    /// A message, as `show trace` has it.
    fn describe(head: [u8; HEAD], f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Who sent a packet that is an answer to a request, and what it says.
    fn heard(pkt: &Packet<'_>) -> Result<(Self::Address, QuotedEcho), NotAbout>;
}
