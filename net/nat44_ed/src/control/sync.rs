//! Sessions on their way to another router and from there: how they are written, and whether they fit this router.
//!
//! ```text
//!  0 flags    1: the far end is not the same on both sides   2: VRFs follow
//!  1 protocol
//!  2 marks    what kind of session
//!  3 state of inside's direction, of outside's
//!  5 seconds since the last packet (2), packets (4), bytes (6)
//! 17 inside:  source (4), destination (4), ports (2 + 2)
//! 29 outside: source (4), port (2)
//!    1: outside: destination (4), port (2)
//!    2: VRF of inside (4), of outside (4)
//! ```

use std::net::Ipv4Addr;

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_nat::Tuple;
use shoal_nat_state::sync::{Misfit, SyncControl};

use super::Nat44;
use crate::config::Config;
use crate::owner::Direction;
use crate::session_direction::Marks;
use crate::sessions::{Record, Session, Sessions, TICKS};
use crate::tcp::State;

/// The number of this kind of NAT in datagrams.
pub(super) const NUMBER: u8 = 1;

/// The far end differs.
const FAR: u8 = 1;
/// VRFs follow.
const VRFS: u8 = 2;
/// What another router says of the kind of a session; the rest follows from the tuples.
const MARKS: u8 = Marks::STATIC | Marks::TWICE | Marks::BALANCED | Marks::HAIRPIN | Marks::OUTPUT;

/// Takes numbers off the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Misfit> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(Misfit::Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u8(&mut self) -> Result<u8, Misfit> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, Misfit> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Misfit> {
        self.take().map(u32::from_be_bytes)
    }
}

/// A session without tables, and the VRFs of both sides.
type Written = (Record, (u32, u32));

fn read(bytes: &[u8], forgiven: u32) -> Result<Written, Misfit> {
    let mut from = Reader(bytes);
    let (flags, protocol, marks) = (from.u8()?, from.u8()?, from.u8()?);
    if flags & !(FAR | VRFS) != 0 || marks & !MARKS != 0 {
        return Err(Misfit::Malformed);
    }
    let state = |bits| State::from_bits(protocol, bits).ok_or(Misfit::Malformed);
    let states = (state(from.u8()?)?, state(from.u8()?)?);
    let idle = u32::from(from.u16()?).saturating_sub(forgiven);
    let packets = from.u32()?;
    let [b0, b1, b2, b3, b4, b5] = from.take()?;
    let bytes = u64::from_be_bytes([0, 0, b0, b1, b2, b3, b4, b5]);
    let inside = Tuple { src: from.u32()?, dst: from.u32()?, sport: from.u16()?, dport: from.u16()? };
    let mut outside = Tuple { src: from.u32()?, sport: from.u16()?, ..inside };
    if flags & FAR != 0 {
        (outside.dst, outside.dport) = (from.u32()?, from.u16()?);
    }
    let vrfs = if flags & VRFS != 0 { (from.u32()?, from.u32()?) } else { (0, 0) };
    if !from.0.is_empty() || states.0.timeout() != states.1.timeout() {
        return Err(Misfit::Malformed);
    }
    let session = Session { inside, inside_table: 0, outside, outside_table: 0, protocol, marks };
    let record =
        Record { session, states, packets: packets.into(), bytes, age: idle * TICKS as u32, index: 0 };
    Ok((record, vrfs))
}

/// Whether pool and mappings of this router would have given the session these tuples.
fn fits(config: &Config, session: &Session) -> Result<(), Misfit> {
    let Session { inside, outside, protocol, marks, .. } = *session;
    let has = |bits| marks & bits != 0;
    let (address, port) = (outside.src, outside.sport);
    let other = || Misfit::OtherMapping(Ipv4Addr::from_bits(address), port);
    let mappings = &config.mappings;
    if has(Marks::STATIC) {
        let mapping =
            mappings.external(address, port, protocol).filter(|it| !it.identity).ok_or_else(other)?;
        let serves = mapping.locals.iter().any(|local| {
            local.address == inside.src && (mapping.is_address_only() || local.port == inside.sport)
        });
        if !serves || has(Marks::BALANCED) != mapping.balanced.is_some() {
            return Err(other());
        }
    } else if !config.is_pool(address) {
        return Err(Misfit::NotShared(Ipv4Addr::from_bits(address)));
    } else if mappings.exact(address, port, protocol).is_some() {
        return Err(other());
    }
    let is_far_same = inside.dst == outside.dst;
    if has(Marks::HAIRPIN) {
        let served = mappings.external(inside.dst, inside.dport, protocol);
        let serves = served.is_some_and(|it| it.locals.iter().any(|local| local.address == outside.dst));
        if !serves {
            return Err(Misfit::OtherMapping(Ipv4Addr::from_bits(inside.dst), inside.dport));
        }
    } else if has(Marks::TWICE) {
        if !is_far_same && !config.is_twice(inside.dst) {
            return Err(Misfit::NotShared(Ipv4Addr::from_bits(inside.dst)));
        }
    } else if !is_far_same {
        return Err(Misfit::Malformed);
    }
    Ok(())
}

impl SyncControl<Sessions> for Nat44 {
    fn is_on(&self) -> bool {
        Nat44::is_on(self)
    }

    fn set_standby(&self, standby: bool) {
        if self.is_standby.replace(standby) != standby && Nat44::is_on(self) {
            self.publish();
        }
    }

    fn answers(&self) -> Vec<(SwIfIndex, Ipv4Addr)> {
        self.proxied().into_iter().map(|((_, address), interface)| (interface, address.network())).collect()
    }

    fn encode(&self, record: &Record, to: &mut Vec<u8>) {
        let Record { session, states, packets, bytes, age, .. } = *record;
        let Session { inside, outside, protocol, marks, .. } = session;
        let vrfs = (self.vrf_of_table(session.inside_table), self.vrf_of_table(session.outside_table));
        let is_far_other = (inside.dst, inside.dport) != (outside.dst, outside.dport);
        let flags = if is_far_other { FAR } else { 0 } | if vrfs == (0, 0) { 0 } else { VRFS };
        to.extend([flags, protocol, marks & MARKS, states.0.to_bits(), states.1.to_bits()]);
        let idle = u16::try_from(age / TICKS as u32).unwrap_or(u16::MAX);
        to.extend(idle.to_be_bytes());
        to.extend(u32::try_from(packets).unwrap_or(u32::MAX).to_be_bytes());
        let [_, _, rest @ ..] = bytes.to_be_bytes();
        to.extend(rest);
        for number in [inside.src, inside.dst] {
            to.extend(number.to_be_bytes());
        }
        to.extend([inside.sport.to_be_bytes(), inside.dport.to_be_bytes()].concat());
        to.extend(outside.src.to_be_bytes());
        to.extend(outside.sport.to_be_bytes());
        if is_far_other {
            to.extend(outside.dst.to_be_bytes());
            to.extend(outside.dport.to_be_bytes());
        }
        if vrfs != (0, 0) {
            to.extend(vrfs.0.to_be_bytes());
            to.extend(vrfs.1.to_be_bytes());
        }
    }

    fn decode(&self, bytes: &[u8], forgiven: u32) -> Result<Record, Misfit> {
        let (mut record, vrfs) = read(bytes, forgiven)?;
        let table = |vrf| {
            let found = self.fib.index_of(Family::Ip4, vrf);
            found.map(|fib| fib.0).map_err(|_| Misfit::NoTable(vrf))
        };
        record.session.inside_table = table(vrfs.0)?;
        record.session.outside_table = table(vrfs.1)?;
        fits(&self.shared.config.get(), &record.session)?;
        Ok(record)
    }

    fn owner(&self, record: &Record) -> Option<usize> {
        let Session { inside, outside, protocol, .. } = record.session;
        let config = self.shared.config.get();
        let of_answers = config.owner(outside.reversed(), protocol, Direction::Out2in);
        (config.owner(inside, protocol, Direction::In2out) == of_answers).then_some(of_answers)
    }

    fn name(bytes: &[u8]) -> String {
        read(bytes, 0).map_or_else(
            |_| format!("{} bytes that are no session of nat44-ed", bytes.len()),
            |(record, _)| text(&record.session),
        )
    }

    fn text(&self, record: &Record) -> String {
        text(&record.session)
    }
}

fn text(session: &Session) -> String {
    let Session { inside, outside, protocol, .. } = *session;
    let end = |(address, port): (u32, u16)| format!("{}:{port}", Ipv4Addr::from_bits(address));
    format!(
        "protocol {protocol} {} as {} to {}",
        end((inside.src, inside.sport)),
        end((outside.src, outside.sport)),
        end((outside.dst, outside.dport)),
    )
}
