//! Which ICMP error of one protocol is which of the other (RFC 7915, 4.2 and 5.2).

/// An error: type, code, and the word behind the checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub kind: u8,
    pub code: u8,
    pub word: u32,
}

const fn message(kind: u8, code: u8, word: u32) -> Option<Message> {
    Some(Message { kind, code, word })
}

/// RFC 1191, 7.1: how long packets of a link are likely to be.
const PLATEAUS: [u16; 10] = [32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68];
/// RFC 8200, 5: an IPv6 link takes packets of this length.
const LEAST_MTU: u32 = 1280;

/// How long a packet may be in IPv6, when the error says how long it may be in IPv4. 0: a router that does not say it.
fn mtu6(said: u16, packet: u16) -> u32 {
    let known =
        if said == 0 { PLATEAUS.into_iter().find(|length| *length < packet).unwrap_or(68) } else { said };
    (u32::from(known) + 20).max(LEAST_MTU)
}

/// Of which byte of the other header an error is.
fn pointer6(pointer: u8) -> Option<u32> {
    Some(match pointer {
        0 => 0,
        1 => 1,
        2 | 3 => 4,
        8 => 7,
        9 => 6,
        12..=15 => 8,
        16..=19 => 24,
        _ => return None,
    })
}

fn pointer4(pointer: u32) -> Option<u8> {
    Some(match pointer {
        0 => 0,
        1 => 1,
        4 | 5 => 2,
        6 => 9,
        7 => 8,
        8..=23 => 12,
        24..=39 => 16,
        _ => return None,
    })
}

/// An ICMP error as one of ICMPv6. `packet`: the length of the packet it is about.
pub(crate) fn message6(message4: Message, packet: u16) -> Option<Message> {
    let Message { kind, code, word } = message4;
    match (kind, code) {
        (3, 0 | 1 | 5..=8 | 11 | 12) => message(1, 0, 0),
        // The pointer is to the next header.
        (3, 2) => message(4, 1, 6),
        (3, 3) => message(1, 4, 0),
        (3, 4) => message(2, 0, mtu6(word as u16, packet)),
        (3, 9 | 10 | 13 | 15) => message(1, 1, 0),
        (11, 0 | 1) => message(3, code, 0),
        (12, 0 | 2) => message(4, 0, pointer6((word >> 24) as u8)?),
        _ => None,
    }
}

/// An error of ICMPv6 as one of ICMP.
pub(crate) fn message4(message6: Message) -> Option<Message> {
    let Message { kind, code, word } = message6;
    match (kind, code) {
        (1, 0 | 2 | 3) => message(3, 1, 0),
        (1, 1) => message(3, 10, 0),
        (1, 4) => message(3, 3, 0),
        (2, _) => message(3, 4, word.saturating_sub(20).clamp(68, 0xffff)),
        (3, 0 | 1) => message(11, code, 0),
        (4, 0) => message(12, 0, u32::from(pointer4(word)?) << 24),
        (4, 1) => message(3, 2, 0),
        _ => None,
    }
}
