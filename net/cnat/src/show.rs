//! How sessions are written.

use std::fmt;

use shoal_wire::IpProtocol;

use crate::session_direction::{Marks, Tuple};
use crate::sessions::Session;
use crate::translation::address;

/// A protocol, as VPP writes it.
pub struct Proto(pub u8);

impl fmt::Display for Proto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match IpProtocol(self.0) {
            IpProtocol::TCP => f.pad("TCP"),
            IpProtocol::UDP => f.pad("UDP"),
            IpProtocol::ICMP => f.pad("ICMP"),
            IpProtocol::ICMP6 => f.pad("ICMP6"),
            IpProtocol(other) => write!(f, "{other}"),
        }
    }
}

/// Both ends of a family's packet: `[20.0.0.9;5555 -> 40.0.0.1;53]`.
pub struct Ends(pub bool, pub Tuple);

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ends(is_ip6, Tuple { src, dst, sport, dport }) = *self;
        write!(f, "[{};{sport} -> {};{dport}]", address(is_ip6, src), address(is_ip6, dst))
    }
}

/// A session: what packets come with and what they leave with; nothing there if nothing changes.
pub struct Shown<'a>(pub &'a Session);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.0;
        write!(f, "{} {} => ", Proto(session.protocol), Ends(session.is_ip6, session.from))?;
        if session.marks & Marks::BYPASS != 0 {
            return f.write_str("[]");
        }
        if session.marks & Marks::NO_NAT != 0 {
            return write!(f, "[] via {}", address(session.is_ip6, session.to.dst));
        }
        Ends(session.is_ip6, session.to).fmt(f)
    }
}
