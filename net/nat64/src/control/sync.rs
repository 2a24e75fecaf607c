//! Sessions on their way to another router and from there: how they are written, and whether they fit this router.
//!
//! ```text
//!  0 protocol   1 state of TCP   2 seconds since the last packet (2)
//!  4 inside:  address (16), port (2), VRF (4)
//! 26 outside: address (4), port (2)
//! 32 remote:  address (4), port (2)
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_nat_state::sync::{Misfit, SyncControl};

use super::Nat64;
use crate::config::{Config, Inside, Outside};
use crate::sessions::{Record, Sessions, SyncedSession};
use crate::tcp::State;

/// The number of this kind of NAT in datagrams.
pub(super) const NUMBER: u8 = 2;

/// Bytes of a session.
const LENGTH: usize = 38;

/// A session whose host's table is the number of its VRF.
fn read(bytes: &[u8], forgiven: u32) -> Result<SyncedSession, Misfit> {
    let bytes: &[u8; LENGTH] = bytes.try_into().map_err(|_| Misfit::Malformed)?;
    let [protocol, state, i0, i1, rest @ ..] = *bytes;
    let (host, rest) = rest.split_first_chunk::<16>().ok_or(Misfit::Malformed)?;
    let [p0, p1, v0, v1, v2, v3, rest @ ..] = rest else { return Err(Misfit::Malformed) };
    let &[a0, a1, a2, a3, o0, o1, r0, r1, r2, r3, q0, q1] = rest else { return Err(Misfit::Malformed) };
    let (port, table) = (u16::from_be_bytes([*p0, *p1]), u32::from_be_bytes([*v0, *v1, *v2, *v3]));
    let inside = Inside { address: Ipv6Addr::from(*host), port, protocol, table };
    let address = Ipv4Addr::new(a0, a1, a2, a3);
    let outside = Outside { address, port: u16::from_be_bytes([o0, o1]), protocol };
    let remote = (Ipv4Addr::new(r0, r1, r2, r3), u16::from_be_bytes([q0, q1]));
    let state = State::from_bits(state).ok_or(Misfit::Malformed)?;
    let idle = u32::from(u16::from_be_bytes([i0, i1])).saturating_sub(forgiven);
    Ok(SyncedSession { record: Record { inside, outside, remote, state }, idle })
}

/// Whether pool and bindings of this router would have given the session these addresses.
fn fits(config: &Config, record: &Record) -> Result<(), Misfit> {
    let Record { inside, outside, .. } = record;
    let of_inside = config.by_inside.get(inside);
    let of_outside = config.by_outside.get(outside);
    let is_free = of_inside.is_none() && of_outside.is_none();
    if of_inside == Some(outside) || is_free && config.is_shared(outside.address) {
        return Ok(());
    }
    if is_free {
        return Err(Misfit::NotShared(outside.address));
    }
    Err(Misfit::OtherMapping(outside.address, outside.port))
}

fn text(record: &Record) -> String {
    let Record { inside, outside, remote, .. } = record;
    format!(
        "protocol {} [{}]:{} as {}:{} to {}:{}",
        inside.protocol, inside.address, inside.port, outside.address, outside.port, remote.0, remote.1
    )
}

impl SyncControl<Sessions> for Nat64 {
    fn is_on(&self) -> bool {
        Nat64::is_on(self)
    }

    fn set_standby(&self, standby: bool) {
        if self.is_standby.replace(standby) != standby && Nat64::is_on(self) {
            self.publish();
        }
    }

    fn answers(&self) -> Vec<(SwIfIndex, Ipv4Addr)> {
        self.proxied().into_iter().map(|((_, address), interface)| (interface, address.network())).collect()
    }

    fn encode(&self, synced: &SyncedSession, to: &mut Vec<u8>) {
        let SyncedSession { record: Record { inside, outside, remote, state }, idle } = synced;
        to.extend([inside.protocol, state.to_bits()]);
        to.extend(u16::try_from(*idle).unwrap_or(u16::MAX).to_be_bytes());
        to.extend(inside.address.octets());
        to.extend(inside.port.to_be_bytes());
        to.extend(self.vrf(inside.table).to_be_bytes());
        to.extend(outside.address.octets());
        to.extend(outside.port.to_be_bytes());
        to.extend(remote.0.octets());
        to.extend(remote.1.to_be_bytes());
    }

    fn decode(&self, bytes: &[u8], forgiven: u32) -> Result<SyncedSession, Misfit> {
        let mut synced = read(bytes, forgiven)?;
        let vrf = synced.record.inside.table;
        let table = self.fib.index_of(Family::Ip6, vrf).map_err(|_| Misfit::NoTable(vrf))?;
        synced.record.inside.table = table.0;
        fits(&self.shared.config.get(), &synced.record)?;
        Ok(synced)
    }

    fn owner(&self, synced: &SyncedSession) -> Option<usize> {
        let config = self.shared.config.get();
        let of_host = config.of_inside(&synced.record.inside);
        (config.of_outside(&synced.record.outside) == of_host).then_some(of_host)
    }

    fn name(bytes: &[u8]) -> String {
        read(bytes, 0).map_or_else(
            |_| format!("{} bytes that are no session of nat64", bytes.len()),
            |synced| text(&synced.record),
        )
    }

    fn text(&self, synced: &SyncedSession) -> String {
        text(&synced.record)
    }
}
