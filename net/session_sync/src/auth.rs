//! Keys: datagrams of others make no session.

use std::fmt::{self, Write as _};

use blake2::Blake2bMac;
use blake2::digest::consts::U16;
use blake2::digest::{KeyInit, Mac};

use crate::wire::TAG;

/// Bytes of a key.
pub const KEY: std::ops::RangeInclusive<usize> = 16..=64;

/// A key that both routers have.
#[derive(Clone)]
pub struct Key {
    bytes: Vec<u8>,
    /// The hash with the key in it already.
    begun: Blake2bMac<U16>,
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Key {}

/// A key is printed nowhere but in the configuration.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.bytes.len())
    }
}

impl Key {
    /// A key of 16 to 64 bytes; `None` of others.
    pub fn new(bytes: &[u8]) -> Option<Key> {
        if !KEY.contains(&bytes.len()) {
            return None;
        }
        let begun = <Blake2bMac<U16> as KeyInit>::new_from_slice(bytes).ok()?;
        Some(Key { bytes: bytes.to_vec(), begun })
    }

    /// A key of hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Key> {
        if !text.len().is_multiple_of(2) || !text.is_ascii() {
            return None;
        }
        let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
        let is_hex = text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
        Key::new(&bytes.filter(|_| is_hex)?)
    }

    /// The key in hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// The keyed hash of a datagram (BLAKE2b, RFC 7693, of 16 bytes).
    pub fn tag(&self, datagram: &[u8]) -> [u8; TAG] {
        self.begun.clone().chain_update(datagram).finalize().into_bytes().into()
    }

    /// Whether a hash is the datagram's. It takes as long whatever is wrong with it.
    pub fn verify(&self, datagram: &[u8], tag: &[u8]) -> bool {
        self.begun.clone().chain_update(datagram).verify_slice(tag).is_ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_hash_is_of_one_key_and_of_every_bit() {
        let (key, other) = (Key::new(&[7; 32]).unwrap(), Key::new(&[8; 32]).unwrap());
        let tag = key.tag(b"datagram");
        assert!(key.verify(b"datagram", &tag) && !other.verify(b"datagram", &tag));
        assert!(!key.verify(b"datagran", &tag) && !key.verify(b"datagram", &tag[..15]));
        for bit in 0..128 {
            let mut wrong = tag;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.verify(b"datagram", &wrong), "bit {bit}");
        }
    }

    #[test]
    fn the_hash_is_that_of_rfc_7693_with_a_key() {
        // By Python's hashlib.blake2b(b"abc", key=bytes(range(16)), digest_size=16).
        let key = Key::new(&(0..16).collect::<Vec<u8>>()).unwrap();
        let tag = Key::new(&key.tag(b"abc")).unwrap();
        assert_eq!(tag.to_hex(), "cc611a2673ca66e9f7fc64b995c5467c");
    }

    #[test]
    fn a_key_is_of_16_to_64_bytes_in_hexadecimal_digits() {
        let digits = "00112233445566778899aabbccddeeff";
        assert_eq!(Key::from_hex(digits).unwrap().to_hex(), digits);
        for wrong in ["", "0011", "00112233445566778899aabbccddeef", "+0112233445566778899aabbccddeeff"] {
            assert_eq!(Key::from_hex(wrong), None, "{wrong}");
        }
        assert_eq!(Key::from_hex(&"00".repeat(65)), None);
    }
}
