//! The words of a rule as arguments of commands.

use shoal_adj::Family;
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Expected, FromArg, check, nearest};
use shoal_wire::ip4::dscp_name;
use shoal_wire::{IpPrefix, IpProtocol, TcpFlags};

use crate::rule::FLAGS;
use crate::{Ports, Rule, RuleError, TcpMask};

/// The part of a command's syntax that [`Rule::of_args`] reads; `<src:ip-prefix>` is the forwarding table's.
#[macro_export]
macro_rules! rule_syntax {
    () => {
        "[src <src:ip-prefix>] [dst <dst:ip-prefix>] [proto <proto:ip-protocol>] [sport <sport:port-range>] \
         [dport <dport:port-range>] [dscp <dscp:dscp>] [tcp-flags <tcp-flags:tcp-flags>]"
    };
}

const WORDS: [&str; 7] = ["src", "dst", "proto", "sport", "dport", "dscp", "tcp-flags"];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[
    ArgType::new("ip-protocol", "a transport protocol: tcp, udp, icmp, a number", check::<ProtocolArg>)
        .complete(protocols),
    ArgType::new("port-range", "a port or a range of ports, such as 80-90", check::<Ports>),
    ArgType::new("dscp", "a code point: its name, or 0 to 63", check::<DscpArg>),
    ArgType::new("tcp-flags", "TCP flags that must be set, or not: syn,!ack", check::<TcpMask>),
];

const PROTOCOLS: [(&str, IpProtocol); 14] = [
    ("tcp", IpProtocol::TCP),
    ("udp", IpProtocol::UDP),
    ("icmp", IpProtocol::ICMP),
    ("icmp6", IpProtocol::ICMP6),
    ("sctp", IpProtocol::SCTP),
    ("udp-lite", IpProtocol::UDP_LITE),
    ("gre", IpProtocol::GRE),
    ("esp", IpProtocol::IPSEC_ESP),
    ("ah", IpProtocol::IPSEC_AH),
    ("ospf", IpProtocol::OSPF),
    ("pim", IpProtocol::PIM),
    ("vrrp", IpProtocol::VRRP),
    ("igmp", IpProtocol::IGMP),
    ("l2tp", IpProtocol::L2TP),
];

pub(crate) fn protocol_word(protocol: IpProtocol) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(_, p)| *p == protocol).map(|(word, _)| *word)
}

fn protocols(_: &Control, _: &str) -> Vec<String> {
    PROTOCOLS.iter().map(|(word, _)| (*word).to_owned()).collect()
}

/// `tcp`, `47`.
struct ProtocolArg(IpProtocol);

impl FromArg for ProtocolArg {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        if let Some((_, protocol)) = PROTOCOLS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
            return Ok(ProtocolArg(*protocol));
        }
        let near = nearest(text, PROTOCOLS.iter().map(|(word, _)| *word)).map(str::to_owned);
        let expected = || Expected::new("a transport protocol or its number, 0 to 255").nearest(near);
        text.parse().map(|n| ProtocolArg(IpProtocol(n))).map_err(|_| expected())
    }
}

impl FromArg for Ports {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Ports { first, last }),
            _ => Err(Expected::new("a port from 0 to 65535, or a range such as 80-90")),
        }
    }
}

/// `ef`, `46`.
struct DscpArg(u8);

impl FromArg for DscpArg {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        if let Some(dscp) =
            (0..64).find(|dscp| dscp_name(*dscp).eq_ignore_ascii_case(text) && text != "unknown")
        {
            return Ok(DscpArg(dscp));
        }
        let expected = || Expected::new("a code point such as EF, or 0 to 63").nearest(Some("63".into()));
        text.parse().ok().filter(|n| *n <= 63).map(DscpArg).ok_or_else(expected)
    }
}

impl FromArg for TcpMask {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let (mut set, mut clear) = (TcpFlags(0), TcpFlags(0));
        for word in text.split(',') {
            let (to, name) = match word.strip_prefix('!') {
                Some(name) => (&mut clear, name),
                None => (&mut set, word),
            };
            let Some((_, flag)) = FLAGS.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)) else {
                let near = nearest(name, FLAGS.iter().map(|(n, _)| *n)).map(str::to_owned);
                return Err(Expected::new("TCP flags such as syn,!ack").nearest(near));
            };
            *to = *to | *flag;
        }
        Ok(TcpMask { set, clear })
    }
}

impl Rule {
    /// Whether any word of a rule was given.
    pub fn is_in(args: &Args) -> bool {
        WORDS.iter().any(|word| args.text(word).is_some())
    }

    /// The family of the given prefixes.
    ///
    /// # Errors
    /// One is none.
    pub fn family_in(args: &Args) -> Result<Option<Family>, CliError> {
        let of = |name| args.parse_opt::<IpPrefix>(name, "a prefix");
        let prefix = of("src")?.or(of("dst")?);
        Ok(prefix.map(|p| Family::of(p.addr())))
    }

    /// The given rule for packets of a family.
    ///
    /// # Errors
    /// It cannot be; the error points at the argument that is wrong.
    pub fn of_args(args: &Args, family: Family) -> Result<Rule, CliError> {
        let prefix = |name| args.parse_opt::<IpPrefix>(name, "a prefix such as 10.0.0.0/24 or 2001:db8::/32");
        let rule = Rule {
            family,
            src: prefix("src")?,
            dst: prefix("dst")?,
            protocol: args.opt::<ProtocolArg>("proto")?.map(|p| p.0),
            sport: args.opt("sport")?,
            dport: args.opt("dport")?,
            dscp: args.opt::<DscpArg>("dscp")?.map(|d| d.0),
            tcp: args.opt("tcp-flags")?,
        };
        rule.checked().map_err(|e| {
            let name = match e {
                RuleError::Family { prefix, .. } if rule.src == Some(prefix) => "src",
                RuleError::Family { .. } => "dst",
                RuleError::NoPorts(_) | RuleError::NoFlags(_) => "proto",
                RuleError::Ports { .. } => "dport",
                RuleError::Contradiction(_) => "tcp-flags",
                RuleError::Dscp(_) => "dscp",
            };
            CliError::argument(name, e.to_string())
        })
    }
}
