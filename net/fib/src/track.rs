//! The next hops that somebody looks up, by table and address.
//!
//! Each route that comes or goes may cover some of them, and nearly none does: they are a few hundred among millions of
//! addresses. So it is counted how many lie in each area of addresses, and most routes need no search.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use shoal_adj::Family;
use shoal_wire::IpPrefix;

use crate::FibIndex;
use crate::address::{self, Keyed};
use crate::list::Tracked;
use crate::resolve::Tracker;

/// Addresses of one table that begin with the same bits: 16 of IPv4, 32 of IPv6.
type Area = (FibIndex, Family, u32);

/// All next hops that are looked up.
#[derive(Default)]
pub(crate) struct Trackers {
    all: BTreeMap<Tracked, Tracker>,
    /// How many there are in each area.
    areas: HashMap<Area, usize, Keyed>,
}

/// The area an address is in, and the length of the prefix that an area is.
fn area(fib: FibIndex, addr: IpAddr) -> (Area, u8) {
    match addr {
        IpAddr::V4(addr) => ((fib, Family::Ip4, addr.to_bits() >> 16), 16),
        IpAddr::V6(addr) => ((fib, Family::Ip6, (addr.to_bits() >> 96) as u32), 32),
    }
}

impl Trackers {
    pub fn get(&self, at: &Tracked) -> Option<&Tracker> {
        self.all.get(at)
    }

    pub fn get_mut(&mut self, at: &Tracked) -> Option<&mut Tracker> {
        self.all.get_mut(at)
    }

    pub fn insert(&mut self, at: Tracked, tracker: Tracker) {
        if self.all.insert(at, tracker).is_none() {
            *self.areas.entry(area(at.0, at.1).0).or_default() += 1;
        }
    }

    pub fn remove(&mut self, at: &Tracked) {
        let (area, _) = area(at.0, at.1);
        if self.all.remove(at).is_some()
            && let Some(count) = self.areas.get_mut(&area)
        {
            *count -= 1;
            if *count == 0 {
                self.areas.remove(&area);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Tracked, &Tracker)> {
        self.all.iter()
    }

    /// Those inside of a prefix.
    pub fn inside(&self, fib: FibIndex, prefix: &IpPrefix) -> impl Iterator<Item = (&Tracked, &Tracker)> {
        let (area, len) = area(fib, prefix.network());
        let none = self.all.is_empty() || (prefix.len() >= len && !self.areas.contains_key(&area));
        let range = || self.all.range((fib, prefix.network())..=(fib, address::last(prefix)));
        (!none).then(range).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn those_inside_of_a_prefix_are_found_whatever_its_length() {
        let (fib, other) = (FibIndex(0), FibIndex(1));
        let mut trackers = Trackers::default();
        let all =
            ["10.0.1.2", "10.0.2.2", "10.1.0.0", "192.0.2.1", "2001:db8::1", "2001:db8:1::1", "fd00::1"];
        let all: Vec<IpAddr> = all.iter().map(|text| text.parse().unwrap()).collect();
        let empty = || Tracker { cover: None, users: BTreeSet::new() };
        let prefixes = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.0.0.0/15",
            "10.0.0.0/16",
            "10.0.1.0/24",
            "10.0.1.2/32",
            "10.2.0.0/16",
            "11.0.0.0/8",
            "::/0",
            "2001:db8::/31",
            "2001:db8::/32",
            "2001:db8::/48",
            "2001:db8::1/128",
            "2002::/16",
        ];
        let prefixes: Vec<IpPrefix> = prefixes.iter().map(|text| text.parse().unwrap()).collect();
        let check = |trackers: &Trackers, there: &[IpAddr]| {
            for prefix in &prefixes {
                let found: BTreeSet<IpAddr> = trackers.inside(fib, prefix).map(|(at, _)| at.1).collect();
                let wanted = there.iter().copied().filter(|addr| prefix.contains(*addr)).collect();
                assert_eq!(found, wanted, "{prefix}");
                assert_eq!(trackers.inside(other, prefix).count(), 0, "{prefix} of another table");
            }
        };
        check(&trackers, &[]);
        for (n, addr) in all.iter().enumerate() {
            trackers.insert((fib, *addr), empty());
            trackers.insert((fib, *addr), empty());
            check(&trackers, &all[..=n]);
        }
        for (n, addr) in all.iter().enumerate() {
            trackers.remove(&(fib, *addr));
            trackers.remove(&(fib, *addr));
            check(&trackers, &all[n + 1..]);
        }
        assert!(trackers.areas.is_empty() && trackers.len() == 0);
    }
}
