//! Keys with which packets are signed (RFC 5880, 6.7).

use std::fmt;

use sha1::{Digest, Sha1};

/// Bytes of the longest secret.
pub const LONGEST: usize = 20;

/// How packets are signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuthType {
    /// Keyed SHA1: the sequence number need not change with each packet.
    KeyedSha1 = 4,
    /// Meticulous keyed SHA1: it changes with each packet.
    MeticulousKeyedSha1 = 5,
}

impl AuthType {
    /// The kind of a number.
    pub const fn of(number: u8) -> Option<AuthType> {
        match number {
            4 => Some(AuthType::KeyedSha1),
            5 => Some(AuthType::MeticulousKeyedSha1),
            _ => None,
        }
    }

    /// The word of commands.
    pub const fn word(self) -> &'static str {
        match self {
            AuthType::KeyedSha1 => "keyed-sha1",
            AuthType::MeticulousKeyedSha1 => "meticulous-keyed-sha1",
        }
    }
}

impl fmt::Display for AuthType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AuthType::KeyedSha1 => "Keyed SHA1",
            AuthType::MeticulousKeyedSha1 => "Meticulous Keyed SHA1",
        })
    }
}

/// A secret and how it is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// How packets are signed.
    pub kind: AuthType,
    secret: [u8; LONGEST],
    len: u8,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?}, {} bytes)", self.kind, self.len)
    }
}

impl Key {
    /// A key of 1 to 20 bytes; `None` of others.
    pub fn new(kind: AuthType, secret: &[u8]) -> Option<Key> {
        if secret.is_empty() || secret.len() > LONGEST {
            return None;
        }
        let mut padded = [0; LONGEST];
        padded.iter_mut().zip(secret).for_each(|(to, from)| *to = *from);
        Some(Key { kind, secret: padded, len: secret.len() as u8 })
    }

    /// The secret.
    pub fn secret(&self) -> &[u8] {
        self.secret.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The hash of a packet up to its hash (RFC 5880, 6.7.4: the secret stands in the place of the hash).
    pub fn hash(&self, signed: &[u8]) -> [u8; 20] {
        let mut sha = Sha1::new();
        sha.update(signed);
        sha.update(self.secret);
        sha.finalize().into()
    }
}
