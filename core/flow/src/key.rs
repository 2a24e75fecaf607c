//! What a flow is found by.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::hash::WORDS;

/// A key of fixed size: one to eight words of 64 bits, two keys being equal when their words are.
///
/// Arrays of words are keys, so a feature's own key is a function that puts what it looks for into them:
///
/// ```
/// use shoal_flow::{FlowTable, Settings, Tick, Timeout};
///
/// // A host in one of the router's tables.
/// let key = |host: std::net::Ipv4Addr, table: u32| [u64::from(host.to_bits()) << 32 | u64::from(table)];
/// let mut hosts = FlowTable::<[u64; 1], u32>::new(Settings::flows(100), Tick(0))?;
/// hosts.insert(key([10, 0, 0, 1].into(), 0), 7, Timeout::new(0), Tick(0))?;
/// let search = hosts.search(key([10, 0, 0, 1].into(), 0));
/// assert_eq!(hosts.find(&search).map(|flow| *flow.value()), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FlowKey: Copy + Default + Eq + 'static {
    /// The words, as an array.
    type Words: AsRef<[u64]>;

    /// All that tells a key from others.
    fn words(&self) -> Self::Words;
}

impl<const N: usize> FlowKey for [u64; N]
where
    [u64; N]: Default,
{
    type Words = [u64; N];

    #[inline(always)]
    fn words(&self) -> [u64; N] {
        const { assert!(N > 0 && N <= WORDS, "a key has one to eight words") };
        *self
    }
}

/// The number of a forwarding table, or whatever else keeps equal addresses apart: 24 bits of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableId(u32);

impl TableId {
    /// Table 0.
    pub const DEFAULT: TableId = TableId(0);

    /// `None` for a number of more than 24 bits.
    pub const fn new(number: u32) -> Option<TableId> {
        if number < 1 << 24 { Some(TableId(number)) } else { None }
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Protocol, ports and table in one word.
const fn rest(src_port: u16, dst_port: u16, protocol: u8, table: TableId) -> u64 {
    (src_port as u64) << 48 | (dst_port as u64) << 32 | (protocol as u64) << 24 | table.0 as u64
}

/// A flow of IPv4: addresses, ports (0 where there are none), protocol and table, in 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ip4Flow([u64; 2]);

impl Ip4Flow {
    /// From a source to a destination, each an address and a port.
    #[inline(always)]
    pub const fn new(src: (Ipv4Addr, u16), dst: (Ipv4Addr, u16), protocol: u8, table: TableId) -> Self {
        let addresses = (src.0.to_bits() as u64) << 32 | dst.0.to_bits() as u64;
        Ip4Flow([addresses, rest(src.1, dst.1, protocol, table)])
    }

    /// The same from the words of a packet's headers: both addresses, the source's in the upper half, and both ports alike.
    #[inline(always)]
    pub const fn of_words(addresses: u64, ports: u32, protocol: u8, table: TableId) -> Self {
        Ip4Flow([addresses, (ports as u64) << 32 | (protocol as u64) << 24 | table.0 as u64])
    }

    /// Address and port of the source.
    pub const fn source(&self) -> (Ipv4Addr, u16) {
        let [addresses, rest] = self.0;
        (Ipv4Addr::from_bits((addresses >> 32) as u32), (rest >> 48) as u16)
    }

    /// Address and port of the destination.
    pub const fn destination(&self) -> (Ipv4Addr, u16) {
        let [addresses, rest] = self.0;
        (Ipv4Addr::from_bits(addresses as u32), (rest >> 32) as u16)
    }

    /// Its protocol.
    pub const fn protocol(&self) -> u8 {
        let [_, rest] = self.0;
        (rest >> 24) as u8
    }

    /// Its table.
    pub const fn table(&self) -> TableId {
        let [_, rest] = self.0;
        TableId(rest as u32 & 0xff_ffff)
    }

    /// The same in another table.
    #[inline(always)]
    pub const fn in_table(&self, table: TableId) -> Self {
        let [addresses, rest] = self.0;
        Ip4Flow([addresses, rest & !0xff_ffff | table.0 as u64])
    }

    /// What all flows of its source's address and port have in common: without a destination.
    #[inline(always)]
    pub const fn of_source(&self) -> Self {
        let [addresses, rest] = self.0;
        Ip4Flow([addresses & !0xffff_ffff, rest & !(0xffff << 32)])
    }

    /// What all flows to its destination's address and port have in common: without a source.
    #[inline(always)]
    pub const fn of_destination(&self) -> Self {
        let [addresses, rest] = self.0;
        Ip4Flow([addresses & 0xffff_ffff, rest & !(0xffff << 48)])
    }

    /// The flow of the answers.
    pub const fn reversed(&self) -> Self {
        Ip4Flow::new(self.destination(), self.source(), self.protocol(), self.table())
    }
}

impl FlowKey for Ip4Flow {
    type Words = [u64; 2];

    #[inline(always)]
    fn words(&self) -> [u64; 2] {
        self.0
    }
}

impl std::fmt::Debug for Ip4Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ((src, from), (dst, to)) = (self.source(), self.destination());
        write!(f, "{src}:{from} -> {dst}:{to} protocol {} table {}", self.protocol(), self.table().0)
    }
}

/// A flow of IPv6: addresses, ports (0 where there are none), protocol and table, in 40 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ip6Flow([u64; 5]);

impl Ip6Flow {
    /// From a source to a destination, each an address and a port.
    #[inline(always)]
    pub const fn new(src: (Ipv6Addr, u16), dst: (Ipv6Addr, u16), protocol: u8, table: TableId) -> Self {
        let (from, to) = (src.0.to_bits(), dst.0.to_bits());
        let rest = rest(src.1, dst.1, protocol, table);
        Ip6Flow([(from >> 64) as u64, from as u64, (to >> 64) as u64, to as u64, rest])
    }

    /// Address and port of the source.
    pub const fn source(&self) -> (Ipv6Addr, u16) {
        let [high, low, .., rest] = self.0;
        (Ipv6Addr::from_bits((high as u128) << 64 | low as u128), (rest >> 48) as u16)
    }

    /// Address and port of the destination.
    pub const fn destination(&self) -> (Ipv6Addr, u16) {
        let [_, _, high, low, rest] = self.0;
        (Ipv6Addr::from_bits((high as u128) << 64 | low as u128), (rest >> 32) as u16)
    }

    /// Its protocol.
    pub const fn protocol(&self) -> u8 {
        let [.., rest] = self.0;
        (rest >> 24) as u8
    }

    /// Its table.
    pub const fn table(&self) -> TableId {
        let [.., rest] = self.0;
        TableId(rest as u32 & 0xff_ffff)
    }

    /// The same in another table.
    #[inline(always)]
    pub const fn in_table(&self, table: TableId) -> Self {
        let [a, b, c, d, rest] = self.0;
        Ip6Flow([a, b, c, d, rest & !0xff_ffff | table.0 as u64])
    }

    /// The flow of the answers.
    pub const fn reversed(&self) -> Self {
        Ip6Flow::new(self.destination(), self.source(), self.protocol(), self.table())
    }
}

impl FlowKey for Ip6Flow {
    type Words = [u64; 5];

    #[inline(always)]
    fn words(&self) -> [u64; 5] {
        self.0
    }
}

impl std::fmt::Debug for Ip6Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ((src, from), (dst, to)) = (self.source(), self.destination());
        write!(f, "[{src}]:{from} -> [{dst}]:{to} protocol {} table {}", self.protocol(), self.table().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_into_a_key_comes_out() {
        let table = TableId::new(0xab_cdef).unwrap();
        let (src, dst) = ((Ipv4Addr::new(10, 1, 2, 3), 0xfffe), (Ipv4Addr::new(192, 0, 2, 9), 443));
        let key = Ip4Flow::new(src, dst, 6, table);
        assert_eq!((key.source(), key.destination(), key.protocol(), key.table()), (src, dst, 6, table));
        assert_eq!(key.reversed(), Ip4Flow::new(dst, src, 6, table));
        assert_eq!(key, Ip4Flow::of_words(0x0a01_0203_c000_0209, 0xfffe_01bb, 6, table));
        let none = (Ipv4Addr::UNSPECIFIED, 0);
        assert_eq!(key.of_source(), Ip4Flow::new(src, none, 6, table));
        assert_eq!(key.of_destination(), Ip4Flow::new(none, dst, 6, table));
        let (src, dst) = (("2001:db8::1".parse().unwrap(), 1), ("fe80::ffff".parse().unwrap(), 0xffff));
        let key = Ip6Flow::new(src, dst, 255, table);
        assert_eq!((key.source(), key.destination(), key.protocol(), key.table()), (src, dst, 255, table));
        assert_eq!(key.reversed().reversed(), key);
        assert_eq!(key.in_table(TableId::DEFAULT), Ip6Flow::new(src, dst, 255, TableId::DEFAULT));
        assert_eq!((size_of::<Ip4Flow>(), size_of::<Ip6Flow>()), (16, 40));
    }

    #[test]
    fn a_table_number_that_would_be_cut_is_refused() {
        assert_eq!(TableId::new(0xff_ffff).map(TableId::number), Some(0xff_ffff));
        assert_eq!(TableId::new(0x100_0000), None);
    }
}
