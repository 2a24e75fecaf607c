//! What the host keeps of an interface that it shares: rules, and their words.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use shoal_module::cli::nearest;

/// Most rules of one interface.
pub const MOST_RULES: usize = 256;
const SSH: u16 = 22;

/// A prefix of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Net {
    /// Its address, zero behind the prefix.
    pub addr: IpAddr,
    /// Bits of it, up to 32 or 128.
    pub len: u8,
}

impl Net {
    /// A prefix; what lies behind it is cut off. `None` if it is longer than an address.
    pub fn new(addr: IpAddr, len: u8) -> Option<Self> {
        let addr = match addr {
            IpAddr::V4(a) if len <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
                IpAddr::V4((u32::from(a) & mask).into())
            }
            IpAddr::V6(a) if len <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
                IpAddr::V6((u128::from(a) & mask).into())
            }
            _ => return None,
        };
        Some(Net { addr, len })
    }
}

impl FromStr for Net {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (addr, len) = text.split_once('/').map_or((text, None), |(addr, len)| (addr, Some(len)));
        let addr: IpAddr = addr.parse().map_err(drop)?;
        let whole = if addr.is_ipv4() { 32 } else { 128 };
        let len = len.map_or(Ok(whole), |len| len.parse().map_err(drop))?;
        Net::new(addr, len).ok_or(())
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.len)
    }
}

/// One thing that the host keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// What is for an address that the kernel has on the interface, ARP and neighbour discovery included; and, if the router
    /// has a MAC address of its own, what is for the kernel's.
    Host,
    /// Every frame for one station, unless that is the router. The router must have a MAC address of its own.
    Others,
    /// ARP and neighbour discovery for the kernel's addresses.
    Arp,
    /// What configures a host: DHCP, DHCPv6, router advertisements.
    Dhcp,
    /// TCP to port 22 of the kernel's addresses.
    Ssh,
    /// TCP to this port of the kernel's addresses.
    Tcp(u16),
    /// UDP to this port of the kernel's addresses.
    Udp(u16),
    /// What is for these addresses, ARP and neighbour discovery included.
    To(Net),
    /// What comes from these addresses.
    From(Net),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Host => f.write_str("host"),
            Rule::Others => f.write_str("others"),
            Rule::Arp => f.write_str("arp"),
            Rule::Dhcp => f.write_str("dhcp"),
            Rule::Ssh => f.write_str("ssh"),
            Rule::Tcp(port) => write!(f, "tcp:{port}"),
            Rule::Udp(port) => write!(f, "udp:{port}"),
            Rule::To(net) => write!(f, "to:{net}"),
            Rule::From(net) => write!(f, "from:{net}"),
        }
    }
}

/// The words of rules, as errors list them.
const WORDS: &str = "host, others, arp, dhcp, ssh, tcp:PORT, udp:PORT, to:PREFIX or from:PREFIX";
/// The same, for suggestions.
pub(crate) const NAMES: [&str; 9] = ["host", "others", "arp", "dhcp", "ssh", "tcp:", "udp:", "to:", "from:"];

/// Words that are no rules, or too many.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Not a word of ours.
    #[error("'{word}' is no pinhole rule, which are {WORDS}{near}", near = near(word))]
    Unknown {
        /// The word.
        word: String,
    },
    /// A port that is none.
    #[error("'{word}': a port is a number from 1 to 65535")]
    Port {
        /// The word.
        word: String,
    },
    /// A prefix that is none.
    #[error("'{word}': a prefix is an IPv4 or IPv6 address, with /LENGTH or without")]
    Prefix {
        /// The word.
        word: String,
    },
    /// More than fit.
    #[error("{0} pinhole rules, at most {MOST_RULES} fit")]
    TooMany(usize),
    /// `others` makes no sense where the router uses the kernel's MAC address.
    #[error("pinhole rule 'others' needs a MAC address of the router's own: leave mac-reuse away")]
    OthersNeedsOwnMac,
}

fn near(word: &str) -> String {
    let name = word.split_once(':').map_or(word, |(name, _)| name);
    let near = nearest(name, NAMES.iter().map(|n| n.trim_end_matches(':')));
    near.map(|n| format!("; did you mean '{n}'?")).unwrap_or_default()
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let word = || text.to_owned();
        let port =
            |p: &str| p.parse().ok().filter(|p| *p != 0).ok_or_else(|| RuleError::Port { word: word() });
        let net = |n: &str| n.parse().map_err(|()| RuleError::Prefix { word: word() });
        Ok(match text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest))) {
            ("host", None) => Rule::Host,
            ("others", None) => Rule::Others,
            ("arp", None) => Rule::Arp,
            ("dhcp", None) => Rule::Dhcp,
            ("ssh", None) => Rule::Ssh,
            ("tcp", Some(rest)) => Rule::Tcp(port(rest)?),
            ("udp", Some(rest)) => Rule::Udp(port(rest)?),
            ("to", Some(rest)) => Rule::To(net(rest)?),
            ("from", Some(rest)) => Rule::From(net(rest)?),
            _ => return Err(RuleError::Unknown { word: word() }),
        })
    }
}

/// Everything that the host keeps of an interface: rules in order, each once. Empty: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinhole(Vec<Rule>);

impl Pinhole {
    /// The rules.
    pub fn rules(&self) -> &[Rule] {
        &self.0
    }

    /// Whether the host keeps nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is one of them.
    pub fn has(&self, rule: Rule) -> bool {
        self.0.contains(&rule)
    }

    /// The ports: protocol, port, and whether it must be one of the kernel's addresses.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (u8, u16, bool)> + '_ {
        const TCP: u8 = 6;
        const UDP: u8 = 17;
        self.0
            .iter()
            .flat_map(|rule| match rule {
                // The host has no address yet when it is told which (RFC 2131, 4.1; RFC 8415, 7.2).
                Rule::Dhcp => [Some((UDP, 68, false)), Some((UDP, 546, false))],
                Rule::Ssh => [Some((TCP, SSH, true)), None],
                Rule::Tcp(port) => [Some((TCP, *port, true)), None],
                Rule::Udp(port) => [Some((UDP, *port, true)), None],
                _ => [None, None],
            })
            .flatten()
    }
}

impl FromIterator<Rule> for Pinhole {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        let mut rules: Vec<_> = rules.into_iter().collect();
        rules.sort_unstable();
        rules.dedup();
        Pinhole(rules)
    }
}

impl FromStr for Pinhole {
    type Err = RuleError;

    /// Rules with commas between them; `none` for none.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        if text == "none" {
            return Ok(Pinhole::default());
        }
        let rules: Pinhole = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        if rules.0.len() > MOST_RULES { Err(RuleError::TooMany(rules.0.len())) } else { Ok(rules) }
    }
}

impl fmt::Display for Pinhole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (at, rule) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            rule.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_they_are_read() {
        for text in
            ["none", "host", "host,others,arp,dhcp,ssh,tcp:8443,udp:51820", "to:10.0.0.0/8,to:2001:db8::/32"]
        {
            assert_eq!(text.parse::<Pinhole>().unwrap().to_string(), text);
        }
        assert_eq!("ssh,host,ssh".parse::<Pinhole>().unwrap().to_string(), "host,ssh");
        assert_eq!("from:192.0.2.77/24".parse::<Pinhole>().unwrap().to_string(), "from:192.0.2.0/24");
        assert_eq!("to:2001:db8::1".parse::<Pinhole>().unwrap().to_string(), "to:2001:db8::1/128");
        assert_eq!(
            "to:1.2.3.4/0,from:::/0".parse::<Pinhole>().unwrap().to_string(),
            "to:0.0.0.0/0,from:::/0"
        );
    }

    #[test]
    fn words_that_are_no_rules_are_refused_with_what_would_be() {
        let error = |text: &str| text.parse::<Pinhole>().unwrap_err().to_string();
        assert_eq!(
            error("hots"),
            "'hots' is no pinhole rule, which are host, others, arp, dhcp, ssh, tcp:PORT, udp:PORT, to:PREFIX or \
             from:PREFIX; did you mean 'host'?"
        );
        for port in ["tcp:0", "udp:65536", "tcp:", "tcp:ssh"] {
            assert_eq!(error(port), format!("'{port}': a port is a number from 1 to 65535"));
        }
        for prefix in ["to:10.0.0.0/33", "from:::/129", "to:10.0.0", "to:"] {
            assert!(error(prefix).starts_with(&format!("'{prefix}': a prefix is")), "{}", error(prefix));
        }
        for unknown in ["", "host,", ",", "host:1", "tcp", "ssh:22"] {
            assert!(error(unknown).contains("is no pinhole rule"), "{}", error(unknown));
        }
        let many: Vec<_> = (1..=257).map(|port| format!("tcp:{port}")).collect();
        assert_eq!(error(&many.join(",")), "257 pinhole rules, at most 256 fit");
    }
}
