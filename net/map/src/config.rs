//! What packets read of the configuration: domains by address, and parameters of all.

use std::collections::{BTreeSet, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::domain::Domain;

/// Parameters of all domains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Fragment packets before they go into a tunnel, rather than the tunnel's.
    pub frag_inner: bool,
    /// Fragment also those that say that they must not be.
    pub frag_ignore_df: bool,
    /// The source of ICMP errors that are translated from routers without an IPv4 address.
    pub icmp_source: Option<Ipv4Addr>,
    /// Tell senders of IPv6 packets that belong to no customer.
    pub icmp6_unreachables: bool,
    /// Drop packets from customers with addresses and ports of others.
    pub security_check: bool,
    /// Also fragments, whose first one has to be known.
    pub security_check_fragments: bool,
    /// Copy class and TOS.
    pub tc_copy: bool,
    /// The class of packets otherwise.
    pub tc_class: u8,
    /// Where IPv4 packets go that leave MAP, if not where the forwarding table says.
    pub ip4_next_hop: Option<Ipv4Addr>,
    /// The same for IPv6 packets.
    pub ip6_next_hop: Option<Ipv6Addr>,
    /// The largest segment that TCP may ask for; 0: any.
    pub tcp_mss: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            frag_inner: false,
            frag_ignore_df: false,
            icmp_source: None,
            icmp6_unreachables: false,
            security_check: true,
            security_check_fragments: false,
            tc_copy: true,
            tc_class: 0,
            tcp_mss: 0,
            ip4_next_hop: None,
            ip6_next_hop: None,
        }
    }
}

/// A domain and its number.
pub type Numbered = (u32, Arc<Domain>);

/// What packets read.
#[derive(Clone, Default, Debug)]
pub struct Config {
    /// Parameters.
    pub settings: Settings,
    ip4: HashMap<(u8, u32), Numbered>,
    ip4_lengths: BTreeSet<u8>,
    /// Several domains may have one relay.
    ip6: HashMap<(u8, u128), Vec<Numbered>>,
    ip6_lengths: BTreeSet<u8>,
}

fn mask4(len: u8) -> u32 {
    u32::MAX.checked_shl(u32::from(32 - len.min(32))).unwrap_or(0)
}

fn mask6(len: u8) -> u128 {
    u128::MAX.checked_shl(u32::from(128 - len.min(128))).unwrap_or(0)
}

impl Config {
    /// Of these domains.
    pub fn new(settings: Settings, domains: impl Iterator<Item = Numbered>) -> Config {
        let mut config = Config { settings, ..Config::default() };
        for (index, domain) in domains {
            let (ip4, src) = (domain.parameters.ip4, domain.parameters.ip6_src);
            config.ip4_lengths.insert(ip4.len());
            // Of two with the same addresses the first counts.
            let key = (ip4.len(), ip4.network().to_bits());
            config.ip4.entry(key).or_insert_with(|| (index, Arc::clone(&domain)));
            config.ip6_lengths.insert(src.len());
            config.ip6.entry((src.len(), src.network().to_bits())).or_default().push((index, domain));
        }
        config
    }

    /// The domain that an IPv4 address belongs to.
    pub fn by_ip4(&self, address: Ipv4Addr) -> Option<&Numbered> {
        let bits = address.to_bits();
        self.ip4_lengths.iter().rev().find_map(|len| self.ip4.get(&(*len, bits & mask4(*len))))
    }

    /// Domains whose Internet an IPv6 address is in.
    pub fn by_ip6(&self, address: Ipv6Addr) -> &[Numbered] {
        let bits = address.to_bits();
        let mut lengths = self.ip6_lengths.iter().rev();
        lengths.find_map(|len| self.ip6.get(&(*len, bits & mask6(*len)))).map_or(&[], Vec::as_slice)
    }

    /// Of these the one that the IPv4 address of a customer belongs to, or the first.
    pub fn of_customer(&self, of: &[Numbered], address: impl Fn(&Domain) -> Ipv4Addr) -> Option<Numbered> {
        let fits = |(index, domain): &&Numbered| {
            self.by_ip4(address(domain)).is_some_and(|(other, _)| other == index)
        };
        of.iter().find(fits).or(of.first()).cloned()
    }
}
