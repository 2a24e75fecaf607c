//! What a family's control plane keeps of interfaces: found by interface, by address, by network and by lender, so that
//! the thousandth interface with an address costs no more than the first.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use shoal_buffer::SwIfIndex;

use crate::FibIndex;

/// A network and the host's address in it; the bits of both begin at the left, so that those of two families are
/// treated alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostAddress {
    /// The address.
    pub bits: u128,
    /// Bits of the network.
    pub len: u8,
}

impl From<shoal_wire::Ip4Prefix> for HostAddress {
    fn from(prefix: shoal_wire::Ip4Prefix) -> Self {
        HostAddress { bits: u128::from(prefix.addr().to_bits()) << 96, len: prefix.len() }
    }
}

impl From<shoal_wire::Ip6Prefix> for HostAddress {
    fn from(prefix: shoal_wire::Ip6Prefix) -> Self {
        HostAddress { bits: prefix.addr().to_bits(), len: prefix.len() }
    }
}

impl From<std::net::Ipv4Addr> for HostAddress {
    fn from(address: std::net::Ipv4Addr) -> Self {
        HostAddress { bits: u128::from(address.to_bits()) << 96, len: 32 }
    }
}

impl From<std::net::Ipv6Addr> for HostAddress {
    fn from(address: std::net::Ipv6Addr) -> Self {
        HostAddress { bits: address.to_bits(), len: 128 }
    }
}

/// The first and the last address of the network of `len` bits around `bits`.
fn network(bits: u128, len: u8) -> (u128, u128) {
    let host = u128::MAX.checked_shr(u32::from(len)).unwrap_or(0);
    (bits & !host, bits | host)
}

/// A protocol's facts of one interface.
pub trait OnInterface {
    /// The table of the addresses.
    fn fib(&self) -> FibIndex;

    /// All addresses: they overlap with none of another interface.
    fn addresses(&self) -> impl Iterator<Item = HostAddress>;

    /// Those that may be used.
    fn usable(&self) -> impl Iterator<Item = HostAddress>;

    /// The interface whose addresses it borrows.
    fn lender(&self) -> Option<SwIfIndex>;
}

/// All interfaces of a protocol.
#[derive(Debug)]
pub struct Connected<T> {
    all: BTreeMap<SwIfIndex, T>,
    /// Table, first address of the network, its length, address, interface.
    networks: BTreeSet<(FibIndex, u128, u8, u128, SwIfIndex)>,
    /// How many interfaces may use an address.
    own: BTreeMap<(FibIndex, u128), usize>,
    /// Lender and borrower.
    loans: BTreeSet<(SwIfIndex, SwIfIndex)>,
    /// Interfaces with addresses that may be used, and those without.
    speakers: BTreeSet<(FibIndex, SwIfIndex)>,
    silent: BTreeSet<(FibIndex, SwIfIndex)>,
}

impl<T> Default for Connected<T> {
    fn default() -> Self {
        Connected {
            all: BTreeMap::new(),
            networks: BTreeSet::new(),
            own: BTreeMap::new(),
            loans: BTreeSet::new(),
            speakers: BTreeSet::new(),
            silent: BTreeSet::new(),
        }
    }
}

impl<T> Deref for Connected<T> {
    type Target = BTreeMap<SwIfIndex, T>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl<T: OnInterface> Connected<T> {
    /// An interface's facts are these now; gives back those before.
    pub fn insert(&mut self, interface: SwIfIndex, facts: T) -> Option<T> {
        let old = self.remove(interface);
        let fib = facts.fib();
        for address in facts.addresses() {
            let (first, _) = network(address.bits, address.len);
            self.networks.insert((fib, first, address.len, address.bits, interface));
        }
        for address in facts.usable() {
            *self.own.entry((fib, address.bits)).or_default() += 1;
        }
        self.loans.extend(facts.lender().map(|lender| (lender, interface)));
        let speaks = facts.usable().next().is_some();
        if speaks { &mut self.speakers } else { &mut self.silent }.insert((fib, interface));
        self.all.insert(interface, facts);
        old
    }

    /// An interface has none any more; gives back those before.
    pub fn remove(&mut self, interface: SwIfIndex) -> Option<T> {
        let old = self.all.remove(&interface)?;
        let fib = old.fib();
        for address in old.addresses() {
            let (first, _) = network(address.bits, address.len);
            self.networks.remove(&(fib, first, address.len, address.bits, interface));
        }
        for address in old.usable() {
            if let Some(users) = self.own.get_mut(&(fib, address.bits)) {
                *users -= 1;
                if *users == 0 {
                    self.own.remove(&(fib, address.bits));
                }
            }
        }
        if let Some(lender) = old.lender() {
            self.loans.remove(&(lender, interface));
        }
        self.speakers.remove(&(fib, interface));
        self.silent.remove(&(fib, interface));
        Some(old)
    }

    /// Whether an address may be used by an interface of a table.
    pub fn is_own(&self, fib: FibIndex, address: impl Into<HostAddress>) -> bool {
        self.own.contains_key(&(fib, address.into().bits))
    }

    /// The addresses in a table whose networks overlap with that of another, but for those in the same network on the
    /// same interface; the one on the interface with the lowest number.
    pub fn overlapping(
        &self,
        fib: FibIndex,
        interface: SwIfIndex,
        address: impl Into<HostAddress>,
    ) -> Option<(SwIfIndex, HostAddress)> {
        let HostAddress { bits, len } = address.into();
        let (first, last) = network(bits, len);
        let none = (0, SwIfIndex(0));
        let most = (u128::MAX, SwIfIndex(u32::MAX));
        let inside = self.networks.range((fib, first, 0, none.0, none.1)..=(fib, last, 128, most.0, most.1));
        // Larger ones, that begin before it.
        let around = (0..len).map(|len| (network(bits, len).0, len)).filter(|(begin, _)| *begin != first);
        let around = around.flat_map(|(begin, len)| {
            self.networks.range((fib, begin, len, none.0, none.1)..=(fib, begin, len, most.0, most.1))
        });
        let same = |(_, begin, l, _, i): &&(FibIndex, u128, u8, u128, SwIfIndex)| {
            (*begin, *l, *i) == (first, len, interface)
        };
        let others = inside.chain(around).filter(|other| !same(other));
        let nearest = others.min_by_key(|(_, _, _, _, interface)| *interface);
        nearest.map(|(_, _, len, bits, interface)| (*interface, HostAddress { bits: *bits, len: *len }))
    }

    /// The interfaces that borrow from one.
    pub fn borrowers(&self, lender: SwIfIndex) -> Vec<SwIfIndex> {
        let of = self.loans.range((lender, SwIfIndex(0))..=(lender, SwIfIndex(u32::MAX)));
        of.map(|(_, borrower)| *borrower).collect()
    }

    /// The first interface of a table with an address that may be used.
    pub fn first_speaker(&self, fib: FibIndex) -> Option<SwIfIndex> {
        let of = self.speakers.range((fib, SwIfIndex(0))..=(fib, SwIfIndex(u32::MAX)));
        of.map(|(_, interface)| *interface).next()
    }

    /// The interfaces of a table without such an address.
    pub fn silent(&self, fib: FibIndex) -> Vec<SwIfIndex> {
        let of = self.silent.range((fib, SwIfIndex(0))..=(fib, SwIfIndex(u32::MAX)));
        of.map(|(_, interface)| *interface).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shoal_wire::Ip4Prefix;

    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Facts(FibIndex, Vec<Ip4Prefix>, Option<SwIfIndex>);

    impl OnInterface for Facts {
        fn fib(&self) -> FibIndex {
            self.0
        }

        fn addresses(&self) -> impl Iterator<Item = HostAddress> {
            self.1.iter().map(|p| (*p).into())
        }

        fn usable(&self) -> impl Iterator<Item = HostAddress> {
            self.addresses()
        }

        fn lender(&self) -> Option<SwIfIndex> {
            self.2
        }
    }

    fn facts() -> impl Strategy<Value = Facts> {
        // Few bits, so that networks overlap often.
        let prefix = (0u32..64, 0u8..=32).prop_map(|(n, len)| {
            let addr = std::net::Ipv4Addr::from_bits(n << 27 | n >> 1);
            Ip4Prefix::new(addr, len).unwrap()
        });
        let lender = proptest::option::of((0u32..8).prop_map(SwIfIndex));
        (0u32..2, proptest::collection::vec(prefix, 0..3), lender)
            .prop_map(|(fib, addresses, lender)| Facts(FibIndex(fib), addresses, lender))
    }

    proptest! {
        #[test]
        fn every_look_up_finds_what_a_search_through_all_does(
            steps in proptest::collection::vec((0u32..8, proptest::option::of(facts())), 1..24),
            asked in facts(),
        ) {
            let mut all = Connected::default();
            for (interface, facts) in steps {
                match facts {
                    Some(facts) => drop(all.insert(SwIfIndex(interface), facts)),
                    None => drop(all.remove(SwIfIndex(interface))),
                }
            }
            let (fib, me) = (asked.0, SwIfIndex(3));
            let of_table = || all.iter().filter(|(_, facts)| facts.0 == fib);
            for address in &asked.1 {
                let clashes = |(i, a): (SwIfIndex, &Ip4Prefix)| {
                    let same = i == me && a.normalized() == address.normalized();
                    (a.covers(address) || address.covers(a)) && !same
                };
                let search = of_table().find(|(i, f)| f.1.iter().any(|a| clashes((**i, a)))).map(|(i, _)| *i);
                let found = all.overlapping(fib, me, *address);
                prop_assert_eq!(found.map(|(interface, _)| interface), search);
                let own = of_table().any(|(_, f)| f.1.iter().any(|a| a.addr() == address.addr()));
                prop_assert_eq!(all.is_own(fib, address.addr()), own);
            }
            let borrowers: Vec<_> = all.iter().filter(|(_, f)| f.2 == Some(me)).map(|(i, _)| *i).collect();
            prop_assert_eq!(all.borrowers(me), borrowers);
            let speaks = |f: &Facts| !f.1.is_empty();
            prop_assert_eq!(all.first_speaker(fib), of_table().find(|(_, f)| speaks(f)).map(|(i, _)| *i));
            let silent: Vec<_> = of_table().filter(|(_, f)| !speaks(f)).map(|(i, _)| *i).collect();
            prop_assert_eq!(all.silent(fib), silent);
        }
    }
}
