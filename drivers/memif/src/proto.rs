//! Messages of the control channel: 128 bytes each, whatever they say (memif protocol, version 2.0).
//!
//! | type | who sends it | what follows |
//! |---|---|---|
//! | 2 hello | master | name 32, versions 2 + 2, most region, M2S ring, S2M ring 2 + 2 + 2, most log2 of a ring 1 |
//! | 3 init | slave | version 2, id 4, mode 1, secret 24, name 32 |
//! | 4 add region | slave, with its file | index 2, size 8 |
//! | 5 add ring | slave, with its eventfd | flags 2, index 2, region 2, offset 4, log2 of its size 1, private header 2 |
//! | 6 connect, 7 connected | slave, master | interface name 32 |
//! | 8 disconnect | both | code 4, text 96 |
//! | 1 ack | master | |
//!
//! Two bytes of type come first. Nothing is aligned, everything little-endian.

/// Bytes of a message.
pub const MESSAGE_BYTES: usize = 128;
/// The version spoken here: 2.0.
pub const VERSION: u16 = 0x0200;
/// Bytes of a secret.
pub const SECRET_BYTES: usize = 24;
/// In the flags of a ring: from slave to master.
const S2M: u16 = 1;

/// What frames of an interface begin with, by its number in the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// An Ethernet header.
    #[default]
    Ethernet,
    /// An IP header.
    Ip,
}

impl Mode {
    fn number(self) -> u8 {
        match self {
            Mode::Ethernet => 0,
            Mode::Ip => 1,
        }
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Ethernet => "ethernet",
            Mode::Ip => "ip",
        }
    }
}

/// A secret, padded with zeroes.
pub type Secret = [u8; SECRET_BYTES];

/// What the master is able to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Its name.
    pub name: String,
    /// The first and the last version it speaks.
    pub versions: (u16, u16),
    /// The last region it takes.
    pub max_region: u16,
    /// The last ring from master to slave it takes.
    pub max_m2s_ring: u16,
    /// The last ring from slave to master it takes.
    pub max_s2m_ring: u16,
    /// Most descriptors of a ring, as a power of two.
    pub max_log2: u8,
}

/// What the slave wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// The version it speaks.
    pub version: u16,
    /// The interface it wants.
    pub id: u32,
    /// What frames begin with: a number that may be none of [`Mode`]'s.
    pub mode: u8,
    /// The secret.
    pub secret: Secret,
    /// Its name.
    pub name: String,
}

/// A ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRing {
    /// Whether packets go from slave to master in it.
    pub s2m: bool,
    /// Its number among those of its direction.
    pub index: u16,
    /// Where it lies.
    pub region: u16,
    /// Where in the region.
    pub offset: u32,
    /// How many descriptors, as a power of two.
    pub log2: u8,
    /// Bytes in front of each packet that only the slave knows.
    pub private_header: u16,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The last one was taken.
    Ack,
    /// The master's first.
    Hello(Hello),
    /// The slave's first.
    Init(Init),
    /// A region; its file comes along.
    AddRegion {
        /// Its number.
        index: u16,
        /// Its length.
        size: u64,
    },
    /// A ring; its eventfd comes along.
    AddRing(AddRing),
    /// The handshake is complete.
    Connect {
        /// The slave's interface.
        name: String,
    },
    /// Packets may flow.
    Connected {
        /// The master's interface.
        name: String,
    },
    /// The end.
    Disconnect {
        /// A number without meaning.
        code: u32,
        /// Why.
        text: String,
    },
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not 128 bytes.
    #[error("message of {0} bytes, must be 128")]
    Length(usize),
    /// A type that is none.
    #[error("message of type {0}, must be 1 to 8")]
    Type(u16),
}

impl Mode {
    /// The mode of a number.
    pub fn of(number: u8) -> Option<Mode> {
        [Mode::Ethernet, Mode::Ip].into_iter().find(|mode| mode.number() == number)
    }
}

/// Bytes to write into, from the front.
struct Writer([u8; MESSAGE_BYTES], usize);

impl Writer {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(to) = self.0.get_mut(self.1..self.1 + bytes.len()) {
            to.copy_from_slice(bytes);
            self.1 += bytes.len();
        }
    }

    fn u8(&mut self, n: u8) {
        self.put(&[n]);
    }

    fn u16(&mut self, n: u16) {
        self.put(&n.to_le_bytes());
    }

    fn u32(&mut self, n: u32) {
        self.put(&n.to_le_bytes());
    }

    fn u64(&mut self, n: u64) {
        self.put(&n.to_le_bytes());
    }

    /// As much of a text as fits with a zero behind it.
    fn text(&mut self, text: &str, bytes: usize) {
        let mut end = text.len().min(bytes - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let at = self.1;
        self.put(text.as_bytes().get(..end).unwrap_or_default());
        self.1 = at + bytes;
    }
}

/// Bytes to read, from the front. Past their end there are zeroes, which 128 bytes never come to.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((first, rest)) = self.0.split_first_chunk::<N>() else { return [0; N] };
        self.0 = rest;
        *first
    }

    fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// What stands before the first zero. It is shown to operators: what would move their cursor is not kept.
    fn text<const N: usize>(&mut self) -> String {
        let bytes = self.take::<N>();
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(N);
        let text = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default());
        text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }
}

impl Message {
    /// Its word.
    pub fn kind(&self) -> &'static str {
        match self {
            Message::Ack => "ack",
            Message::Hello(_) => "hello",
            Message::Init(_) => "init",
            Message::AddRegion { .. } => "add region",
            Message::AddRing(_) => "add ring",
            Message::Connect { .. } => "connect",
            Message::Connected { .. } => "connected",
            Message::Disconnect { .. } => "disconnect",
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut w = Writer([0; MESSAGE_BYTES], 0);
        match self {
            Message::Ack => w.u16(1),
            Message::Hello(hello) => {
                w.u16(2);
                w.text(&hello.name, 32);
                let (first, last) = hello.versions;
                let numbers = [first, last, hello.max_region, hello.max_m2s_ring, hello.max_s2m_ring];
                for number in numbers {
                    w.u16(number);
                }
                w.u8(hello.max_log2);
            }
            Message::Init(init) => {
                w.u16(3);
                w.u16(init.version);
                w.u32(init.id);
                w.u8(init.mode);
                w.put(&init.secret);
                w.text(&init.name, 32);
            }
            Message::AddRegion { index, size } => {
                w.u16(4);
                w.u16(*index);
                w.u64(*size);
            }
            Message::AddRing(ring) => {
                w.u16(5);
                w.u16(if ring.s2m { S2M } else { 0 });
                w.u16(ring.index);
                w.u16(ring.region);
                w.u32(ring.offset);
                w.u8(ring.log2);
                w.u16(ring.private_header);
            }
            Message::Connect { name } => {
                w.u16(6);
                w.text(name, 32);
            }
            Message::Connected { name } => {
                w.u16(7);
                w.text(name, 32);
            }
            Message::Disconnect { code, text } => {
                w.u16(8);
                w.u32(*code);
                w.text(text, 96);
            }
        }
        w.0
    }

    /// What bytes say.
    ///
    /// # Errors
    /// They are no message.
    pub fn decode(bytes: &[u8]) -> Result<Message, Malformed> {
        if bytes.len() != MESSAGE_BYTES {
            return Err(Malformed::Length(bytes.len()));
        }
        let mut r = Reader(bytes);
        Ok(match r.u16() {
            1 => Message::Ack,
            2 => Message::Hello(Hello {
                name: r.text::<32>(),
                versions: (r.u16(), r.u16()),
                max_region: r.u16(),
                max_m2s_ring: r.u16(),
                max_s2m_ring: r.u16(),
                max_log2: r.u8(),
            }),
            3 => Message::Init(Init {
                version: r.u16(),
                id: r.u32(),
                mode: r.u8(),
                secret: r.take(),
                name: r.text::<32>(),
            }),
            4 => Message::AddRegion { index: r.u16(), size: r.u64() },
            5 => Message::AddRing(AddRing {
                s2m: r.u16() & S2M != 0,
                index: r.u16(),
                region: r.u16(),
                offset: r.u32(),
                log2: r.u8(),
                private_header: r.u16(),
            }),
            6 => Message::Connect { name: r.text::<32>() },
            7 => Message::Connected { name: r.text::<32>() },
            8 => Message::Disconnect { code: r.u32(), text: r.text::<96>() },
            other => return Err(Malformed::Type(other)),
        })
    }

    /// The message that ends a connection.
    pub fn disconnect(text: &str) -> Message {
        Message::Disconnect { code: 1, text: text.to_owned() }
    }

    /// The mode as [`Init`] has it.
    pub fn mode_number(mode: Mode) -> u8 {
        mode.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_said_as_peers_read_it() {
        let ring =
            AddRing { s2m: true, index: 2, region: 1, offset: 0x0102_0304, log2: 10, private_header: 0 };
        let bytes = Message::AddRing(ring).encode();
        assert_eq!(bytes[..15], [5, 0, 1, 0, 2, 0, 1, 0, 4, 3, 2, 1, 10, 0, 0]);
        assert!(bytes[15..].iter().all(|b| *b == 0));
    }

    #[test]
    fn an_init_is_said_as_peers_read_it() {
        let mut secret = [0; SECRET_BYTES];
        secret[..3].copy_from_slice(b"abc");
        let init = Init { version: VERSION, id: 7, mode: 1, secret, name: "shoal".into() };
        let bytes = Message::Init(init).encode();
        assert_eq!(bytes[..13], [3, 0, 0, 2, 7, 0, 0, 0, 1, b'a', b'b', b'c', 0]);
        assert_eq!(&bytes[33..39], b"shoal\0");
    }

    #[test]
    fn messages_survive_the_way() {
        let all = [
            Message::Ack,
            Message::Hello(Hello {
                name: "master".into(),
                versions: (0x200, 0x201),
                max_region: 255,
                max_m2s_ring: 63,
                max_s2m_ring: 62,
                max_log2: 14,
            }),
            Message::Init(Init { version: 1, id: u32::MAX, mode: 2, secret: [7; 24], name: "x".into() }),
            Message::AddRegion { index: 3, size: 1 << 40 },
            Message::AddRing(AddRing {
                s2m: false,
                index: 9,
                region: 8,
                offset: 7,
                log2: 6,
                private_header: 5,
            }),
            Message::Connect { name: "memif0/0".into() },
            Message::Connected { name: "memif1/2".into() },
            Message::disconnect("because"),
        ];
        for message in all {
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert_eq!(Message::decode(&[0; 127]), Err(Malformed::Length(127)));
        assert_eq!(Message::decode(&[]), Err(Malformed::Length(0)));
        assert_eq!(Message::decode(&[0; 128]), Err(Malformed::Type(0)));
        assert_eq!(Message::decode(&[9; 128]), Err(Malformed::Type(0x0909)));
    }

    #[test]
    fn texts_are_cut_and_cleaned() {
        let long = "\u{e4}".repeat(100);
        let Ok(Message::Disconnect { text, .. }) = Message::decode(&Message::disconnect(&long).encode())
        else {
            unreachable!("a disconnect was sent")
        };
        assert_eq!(text, "\u{e4}".repeat(47));
        let mut bytes = Message::disconnect("").encode();
        bytes[6..].fill(27);
        let Ok(Message::Disconnect { text, .. }) = Message::decode(&bytes) else {
            unreachable!("a disconnect was sent")
        };
        assert_eq!(text, "?".repeat(96));
    }
}
