//! The addresses that streams come from and go to: what a device under test needs routes and neighbours for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_lab_plan::{Side, Stream};

use crate::frame;
use crate::header::Headers;

/// Addresses of one stream; each pair is the lowest and the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Networks {
    /// Where it is sent.
    pub from: Side,
    /// Where its frames say that they come from.
    pub sources: (IpAddr, IpAddr),
    /// Where they go: behind the device's other port.
    pub destinations: (IpAddr, IpAddr),
}

/// The addresses of each stream whose frames are IP, each once.
///
/// The bounds are those of the fields: a profile that writes only some bits of an address may take fewer between them.
pub fn networks(streams: &[Stream]) -> Vec<Networks> {
    let mut found = Vec::new();
    for stream in streams {
        let (low, high) = (with(stream, Bound::Low), with(stream, Bound::High));
        let Some(((low_from, low_to), (high_from, high_to))) = addresses(&low).zip(addresses(&high)) else {
            continue;
        };
        let sources = (low_from.min(high_from), low_from.max(high_from));
        let destinations = (low_to.min(high_to), low_to.max(high_to));
        let networks = Networks { from: stream.from, sources, destinations };
        if !found.contains(&networks) {
            found.push(networks);
        }
    }
    found
}

#[derive(Clone, Copy)]
enum Bound {
    Low,
    High,
}

/// The frame with each variable at one of its bounds.
fn with(stream: &Stream, bound: Bound) -> Vec<u8> {
    let mut bytes = stream.frame.clone();
    for change in &stream.changes {
        let v = &change.variable;
        let value = match bound {
            Bound::Low => v.list.iter().copied().min().unwrap_or(v.min),
            Bound::High => v.list.iter().copied().max().unwrap_or(v.max),
        };
        change.writes.iter().for_each(|write| frame::put(&mut bytes, write, value));
    }
    bytes
}

fn addresses(bytes: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let both = bytes.get(Headers::of(bytes).addresses()?)?;
    if both.len() == 8 {
        let (from, to) = (both.first_chunk::<4>()?, both.last_chunk::<4>()?);
        return Some((Ipv4Addr::from(*from).into(), Ipv4Addr::from(*to).into()));
    }
    let (from, to) = both.split_at_checked(16)?;
    let address = |half: &[u8]| Some(IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(half).ok()?)));
    address(from).zip(address(to))
}
