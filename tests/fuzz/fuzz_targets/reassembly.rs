//! Fragments of a few datagrams in any order, at any place and of any length, to be put together on `pg0` or by the
//! router itself, both families. Each takes five bytes of the input. Whatever is forwarded must be made of the bytes
//! that were sent: those say where in which datagram they are.
#![no_main]

use std::cell::RefCell;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use shoal_fuzz::router;
use shoal_interface::SwIfIndex;
use shoal_pg::Sink;
use shoal_testkit::{PacketBuilder, Router};
use shoal_wire::packet::Fragment;
use shoal_wire::{Ip4Header, IpProtocol, MacAddress};

/// A protocol that no node looks into.
const PROTOCOL: IpProtocol = IpProtocol(253);
const RX: SwIfIndex = SwIfIndex(1);
const TX: SwIfIndex = SwIfIndex(3);
const US: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 0]);
const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 0]);

struct Bed {
    router: Router,
    sink: Arc<Sink>,
}

thread_local! {
    static BED: RefCell<Option<Bed>> = const { RefCell::new(None) };
}

/// The byte at a place of a datagram.
fn byte(id: u8, at: usize) -> u8 {
    (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8).wrapping_add(id.wrapping_mul(77))
}

fn six(net: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host)
}

/// One fragment: `how` says family, datagram, whether more follow and whose it is; now and then a byte is wrong.
fn fragment([how, at, place, len, odd]: [u8; 5]) -> Vec<u8> {
    let (id, more, ours) = (how >> 1 & 3, how & 8 != 0, how & 16 != 0);
    let at = (usize::from(at) | usize::from(place & 15) << 8) * 8;
    let mut body: Vec<u8> =
        (at..at + usize::from(len) * if odd & 1 == 0 { 8 } else { 1 }).map(|n| byte(id, n)).collect();
    if odd & 0xf0 == 0xf0
        && let Some(wrong) = body.last_mut()
    {
        *wrong ^= 0x55;
    }
    let packet = PacketBuilder::ethernet(HOST, US);
    let packet = if how & 1 == 0 {
        let dst = if ours { [10, 0, 0, 1] } else { [10, 0, 2, 2] };
        let more = if more { Fragment::More } else { Fragment::Last };
        packet.ip4([10, 0, 0, 2], dst).protocol(PROTOCOL).id(u16::from(id)).fragment(at as u16, more)
    } else {
        let dst = if ours { six(0, 1) } else { six(2, 2) };
        let word = (at as u16 & 0xfff8) | u16::from(more);
        let [high, low] = word.to_be_bytes();
        packet
            .ip6(six(0, 2), dst)
            .ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &[high, low, 0, 0, 0, id])
            .protocol(PROTOCOL)
    };
    packet.tos(odd >> 1 & 3).payload(&body).build()
}

/// What was forwarded whole must be what was sent; errors are none of this router's interface `pg2`.
fn check(frame: &[u8]) {
    let Some((kind, packet)) = frame.get(12..).and_then(|f| f.split_first_chunk::<2>()) else { return };
    let (header, protocol, whole) = match kind {
        [8, 0] => {
            let header = usize::from(packet[0] & 15) * 4;
            let word = u16::from_be_bytes([packet[6], packet[7]]);
            (header, packet[9], word & (Ip4Header::MORE_FRAGMENTS | 0x1fff) == 0)
        }
        [0x86, 0xdd] => (40, packet[6], packet[6] != IpProtocol::IPV6_FRAGMENTATION.0),
        _ => return,
    };
    if protocol != PROTOCOL.0 || !whole {
        return;
    }
    let total = if header == 40 {
        40 + usize::from(u16::from_be_bytes([packet[4], packet[5]]))
    } else {
        usize::from(u16::from_be_bytes([packet[2], packet[3]]))
    };
    let body = &packet[header..total];
    let fits = |id: u8| {
        body.iter().enumerate().filter(|(n, b)| **b != byte(id, *n)).all(|(n, b)| *b == byte(id, n) ^ 0x55)
    };
    assert!((0..4).any(fits), "a datagram of bytes from the wrong places: {body:02x?}");
}

fuzz_target!(|data: &[u8]| {
    BED.with_borrow_mut(|bed| {
        let bed = bed.get_or_insert_with(|| {
            let router = router();
            let sink = router.generator().attach_sink(TX).expect("the interface is there");
            Bed { router, sink }
        });
        for (n, piece) in data.chunks_exact(5).enumerate() {
            let piece: [u8; 5] = piece.try_into().expect("five bytes");
            bed.router.generator().inject(RX, fragment(piece)).expect("the interface is there");
            if piece[4] & 8 == 0 || n % 64 == 63 {
                bed.router.run();
            }
            if piece[4] & 0x70 == 0x70 {
                bed.router.advance(Duration::from_secs(3));
            }
        }
        bed.router.run();
        bed.sink.take().iter().for_each(|frame| check(frame));
        bed.router.advance(Duration::from_secs(20));
        bed.sink.take();
        assert_eq!(bed.router.buffers_in_use(), 0, "buffers did not come back");
    });
});
