//! What packets read of the configuration: domains by address, and parameters of all.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use shoal_nat::Shards;

use crate::domain::Domain;
use crate::next_hops::NextHops;

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
        }
    }
}

/// A domain and its number.
pub type Numbered = (u32, Arc<Domain>);

/// What packets read. A copy is cheap, and so is a change of it, however many domains there are.
#[derive(Clone, Default, Debug)]
pub struct Config {
    /// Parameters.
    pub settings: Settings,
    /// Next hops that are set.
    pub next_hops: NextHops,
    /// Domains by their IPv4 prefix: the first one with it has its packets.
    ip4: Shards<(u8, u32), Vec<Numbered>>,
    ip4_lengths: Lengths,
    /// How many domains have an `ip6-src`.
    ip6: Shards<(u8, u128), u32>,
    ip6_lengths: Lengths,
    domains: Shards<u32, Arc<Domain>>,
    /// Customers whose address does not say which IPv4 address they have: domains that have them.
    customers: Shards<u128, Vec<u32>>,
    /// All domains as long as they are few, those with the longest IPv4 prefix first: they are found sooner by a look at each than by
    /// the tables above.
    few: FewDomains,
}

/// Most domains that are looked at one by one.
const FEW: usize = 8;

/// Domains as long as they are few; none, and none that counts, when there were more.
#[derive(Clone, Debug)]
struct FewDomains(Option<Vec<Numbered>>);

impl Default for FewDomains {
    fn default() -> Self {
        FewDomains(Some(Vec::new()))
    }
}

impl FewDomains {
    /// A domain came, has changed, or is gone; there are `count` now.
    fn set(&mut self, index: u32, new: Option<&Arc<Domain>>, count: usize) {
        if count == 0 {
            self.0 = Some(Vec::new());
        }
        let Some(all) = &mut self.0 else { return };
        all.retain(|(other, _)| *other != index);
        if let Some(domain) = new {
            all.push((index, Arc::clone(domain)));
        }
        // As in the tables: by prefix, and by number where that is the same.
        all.sort_by_key(|(index, domain)| (u8::MAX - domain.parameters.ip4.len(), *index));
        if all.len() > FEW {
            self.0 = None;
        }
    }
}

/// How many domains have prefixes of a length.
type Lengths = BTreeMap<u8, u32>;

fn mask4(len: u8) -> u32 {
    u32::MAX.checked_shl(u32::from(32 - len.min(32))).unwrap_or(0)
}

fn mask6(len: u8) -> u128 {
    u128::MAX.checked_shl(u32::from(128 - len.min(128))).unwrap_or(0)
}

fn keys(domain: &Domain) -> ((u8, u32), (u8, u128)) {
    let (ip4, src) = (domain.parameters.ip4, domain.parameters.ip6_src);
    ((ip4.len(), ip4.network().to_bits()), (src.len(), src.network().to_bits()))
}

/// One more of a length, or one less.
fn count(lengths: &mut Lengths, len: u8, more: bool) {
    let count = lengths.entry(len).or_default();
    *count = if more { *count + 1 } else { count.saturating_sub(1) };
    lengths.retain(|_, count| *count > 0);
}

/// Puts a domain among others, in the order of their numbers, or takes it out.
fn change(all: &mut Shards<(u8, u32), Vec<Numbered>>, key: (u8, u32), index: u32, new: Option<&Arc<Domain>>) {
    let mut there = all.get(&key).cloned().unwrap_or_default();
    there.retain(|(other, _)| *other != index);
    if let Some(domain) = new {
        let at = there.partition_point(|(other, _)| *other < index);
        there.insert(at, (index, Arc::clone(domain)));
    }
    if !there.is_empty() {
        all.insert(key, there);
    } else if all.get(&key).is_some() {
        all.remove(&key);
    }
}

impl Config {
    /// A domain comes, or one that is there has changed.
    pub fn insert(&mut self, index: u32, domain: &Arc<Domain>) {
        self.set(index, domain, true);
    }

    /// A domain goes.
    pub fn remove(&mut self, index: u32, domain: &Arc<Domain>) {
        self.set(index, domain, false);
    }

    fn set(&mut self, index: u32, domain: &Arc<Domain>, is_there: bool) {
        let (ip4, ip6) = keys(domain);
        let was_there = self.ip4.get(&ip4).is_some_and(|all| all.iter().any(|(other, _)| *other == index));
        let new = is_there.then_some(domain);
        change(&mut self.ip4, ip4, index, new);
        if was_there != is_there {
            count(&mut self.ip4_lengths, ip4.0, is_there);
            count(&mut self.ip6_lengths, ip6.0, is_there);
            let used = self.ip6.get(&ip6).copied().unwrap_or(0);
            let used = if is_there { used + 1 } else { used.saturating_sub(1) };
            if used > 0 {
                self.ip6.insert(ip6, used);
            } else {
                self.ip6.remove(&ip6);
            }
        }
        if is_there {
            self.domains.insert(index, Arc::clone(domain));
        } else if was_there {
            self.domains.remove(&index);
        }
        self.few.set(index, new, self.domains.len());
        if domain.parameters.ip6.len() == 128 {
            self.set_customer(domain.parameters.ip6.addr(), index, is_there);
        }
    }

    /// A customer has an address of its own in a domain, or has it no longer.
    pub fn set_customer(&mut self, address: Ipv6Addr, index: u32, is_there: bool) {
        let key = address.to_bits();
        let mut there = self.customers.get(&key).cloned().unwrap_or_default();
        there.retain(|other| *other != index);
        if is_there {
            there.push(index);
        }
        if !there.is_empty() {
            self.customers.insert(key, there);
        } else if self.customers.get(&key).is_some() {
            self.customers.remove(&key);
        }
    }

    /// Whether a customer has this address of its own in a domain.
    pub fn has_customer(&self, address: Ipv6Addr, index: u32) -> bool {
        self.customers.get(&address.to_bits()).is_some_and(|all| all.contains(&index))
    }

    /// Domains that an IPv4 address is in, those with the longest prefix first.
    fn all_by_ip4(&self, address: Ipv4Addr) -> impl Iterator<Item = &Numbered> {
        let bits = address.to_bits();
        let of = move |len: &u8| self.ip4.get(&(*len, bits & mask4(*len)));
        self.ip4_lengths.keys().rev().filter_map(of).flatten()
    }

    /// The domain that an IPv4 address belongs to.
    #[inline]
    pub fn by_ip4(&self, address: Ipv4Addr) -> Option<&Numbered> {
        match &self.few.0 {
            Some(few) => few.iter().find(|(_, domain)| domain.parameters.ip4.contains(address)),
            None => self.all_by_ip4(address).next(),
        }
    }

    /// Whether an IPv6 address stands for the Internet in some domain.
    #[inline]
    pub fn is_internet(&self, address: Ipv6Addr) -> bool {
        match &self.few.0 {
            Some(few) => few.iter().any(|(_, domain)| domain.parameters.ip6_src.contains(address)),
            None => self.is_internet_of_many(address),
        }
    }

    fn is_internet_of_many(&self, address: Ipv6Addr) -> bool {
        let bits = address.to_bits();
        self.ip6_lengths.keys().any(|len| self.ip6.get(&(*len, bits & mask6(*len))).is_some())
    }

    /// The domain of a customer that sends to the Internet; `inner`: the IPv4 address of a packet in a tunnel.
    #[inline]
    pub fn of_customer(
        &self,
        internet: Ipv6Addr,
        customer: Ipv6Addr,
        inner: Option<Ipv4Addr>,
    ) -> Option<(u32, &Arc<Domain>)> {
        // RFC 7597, 6: a customer's IPv6 address has its IPv4 address in it.
        let embedded = || inner.unwrap_or(Ipv4Addr::from_bits((customer.to_bits() >> 16) as u32));
        if let (Some(few), true) = (&self.few.0, self.customers.is_empty()) {
            let address = embedded();
            let is_it = |domain: &Domain| {
                domain.parameters.ip4.contains(address) && domain.parameters.ip6_src.contains(internet)
            };
            return few.iter().find(|(_, domain)| is_it(domain)).map(|(index, domain)| (*index, domain));
        }
        let fits = |(_, domain): &(u32, &Arc<Domain>)| domain.parameters.ip6_src.contains(internet);
        let with_domain = |index: &u32| Some((*index, self.domains.get(index)?));
        let all = self.customers.get(&customer.to_bits()).map_or(&[][..], Vec::as_slice);
        let named = all.iter().filter_map(with_domain).find(fits);
        let by_ip4 = || self.all_by_ip4(embedded()).map(|(index, domain)| (*index, domain)).find(fits);
        named.or_else(by_ip4)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::Parameters;

    fn domain(n: u32) -> Arc<Domain> {
        // Some within others, some with the same relay.
        let (net, len) = [("198.18.0.0", 15), ("198.18.4.0", 24), ("198.18.4.128", 25)][n as usize % 3];
        let ip4 = format!("{net}/{len}").parse().unwrap();
        let ip6 = format!("2001:db8:{:x}00::/40", 1 + n).parse().unwrap();
        let ip6_src = format!("2001:db8:ffff:{:x}00::/64", n % 4).parse().unwrap();
        let (psid_offset, psid_length) = (6, 0);
        let ea_bits = 32 - len;
        let tag = String::new();
        Arc::new(
            Domain::new(Parameters { ip4, ip6, ip6_src, ea_bits, psid_offset, psid_length, mtu: 0, tag })
                .unwrap(),
        )
    }

    fn agrees(config: &Config) {
        let by_tables = Config { few: FewDomains(None), ..config.clone() };
        for host in 0..=255 {
            let address = Ipv4Addr::new(198, 18, 4, host);
            let index = |found: Option<&Numbered>| found.map(|(index, _)| *index);
            assert_eq!(index(config.by_ip4(address)), index(by_tables.by_ip4(address)), "{address}");
            for relay in 0..5u16 {
                let internet = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, relay << 8, 0, 0, 0, 1);
                assert_eq!(config.is_internet(internet), by_tables.is_internet(internet), "{internet}");
                let customer = Ipv6Addr::from_bits(u128::from(address.to_bits()) << 16);
                let index = |found: Option<(u32, &Arc<Domain>)>| found.map(|(index, _)| index);
                let of = |config: &Config| index(config.of_customer(internet, customer, None));
                assert_eq!(of(config), of(&by_tables), "{internet} {address}");
            }
        }
    }

    #[test]
    fn few_domains_are_found_as_many_are() {
        let mut config = Config::default();
        for n in 0..12 {
            config.insert(n, &domain(n));
            assert_eq!(config.few.0.is_some(), n < FEW as u32, "{n}");
            agrees(&config);
        }
        for n in 0..12 {
            config.remove(n, &domain(n));
            agrees(&config);
        }
        for n in (0..5).rev() {
            config.insert(n, &domain(n));
            agrees(&config);
        }
        assert!(config.few.0.is_some(), "there were none in between");
        config.remove(3, &domain(3));
        agrees(&config);
    }
}
