//! A rule as it is typed and shown.

use std::fmt;

use shoal_adj::Family;
use shoal_wire::{IpPrefix, IpProtocol, TcpFlags};

/// Ports from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last, not below the first.
    pub last: u16,
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

/// Which TCP flags must be set and which must not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpMask {
    /// Those that must be set.
    pub set: TcpFlags,
    /// Those that must not.
    pub clear: TcpFlags,
}

pub(crate) const FLAGS: [(&str, TcpFlags); 8] = [
    ("fin", TcpFlags::FIN),
    ("syn", TcpFlags::SYN),
    ("rst", TcpFlags::RST),
    ("psh", TcpFlags::PSH),
    ("ack", TcpFlags::ACK),
    ("urg", TcpFlags::URG),
    ("ece", TcpFlags::ECE),
    ("cwr", TcpFlags::CWR),
];

impl fmt::Display for TcpMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (name, flag) in FLAGS {
            let sign = match (self.set.contains(flag), self.clear.contains(flag)) {
                (true, _) => "",
                (_, true) => "!",
                _ => continue,
            };
            write!(f, "{}{sign}{name}", if first { "" } else { "," })?;
            first = false;
        }
        Ok(())
    }
}

/// What a packet of one family must be like; what is left out is not asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The family.
    pub family: Family,
    /// Where its source lies.
    pub src: Option<IpPrefix>,
    /// Where its destination lies.
    pub dst: Option<IpPrefix>,
    /// The transport protocol.
    pub protocol: Option<IpProtocol>,
    /// The source port.
    pub sport: Option<Ports>,
    /// The destination port.
    pub dport: Option<Ports>,
    /// The differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// TCP flags.
    pub tcp: Option<TcpMask>,
}

/// Why a rule cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A prefix of the other family.
    #[error("{prefix} is no prefix of {family}, the family of the rule's packets")]
    Family {
        /// The prefix.
        prefix: IpPrefix,
        /// The rule's family.
        family: Family,
    },
    /// Ports of a protocol that has none.
    #[error("{0} has no ports; those of tcp, udp, udp-lite, sctp and dccp do")]
    NoPorts(IpProtocol),
    /// The last port is below the first.
    #[error("ports {first}-{last} end before they begin")]
    Ports {
        /// The first.
        first: u16,
        /// The last.
        last: u16,
    },
    /// TCP flags of another protocol.
    #[error("{0} has no TCP flags")]
    NoFlags(IpProtocol),
    /// A flag that must be set and must not.
    #[error("TCP flags {0} both set and not set")]
    Contradiction(TcpFlags),
    /// A code point has six bits.
    #[error("DSCP {0}: the highest is 63")]
    Dscp(u8),
}

/// Whether packets of a protocol begin with source and destination port.
pub(crate) const fn has_ports(protocol: IpProtocol) -> bool {
    const DCCP: u8 = 33;
    matches!(protocol, IpProtocol::TCP | IpProtocol::UDP | IpProtocol::SCTP | IpProtocol::UDP_LITE)
        || protocol.0 == DCCP
}

impl Rule {
    /// One that every packet of a family matches.
    pub const fn any(family: Family) -> Rule {
        Rule { family, src: None, dst: None, protocol: None, sport: None, dport: None, dscp: None, tcp: None }
    }

    /// The same rule, if it can be.
    ///
    /// # Errors
    /// What contradicts what.
    pub fn checked(self) -> Result<Rule, RuleError> {
        let family = self.family;
        for prefix in [self.src, self.dst].into_iter().flatten() {
            if Family::of(prefix.addr()) != family {
                return Err(RuleError::Family { prefix, family });
            }
        }
        for Ports { first, last } in [self.sport, self.dport].into_iter().flatten() {
            if first > last {
                return Err(RuleError::Ports { first, last });
            }
        }
        match self.protocol {
            Some(p) if (self.sport.is_some() || self.dport.is_some()) && !has_ports(p) => {
                return Err(RuleError::NoPorts(p));
            }
            Some(p) if self.tcp.is_some() && p != IpProtocol::TCP => return Err(RuleError::NoFlags(p)),
            _ => {}
        }
        if let Some(TcpMask { set, clear }) = self.tcp
            && set.intersects(clear)
        {
            return Err(RuleError::Contradiction(TcpFlags(set.0 & clear.0)));
        }
        if let Some(dscp) = self.dscp
            && dscp > 63
        {
            return Err(RuleError::Dscp(dscp));
        }
        let (src, dst) = (self.src.map(|p| p.normalized()), self.dst.map(|p| p.normalized()));
        Ok(Rule { src, dst, ..self })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.family.fmt(f)?;
        if let Some(src) = self.src {
            write!(f, " src {src}")?;
        }
        if let Some(dst) = self.dst {
            write!(f, " dst {dst}")?;
        }
        if let Some(protocol) = self.protocol {
            match crate::cli::protocol_word(protocol) {
                Some(word) => write!(f, " proto {word}")?,
                None => write!(f, " proto {}", protocol.0)?,
            }
        }
        if let Some(ports) = self.sport {
            write!(f, " sport {ports}")?;
        }
        if let Some(ports) = self.dport {
            write!(f, " dport {ports}")?;
        }
        if let Some(dscp) = self.dscp {
            write!(f, " dscp {dscp}")?;
        }
        if let Some(tcp) = self.tcp {
            write!(f, " tcp-flags {tcp}")?;
        }
        Ok(())
    }
}
