//! The table as a peer would announce it: BGP UPDATE messages (RFC 4271), IPv6 by RFC 4760.
//!
//! Attributes are like those of the Internet's routes: a path of a few systems, now and then a metric, some communities, and
//! several prefixes that share them. The same seed gives the same bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use fastrand::Rng;

use crate::table::{Ip4, Ip6};

/// RFC 4271 4.1.
const MOST: usize = 4096;
const HEADER: usize = 19;
const OPEN: u8 = 1;
const UPDATE: u8 = 2;
/// Closes a session, with a reason (RFC 4271 4.5).
pub const NOTIFICATION: u8 = 3;
/// Says that the session lives (RFC 4271 4.4).
pub const KEEPALIVE: u8 = 4;
/// AS_TRANS (RFC 6793): what stands in OPEN where a number has four bytes.
const AS_TRANS: u16 = 23_456;
/// Attribute flags (RFC 4271 4.3).
const TRANSITIVE: u8 = 0x40;
const OPTIONAL: u8 = 0x80;
const EXTENDED_LENGTH: u8 = 0x10;
/// Families (RFC 4760): 1 and 2, both unicast.
const AFI: [u16; 2] = [1, 2];

/// Who announces.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Its AS number.
    pub system: u32,
    /// Its identifier, and the next hop of IPv4 routes.
    pub address4: Ipv4Addr,
    /// The next hop of IPv6 routes.
    pub address6: Ipv6Addr,
    /// Seeds the attributes.
    pub seed: u64,
}

/// A table as messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Whole messages that announce each prefix once, and at the end the end-of-RIB (RFC 4724 2).
    pub announce: Vec<u8>,
    /// Whole messages that withdraw each prefix.
    pub withdraw: Vec<u8>,
    /// Groups of prefixes that share their attributes.
    pub groups: usize,
}

/// A message with its header.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut all = vec![0xff; 16];
    all.extend(((HEADER + body.len()) as u16).to_be_bytes());
    all.push(kind);
    all.extend(body);
    all
}

/// OPEN (RFC 4271 4.2) with the capabilities of both families and of four-byte numbers (RFC 6793). `hold` in seconds.
pub fn open(origin: &Origin, hold: u16) -> Vec<u8> {
    let mut capabilities = Vec::new();
    for afi in AFI {
        let [high, low] = afi.to_be_bytes();
        capabilities.extend([1, 4, high, low, 0, 1]);
    }
    capabilities.extend([65, 4]);
    capabilities.extend(origin.system.to_be_bytes());
    let short = u16::try_from(origin.system).unwrap_or(AS_TRANS);
    let mut body = vec![4];
    body.extend(short.to_be_bytes());
    body.extend(hold.to_be_bytes());
    body.extend(origin.address4.octets());
    body.extend([capabilities.len() as u8 + 2, 2, capabilities.len() as u8]);
    body.extend(capabilities);
    message(OPEN, &body)
}

/// IPv4 prefixes in the body of UPDATE.
pub fn messages4(prefixes: &[Ip4], origin: &Origin) -> Messages {
    let mut all = Messages::default();
    each_group(prefixes, origin.seed, |group, attributes| {
        all.groups += 1;
        let shared = attributes(origin.system, &[(3, origin.address4.octets().as_slice())]);
        let room = MOST - HEADER - 4 - shared.len();
        for networks in packed(group, room, |(network, len)| (network.octets().to_vec(), len)) {
            let mut body = vec![0, 0];
            body.extend((shared.len() as u16).to_be_bytes());
            body.extend(&shared);
            body.extend(networks);
            all.announce.extend(message(UPDATE, &body));
        }
    });
    all.announce.extend(message(UPDATE, &[0; 4]));
    for networks in packed(prefixes, MOST - HEADER - 4, |(network, len)| (network.octets().to_vec(), len)) {
        let mut body = (networks.len() as u16).to_be_bytes().to_vec();
        body.extend(networks);
        body.extend([0, 0]);
        all.withdraw.extend(message(UPDATE, &body));
    }
    all
}

/// IPv6 prefixes in MP_REACH_NLRI and MP_UNREACH_NLRI (RFC 4760).
pub fn messages6(prefixes: &[Ip6], origin: &Origin) -> Messages {
    let mut all = Messages::default();
    each_group(prefixes, origin.seed ^ 6, |group, attributes| {
        all.groups += 1;
        let others = attributes(origin.system, &[]);
        let room = MOST - HEADER - 4 - others.len() - 4 - 21;
        for networks in packed(group, room, |(network, len)| (network.octets().to_vec(), len)) {
            let mut reach = vec![0, 2, 1, 16];
            reach.extend(origin.address6.octets());
            reach.push(0);
            reach.extend(networks);
            let mut whole = Vec::new();
            attribute(&mut whole, OPTIONAL, 14, &reach);
            whole.extend(&others);
            all.announce.extend(update_of(&whole));
        }
    });
    all.announce.extend(update_of(&unreach(&[])));
    for networks in packed(prefixes, MOST - HEADER - 4 - 7, |(network, len)| (network.octets().to_vec(), len))
    {
        all.withdraw.extend(update_of(&unreach(&networks)));
    }
    all
}

/// An UPDATE that has attributes only.
fn update_of(attributes: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0];
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
    message(UPDATE, &body)
}

/// MP_UNREACH_NLRI; of no prefix it is IPv6's end-of-RIB.
fn unreach(networks: &[u8]) -> Vec<u8> {
    let mut value = vec![0, 2, 1];
    value.extend(networks);
    let mut all = Vec::new();
    attribute(&mut all, OPTIONAL, 15, &value);
    all
}

/// What makes the attributes of a group: of an AS, with some that the caller has.
type Attributes<'a> = &'a mut dyn FnMut(u32, &[(u8, &[u8])]) -> Vec<u8>;

/// Groups of prefixes that share their attributes: mostly few, seven on average.
fn each_group<P>(prefixes: &[P], seed: u64, mut each: impl FnMut(&[P], Attributes<'_>)) {
    let mut rng = Rng::with_seed(seed ^ 0x6267_7000);
    let mut rest = prefixes;
    while !rest.is_empty() {
        let most = if rng.u8(0..8) == 0 { 40 } else { 4 };
        let (group, others) = rest.split_at(rng.usize(1..=most).min(rest.len()));
        rest = others;
        each(group, &mut |system, more| attributes(&mut rng, system, more));
    }
}

/// ORIGIN, AS_PATH, what the caller has, MULTI_EXIT_DISC and COMMUNITIES, in order of their numbers (RFC 4271 5).
fn attributes(rng: &mut Rng, system: u32, more: &[(u8, &[u8])]) -> Vec<u8> {
    let mut all = Vec::new();
    // Most routes are of interior origin, some incomplete.
    attribute(&mut all, TRANSITIVE, 1, &[if rng.u8(0..10) == 0 { 2 } else { 0 }]);
    let hops = rng.u8(1..=6);
    let mut path = vec![2, hops + 1];
    path.extend(system.to_be_bytes());
    for _ in 0..hops {
        // Public numbers; a tenth has four bytes.
        let one = if rng.u8(0..10) == 0 { rng.u32(131_072..400_000) } else { rng.u32(1..64_000) };
        path.extend(one.to_be_bytes());
    }
    attribute(&mut all, TRANSITIVE, 2, &path);
    for (kind, value) in more {
        attribute(&mut all, TRANSITIVE, *kind, value);
    }
    if rng.u8(0..4) == 0 {
        attribute(&mut all, OPTIONAL, 4, &rng.u32(0..1_000).to_be_bytes());
    }
    let communities: Vec<u8> =
        (0..rng.u8(0..8)).flat_map(|_| rng.u32(1 << 16..64_000 << 16).to_be_bytes()).collect();
    if !communities.is_empty() {
        attribute(&mut all, OPTIONAL | TRANSITIVE, 8, &communities);
    }
    all
}

fn attribute(all: &mut Vec<u8>, flags: u8, kind: u8, value: &[u8]) {
    if let Ok(length) = u8::try_from(value.len()) {
        all.extend([flags, kind, length]);
    } else {
        let [high, low] = (value.len() as u16).to_be_bytes();
        all.extend([flags | EXTENDED_LENGTH, kind, high, low]);
    }
    all.extend(value);
}

/// Prefixes as BGP writes them, in pieces of at most `room` bytes.
fn packed<P: Copy>(prefixes: &[P], room: usize, octets: impl Fn(P) -> (Vec<u8>, u8)) -> Vec<Vec<u8>> {
    let mut pieces = vec![Vec::new()];
    for prefix in prefixes {
        let (octets, len) = octets(*prefix);
        let octets = octets.get(..usize::from(len).div_ceil(8)).unwrap_or(&octets);
        if pieces.last().is_some_and(|piece| piece.len() + 1 + octets.len() > room) {
            pieces.push(Vec::new());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(len);
            piece.extend(octets);
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::table;

    const ORIGIN: Origin = Origin {
        system: 65_001,
        address4: Ipv4Addr::new(10, 0, 2, 2),
        address6: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2),
        seed: 1,
    };

    /// The bodies of all messages; each must have the right marker, length and kind.
    fn bodies(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            assert_eq!(bytes[..16], [0xff; 16]);
            let length = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
            assert!((HEADER..=MOST).contains(&length) && bytes[18] == UPDATE, "{length}");
            all.push(bytes[HEADER..length].to_vec());
            bytes = &bytes[length..];
        }
        all
    }

    fn networks(mut bytes: &[u8], width: usize) -> Vec<(Vec<u8>, u8)> {
        let mut all = Vec::new();
        while let Some((&len, rest)) = bytes.split_first() {
            let n = usize::from(len).div_ceil(8);
            let mut network = rest[..n].to_vec();
            network.resize(width, 0);
            all.push((network, len));
            bytes = &rest[n..];
        }
        all
    }

    /// An attribute: its number and value.
    type Attribute = (u8, Vec<u8>);

    fn attributes_of(mut bytes: &[u8]) -> Vec<Attribute> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let long = bytes[0] & EXTENDED_LENGTH != 0;
            let length = if long {
                usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))
            } else {
                usize::from(bytes[2])
            };
            let at = if long { 4 } else { 3 };
            all.push((bytes[1], bytes[at..at + length].to_vec()));
            bytes = &bytes[at + length..];
        }
        all
    }

    /// What is withdrawn, the attributes, what is announced.
    fn parts(body: &[u8]) -> (Vec<u8>, Vec<Attribute>, Vec<u8>) {
        let withdrawn = usize::from(u16::from_be_bytes([body[0], body[1]]));
        let rest = &body[2 + withdrawn..];
        let length = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
        (body[2..2 + withdrawn].to_vec(), attributes_of(&rest[2..2 + length]), rest[2 + length..].to_vec())
    }

    #[test]
    fn each_ip4_prefix_is_announced_and_withdrawn_once() {
        let table = table::ip4(20_000, 1);
        let made = messages4(&table, &ORIGIN);
        let wanted: HashSet<_> = table.iter().map(|(n, len)| (n.octets().to_vec(), *len)).collect();
        let mut announced = Vec::new();
        let bodies_of = bodies(&made.announce);
        for body in &bodies_of {
            let (withdrawn, attributes, reach) = parts(body);
            assert!(withdrawn.is_empty());
            if let Some((_, next_hop)) = attributes.iter().find(|(kind, _)| *kind == 3) {
                assert_eq!(next_hop, &[10, 0, 2, 2]);
                assert_eq!(attributes[1].1[2..6], 65_001_u32.to_be_bytes(), "the first system is the peer's");
                assert!(attributes.windows(2).all(|w| w[0].0 < w[1].0), "in order of their numbers");
            }
            announced.extend(networks(&reach, 4));
        }
        assert_eq!(bodies_of.last().unwrap(), &[0; 4], "the end-of-RIB");
        assert_eq!(announced.len(), 20_000);
        assert_eq!(announced.into_iter().collect::<HashSet<_>>(), wanted);
        let withdrawn: Vec<_> =
            bodies(&made.withdraw).iter().flat_map(|b| networks(&parts(b).0, 4)).collect();
        assert_eq!(withdrawn.len(), 20_000);
        assert_eq!(withdrawn.into_iter().collect::<HashSet<_>>(), wanted);
        assert!((2_000..8_000).contains(&made.groups), "{} groups", made.groups);
    }

    #[test]
    fn each_ip6_prefix_is_announced_and_withdrawn_once() {
        let table = table::ip6(8_000, 1);
        let made = messages6(&table, &ORIGIN);
        let wanted: HashSet<_> = table.iter().map(|(n, len)| (n.octets().to_vec(), *len)).collect();
        let mut announced = Vec::new();
        for body in bodies(&made.announce) {
            for (kind, value) in parts(&body).1 {
                if kind == 14 {
                    assert_eq!(value[..4], [0, 2, 1, 16]);
                    assert_eq!(value[4..20], ORIGIN.address6.octets());
                    announced.extend(networks(&value[21..], 16));
                }
            }
        }
        assert_eq!(announced.len(), 8_000);
        assert_eq!(announced.into_iter().collect::<HashSet<_>>(), wanted);
        let gone: Vec<_> =
            bodies(&made.withdraw).iter().flat_map(|b| networks(&parts(b).1[0].1[3..], 16)).collect();
        assert_eq!(gone.len(), 8_000);
        assert_eq!(gone.into_iter().collect::<HashSet<_>>(), wanted);
    }

    #[test]
    fn a_seed_gives_the_same_bytes_and_nothing_gives_the_end_of_rib() {
        let table = table::ip4(500, 3);
        assert_eq!(messages4(&table, &ORIGIN), messages4(&table, &ORIGIN));
        assert_ne!(messages4(&table, &ORIGIN), messages4(&table, &Origin { seed: 2, ..ORIGIN }));
        let none = messages6(&[], &ORIGIN);
        assert!(none.withdraw.is_empty() && none.groups == 0);
        assert_eq!(parts(&bodies(&none.announce)[0]).1, [(15, vec![0, 2, 1])]);
    }
}
