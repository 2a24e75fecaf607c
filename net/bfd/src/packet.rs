//! Control packets (RFC 5880, 4.1) and echo packets, on bytes.

use std::fmt;

use crate::auth::{AuthType, Key};

/// Bytes of a control packet without authentication.
pub const LEN: usize = 24;
/// Bytes of an authentication section with SHA1 (RFC 5880, 4.4).
pub const AUTH_LEN: usize = 28;
/// Bytes of an echo packet, which only its sender reads.
pub const ECHO_LEN: usize = 20;

const VERSION: u8 = 1;
const HASH: usize = 20;

/// The state of a session (RFC 5880, 4.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum State {
    /// Switched off by its operator.
    AdminDown,
    /// Nothing is heard.
    #[default]
    Down,
    /// The other one is heard, and does not hear us yet.
    Init,
    /// Both hear each other.
    Up,
}

impl State {
    /// The state of two bits.
    pub const fn of(bits: u8) -> State {
        match bits & 3 {
            0 => State::AdminDown,
            1 => State::Down,
            2 => State::Init,
            _ => State::Up,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::AdminDown => "AdminDown",
            State::Down => "Down",
            State::Init => "Init",
            State::Up => "Up",
        })
    }
}

/// Why a session went down last (RFC 5880, 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Diag(pub u8);

impl Diag {
    /// It did not.
    pub const NONE: Diag = Diag(0);
    /// Control packets stopped coming.
    pub const EXPIRED: Diag = Diag(1);
    /// Echo packets did not come back.
    pub const ECHO_FAILED: Diag = Diag(2);
    /// The other end reported so.
    pub const NEIGHBOR_DOWN: Diag = Diag(3);
    /// An operator did it.
    pub const ADMIN_DOWN: Diag = Diag(7);
}

impl fmt::Display for Diag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self.0 {
            0 => "No Diagnostic",
            1 => "Control Detection Time Expired",
            2 => "Echo Function Failed",
            3 => "Neighbor Signaled Session Down",
            4 => "Forwarding Plane Reset",
            5 => "Path Down",
            6 => "Concatenated Path Down",
            7 => "Administratively Down",
            8 => "Reverse Concatenated Path Down",
            _ => "unknown",
        })
    }
}

/// A bit of a control packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bits(pub u8);

impl Bits {
    /// An answer with [`Bits::FINAL`] is asked for.
    pub const POLL: u8 = 0x20;
    /// The answer to [`Bits::POLL`].
    pub const FINAL: u8 = 0x10;
    /// There is an authentication section.
    pub const AUTH: u8 = 0x04;
    /// The sender does not want to be sent packets.
    pub const DEMAND: u8 = 0x02;
    /// For a version of the protocol that is not there.
    pub const MULTIPOINT: u8 = 0x01;

    /// Whether a bit is set.
    pub const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// A control packet without its authentication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Control {
    /// Why its sender's session went down last.
    pub diag: Diag,
    /// Its sender's state.
    pub state: State,
    /// Its bits.
    pub bits: Bits,
    /// How many packets may be lost.
    pub detect_mult: u8,
    /// The sender's number of the session.
    pub my_discr: u32,
    /// The receiver's, 0 if it is not known.
    pub your_discr: u32,
    /// Microseconds between packets that the sender would like to send.
    pub desired_min_tx: u32,
    /// Microseconds between packets that it can receive.
    pub required_min_rx: u32,
    /// Microseconds between echo packets that it can send back; 0: none.
    pub required_min_echo_rx: u32,
}

/// What is wrong with a packet whatever session it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalid {
    /// Another version.
    Version,
    /// Too short, or its length lies.
    Length,
    /// No packet may be lost.
    DetectMulti,
    /// The bit that must be zero is not.
    MultiPoint,
    /// The sender's number is zero.
    MyDisc,
    /// The receiver's number is zero, and the state is one that knows it.
    YourDisc,
}

/// The authentication section of a packet with SHA1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section {
    /// Which kind.
    pub kind: u8,
    /// The key's number, which both ends know.
    pub key_id: u8,
    /// The sequence number.
    pub sequence: u32,
}

fn long(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}

impl Control {
    /// Reads a packet (RFC 5880, 6.8.6, what needs no session).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Control, Invalid> {
        let &[first, second, detect_mult, length, ..] = bytes else { return Err(Invalid::Length) };
        if first >> 5 != VERSION {
            return Err(Invalid::Version);
        }
        let bits = Bits(second & 0x3f);
        let least = if bits.has(Bits::AUTH) { LEN + 2 } else { LEN };
        if usize::from(length) < least || usize::from(length) > bytes.len() {
            return Err(Invalid::Length);
        }
        if detect_mult == 0 {
            return Err(Invalid::DetectMulti);
        }
        if bits.has(Bits::MULTIPOINT) {
            return Err(Invalid::MultiPoint);
        }
        let control = Control {
            diag: Diag(first & 0x1f),
            state: State::of(second >> 6),
            bits,
            detect_mult,
            my_discr: long(bytes, 4),
            your_discr: long(bytes, 8),
            desired_min_tx: long(bytes, 12),
            required_min_rx: long(bytes, 16),
            required_min_echo_rx: long(bytes, 20),
        };
        if control.my_discr == 0 {
            return Err(Invalid::MyDisc);
        }
        if control.your_discr == 0 && control.state > State::Down {
            return Err(Invalid::YourDisc);
        }
        Ok(control)
    }

    /// The bytes of a packet; with authentication, if there is a key: its number on the wire, and the sequence number.
    pub fn write(&self, auth: Option<(&Key, u8, u32)>) -> Vec<u8> {
        let mut bits = self.bits.0 & !Bits::AUTH;
        let mut length = LEN;
        if auth.is_some() {
            bits |= Bits::AUTH;
            length += AUTH_LEN;
        }
        let mut out = Vec::with_capacity(length);
        let state = self.state as u8;
        out.extend([VERSION << 5 | self.diag.0 & 0x1f, state << 6 | bits, self.detect_mult, length as u8]);
        let words = [
            self.my_discr,
            self.your_discr,
            self.desired_min_tx,
            self.required_min_rx,
            self.required_min_echo_rx,
        ];
        out.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        if let Some((key, key_id, sequence)) = auth {
            out.extend([key.kind as u8, AUTH_LEN as u8, key_id, 0]);
            out.extend(sequence.to_be_bytes());
            let hash = key.hash(&out);
            out.extend(hash);
        }
        out
    }
}

impl Section {
    /// Reads the section of a packet that has one; `None` if it is none with SHA1.
    pub fn read(bytes: &[u8]) -> Option<Section> {
        let &[kind, length, key_id, _, ..] = bytes.get(LEN..)? else { return None };
        let known = AuthType::of(kind).is_some() && usize::from(length) == AUTH_LEN;
        let whole = bytes.get(3).is_some_and(|length| usize::from(*length) == LEN + AUTH_LEN);
        (known && whole && bytes.len() >= LEN + AUTH_LEN).then(|| Section {
            kind,
            key_id,
            sequence: long(bytes, LEN + 4),
        })
    }

    /// Whether a packet's hash is that of this key.
    pub fn is_of(bytes: &[u8], key: &Key) -> bool {
        let (Some(signed), Some(hash)) =
            (bytes.get(..LEN + AUTH_LEN - HASH), bytes.get(LEN + AUTH_LEN - HASH..LEN + AUTH_LEN))
        else {
            return false;
        };
        // All bytes are compared, so that the time tells nothing of where they differ.
        key.hash(signed).iter().zip(hash).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// What an echo packet of ours says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo {
    /// The session.
    pub discr: u32,
    /// Nanoseconds of the router's clock after which it proves nothing.
    pub expires: u64,
}

impl Echo {
    /// The bytes, signed with a secret of this router, so that no stranger can make one.
    pub fn write(&self, secret: &Key) -> [u8; ECHO_LEN] {
        let mut out = [0; ECHO_LEN];
        out[..4].copy_from_slice(&self.discr.to_be_bytes());
        out[4..12].copy_from_slice(&self.expires.to_be_bytes());
        let hash = secret.hash(&out[..12]);
        out[12..].copy_from_slice(&hash[..8]);
        out
    }

    /// Reads an echo packet of ours; `None` if it is another one's.
    pub fn read(bytes: &[u8], secret: &Key) -> Option<Echo> {
        let bytes: &[u8; ECHO_LEN] = bytes.first_chunk()?;
        let discr = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let expires = u64::from_be_bytes(*bytes[4..].first_chunk()?);
        let echo = Echo { discr, expires };
        (echo.write(secret) == *bytes).then_some(echo)
    }
}
