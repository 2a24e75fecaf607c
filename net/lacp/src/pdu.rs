//! The frames of slow protocols that a bond needs: LACPDUs and markers. IEEE 802.1AX, 6.4.2 and 6.5.3.

use shoal_wire::MacAddress;

/// Where they are sent.
pub const SLOW_PROTOCOLS: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0x00, 0x00, 0x02]);
/// Bytes of each behind the Ethernet header.
pub const LEN: usize = 110;

const LACP: u8 = 1;
const MARKER: u8 = 2;
const VERSION: u8 = 1;

/// What one end says of its port, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State(pub u8);

impl State {
    /// It speaks without being spoken to.
    pub const ACTIVITY: State = State(1);
    /// It wants to hear the other end each second.
    pub const TIMEOUT: State = State(1 << 1);
    /// The link may be one of several.
    pub const AGGREGATION: State = State(1 << 2);
    /// The link is part of the right bond.
    pub const SYNC: State = State(1 << 3);
    /// It takes frames.
    pub const COLLECTING: State = State(1 << 4);
    /// It sends frames.
    pub const DISTRIBUTING: State = State(1 << 5);
    /// It has not heard the other end, and takes it for what was set.
    pub const DEFAULTED: State = State(1 << 6);
    /// It has not heard the other end for some time.
    pub const EXPIRED: State = State(1 << 7);

    /// Whether a bit is set.
    pub fn has(self, bit: State) -> bool {
        self.0 & bit.0 != 0
    }

    /// The same with a bit set or not.
    #[must_use]
    pub fn set(self, bit: State, on: bool) -> State {
        if on { State(self.0 | bit.0) } else { State(self.0 & !bit.0) }
    }
}

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct End {
    /// The system's priority.
    pub system_priority: u16,
    /// The system.
    pub system: [u8; 6],
    /// Ports of a system with the same key can be one bond.
    pub key: u16,
    /// The port's priority.
    pub port_priority: u16,
    /// The port's number.
    pub port: u16,
    /// Its state bits.
    pub state: State,
}

impl End {
    /// Whether it is the same port of the same bond; its state may differ.
    pub fn is_same_port(&self, other: &End) -> bool {
        End { state: State(0), ..*self } == End { state: State(0), ..*other }
            && self.state.has(State::AGGREGATION) == other.state.has(State::AGGREGATION)
    }

    fn read(bytes: &[u8; 15]) -> End {
        let [p0, p1, s0, s1, s2, s3, s4, s5, k0, k1, q0, q1, n0, n1, state] = *bytes;
        End {
            system_priority: u16::from_be_bytes([p0, p1]),
            system: [s0, s1, s2, s3, s4, s5],
            key: u16::from_be_bytes([k0, k1]),
            port_priority: u16::from_be_bytes([q0, q1]),
            port: u16::from_be_bytes([n0, n1]),
            state: State(state),
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.system_priority.to_be_bytes());
        to.extend(self.system);
        to.extend(self.key.to_be_bytes());
        to.extend(self.port_priority.to_be_bytes());
        to.extend(self.port.to_be_bytes());
        to.push(self.state.0);
        to.extend([0; 3]);
    }
}

/// What one end says of itself, and what it has heard of the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pdu {
    /// The sender.
    pub actor: End,
    /// The other end as the sender knows it.
    pub partner: End,
}

/// A question whether all frames before it have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marker {
    /// The port that asks, its system, and the number of the question: answered as they are.
    pub asker: [u8; 12],
}

/// A frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// An LACPDU.
    Lacp(Pdu),
    /// A marker.
    Marker(Marker),
    /// An answer to a marker. This router asks none.
    MarkerResponse,
}

/// Why a frame says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalid {
    /// Another slow protocol.
    Unsupported,
    /// It is cut short.
    TooSmall,
    /// A part is not what has to be there, or not as long.
    Tlv,
}

/// Reads a frame behind its Ethernet header. Of later versions what the first one has is read: 6.4.2.3.
pub fn read(bytes: &[u8]) -> Result<Message, Invalid> {
    let [subtype, _, rest @ ..] = bytes else { return Err(Invalid::TooSmall) };
    match *subtype {
        LACP => {
            // Actor and partner, each with type, length and reserved bytes.
            let (actor, rest) = rest.split_first_chunk::<20>().ok_or(Invalid::TooSmall)?;
            let (partner, _) = rest.split_first_chunk::<20>().ok_or(Invalid::TooSmall)?;
            let end = |kind: u8, tlv: &[u8; 20]| match tlv {
                [found, 20, fields @ ..] if *found == kind => {
                    fields.first_chunk::<15>().map(End::read).ok_or(Invalid::TooSmall)
                }
                _ => Err(Invalid::Tlv),
            };
            Ok(Message::Lacp(Pdu { actor: end(1, actor)?, partner: end(2, partner)? }))
        }
        MARKER => match rest.first_chunk::<14>() {
            None => Err(Invalid::TooSmall),
            Some([1, 16, asker @ ..]) => Ok(Message::Marker(Marker { asker: *asker })),
            Some([2, 16, ..]) => Ok(Message::MarkerResponse),
            Some(_) => Err(Invalid::Tlv),
        },
        _ => Err(Invalid::Unsupported),
    }
}

impl Pdu {
    /// The bytes behind the Ethernet header.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![LACP, VERSION, 1, 20];
        self.actor.write(&mut bytes);
        bytes.extend([2, 20]);
        self.partner.write(&mut bytes);
        // How long frames may wait here: not at all.
        bytes.extend([3, 16, 0, 0]);
        bytes.resize(LEN, 0);
        bytes
    }
}

impl Marker {
    /// The bytes of the answer behind the Ethernet header.
    pub fn response(&self) -> Vec<u8> {
        let mut bytes = vec![MARKER, VERSION, 2, 16];
        bytes.extend(self.asker);
        bytes.resize(LEN, 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let actor = End {
            system_priority: 0xffff,
            system: [2, 0xfe, 1, 2, 3, 4],
            key: 5,
            port_priority: 0xff,
            port: 1,
            state: State(0x3d),
        };
        let pdu = Pdu { actor, partner: End { port: 9, ..actor } };
        let bytes = pdu.bytes();
        assert_eq!((bytes.len(), &bytes[..4]), (110, &[1, 1, 1, 20][..]));
        assert_eq!(read(&bytes), Ok(Message::Lacp(pdu)));
        for len in 0..42 {
            assert_eq!(read(&bytes[..len]), Err(Invalid::TooSmall), "{len}");
        }
        let marker = Marker { asker: *b"askerasker12" };
        assert_eq!(read(&marker.response()), Ok(Message::MarkerResponse));
        let mut question = marker.response();
        question[2] = 1;
        assert_eq!(read(&question), Ok(Message::Marker(marker)));
    }

    #[test]
    fn parts_that_are_not_right_are_told_apart() {
        let mut bytes = Pdu::default().bytes();
        bytes[3] = 19;
        assert_eq!(read(&bytes), Err(Invalid::Tlv));
        bytes[3] = 20;
        bytes[22] = 1;
        assert_eq!(read(&bytes), Err(Invalid::Tlv));
        bytes[0] = 3;
        assert_eq!(read(&bytes), Err(Invalid::Unsupported));
        assert_eq!(read(&[2, 1, 3, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(Invalid::Tlv));
    }
}
