//! The table as netlink messages (linux/rtnetlink.h), as a daemon gives it to the kernel, and in frames of FPM (FRR, fpm/fpm.h).
//!
//! Numbers are in the byte order of the host.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::table::{Ip4, Ip6};

const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_NEWNEXTHOP: u16 = 104;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_REPLACE: u16 = 0x100;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_NH_ID: u16 = 30;
const NHA_ID: u16 = 1;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
/// The main table, routes by BGP, of global scope, unicast.
const KIND: [u8; 4] = [254, 186, 0, 1];
/// FPM: version 1, netlink inside.
const FPM: [u8; 2] = [1, 1];
/// What BGP has as its metric.
const METRIC: u32 = 20;
/// Bytes of messages that are given to the kernel at once.
const BATCH: usize = 32 << 10;

/// Where routes lead.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The interface's number in the namespace.
    pub interface: u32,
    /// The IPv4 neighbour.
    pub next_hop4: Ipv4Addr,
    /// The IPv6 neighbour.
    pub next_hop6: Ipv6Addr,
}

impl Way {
    fn next_hop(&self, four: bool) -> IpAddr {
        if four { self.next_hop4.into() } else { self.next_hop6.into() }
    }
}

/// Whether routes come or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// They come.
    Add,
    /// They go.
    Remove,
}

/// Messages for the kernel, in pieces that are sent one by one.
pub fn for_kernel(four: &[Ip4], six: &[Ip6], way: &Way, change: Change) -> Vec<Vec<u8>> {
    let mut pieces = vec![Vec::with_capacity(BATCH)];
    each(four, six, |network, len| {
        let hop = match change {
            Change::Add => vec![
                (RTA_GATEWAY, octets(way.next_hop(network.is_ipv4()))),
                (RTA_OIF, way.interface.to_ne_bytes().to_vec()),
            ],
            Change::Remove => Vec::new(),
        };
        let message = route(network, len, change, &hop);
        if pieces.last().is_some_and(|piece| piece.len() + message.len() > BATCH) {
            pieces.push(Vec::with_capacity(BATCH));
        }
        if let Some(piece) = pieces.last_mut() {
            piece.extend(message);
        }
    });
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Frames as zebra sends them: a next hop of each family, then a frame for each route.
pub fn for_fpm(four: &[Ip4], six: &[Ip6], way: &Way, change: Change) -> Vec<u8> {
    let mut all = Vec::new();
    if change == Change::Add {
        for (id, is_four) in [(1_u32, true), (2, false)] {
            let mut body = vec![family(is_four), 0, 186, 0, 0, 0, 0, 0];
            put(&mut body, NHA_ID, &id.to_ne_bytes());
            put(&mut body, NHA_GATEWAY, &octets(way.next_hop(is_four)));
            put(&mut body, NHA_OIF, &way.interface.to_ne_bytes());
            frame(&mut all, &message(RTM_NEWNEXTHOP, &body));
        }
    }
    each(four, six, |network, len| {
        let id = if network.is_ipv4() { 1_u32 } else { 2 };
        let hop = match change {
            Change::Add => vec![(RTA_NH_ID, id.to_ne_bytes().to_vec())],
            Change::Remove => Vec::new(),
        };
        frame(&mut all, &route(network, len, change, &hop));
    });
    all
}

/// Writes frames to a router and reads its answers meanwhile, which it would wait for otherwise; returns how many frames were
/// answered when all were or `enough` says so.
///
/// # Errors
/// The connection's.
pub fn replay(
    stream: &std::net::TcpStream,
    frames: &[u8],
    routes: u64,
    enough: &(dyn Fn() -> bool + Sync),
) -> io::Result<u64> {
    stream.set_read_timeout(Some(std::time::Duration::from_millis(50)))?;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| answers(stream, routes, enough));
        let mut writer = stream;
        let written = writer.write_all(frames);
        let answered = reader.join().unwrap_or_else(|_| Err(io::Error::other("the reader failed")));
        written.and(answered)
    })
}

/// Counts frames until there are so many.
fn answers(
    mut stream: &std::net::TcpStream,
    wanted: u64,
    enough: &(dyn Fn() -> bool + Sync),
) -> io::Result<u64> {
    let (mut bytes, mut held, mut count) = (vec![0; 256 << 10], 0, 0);
    while count < wanted {
        match stream.read(bytes.get_mut(held..).unwrap_or_default()) {
            Ok(0) => return Err(io::Error::other("the router closed the connection")),
            Ok(n) => held += n,
            Err(why) if matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if enough() {
                    break;
                }
            }
            Err(why) => return Err(why),
        }
        let mut at = 0;
        while let Some(&[_, _, high, low]) = bytes.get(at..at + 4).filter(|_| at + 4 <= held) {
            let length = usize::from(u16::from_be_bytes([high, low]));
            if length < 4 {
                return Err(io::Error::other("the router's answer is no FPM"));
            }
            if at + length > held {
                break;
            }
            at += length;
            count += 1;
        }
        bytes.copy_within(at..held, 0);
        held -= at;
    }
    Ok(count)
}

fn each(four: &[Ip4], six: &[Ip6], mut with: impl FnMut(IpAddr, u8)) {
    for (network, len) in four {
        with((*network).into(), *len);
    }
    for (network, len) in six {
        with((*network).into(), *len);
    }
}

fn family(four: bool) -> u8 {
    if four { 2 } else { 10 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

fn route(network: IpAddr, len: u8, change: Change, hop: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut body = vec![family(network.is_ipv4()), len, 0, 0];
    body.extend(KIND);
    body.extend([0; 4]);
    put(&mut body, RTA_DST, &octets(network));
    put(&mut body, RTA_PRIORITY, &METRIC.to_ne_bytes());
    for (kind, value) in hop {
        put(&mut body, *kind, value);
    }
    message(if change == Change::Add { RTM_NEWROUTE } else { RTM_DELROUTE }, &body)
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let flags = NLM_F_REQUEST | if kind == RTM_DELROUTE { 0 } else { NLM_F_CREATE | NLM_F_REPLACE };
    let mut all = (16 + body.len() as u32).to_ne_bytes().to_vec();
    all.extend(kind.to_ne_bytes());
    all.extend(flags.to_ne_bytes());
    all.extend([0; 8]);
    all.extend(body);
    all
}

fn put(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend((4 + value.len() as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn frame(out: &mut Vec<u8>, message: &[u8]) {
    out.extend(FPM);
    out.extend((4 + message.len() as u16).to_be_bytes());
    out.extend(message);
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::table;

    const WAY: Way = Way {
        interface: 7,
        next_hop4: Ipv4Addr::new(10, 0, 2, 2),
        next_hop6: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2),
    };

    #[test]
    fn the_kernel_gets_each_route_once_in_whole_messages() {
        let (four, six) = (table::ip4(3_000, 1), table::ip6(500, 1));
        for (change, kind) in [(Change::Add, RTM_NEWROUTE), (Change::Remove, RTM_DELROUTE)] {
            let mut count = 0;
            for piece in for_kernel(&four, &six, &WAY, change) {
                assert!(piece.len() <= BATCH);
                let mut rest = &piece[..];
                while !rest.is_empty() {
                    let length = u32::from_ne_bytes(rest[..4].try_into().unwrap()) as usize;
                    assert_eq!(rest[4..6], kind.to_ne_bytes());
                    assert_eq!(length % 4, 0);
                    rest = &rest[length..];
                    count += 1;
                }
            }
            assert_eq!(count, 3_500);
        }
    }

    #[test]
    fn a_frame_is_sent_for_each_route_and_answers_are_counted() {
        let (four, six) = (table::ip4(2_000, 1), table::ip6(300, 1));
        let frames = for_fpm(&four, &six, &WAY, Change::Add);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let length = frames.len();
        let router = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = vec![0; length];
            stream.read_exact(&mut all).unwrap();
            let (mut rest, mut routes) = (&all[..], 0_u64);
            while !rest.is_empty() {
                let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
                if rest[8..10] == RTM_NEWROUTE.to_ne_bytes() {
                    routes += 1;
                    stream.write_all(&rest[..length]).unwrap();
                }
                rest = &rest[length..];
            }
            routes
        });
        let answered = replay(&stream, &frames, 2_300, &|| false).unwrap();
        assert_eq!((answered, router.join().unwrap()), (2_300, 2_300));
    }

    #[test]
    fn a_router_that_goes_away_or_answers_rubbish_is_an_error() {
        for answer in [&b""[..], &[1, 1, 0, 2]] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut other, _) = listener.accept().unwrap();
            other.write_all(answer).unwrap();
            drop(other);
            let why = replay(&stream, &[], 1, &|| false).unwrap_err().to_string();
            assert!(why.contains("closed the connection") || why.contains("no FPM"), "{why}");
        }
    }
}
