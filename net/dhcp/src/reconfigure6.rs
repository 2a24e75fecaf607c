//! `Reconfigure`: a server has a client ask again; and how the client knows that it is its server (RFC 8415, 18.2.11 and 20.4).

use md5::{Digest, Md5};

use crate::client_message6::{Options, kind};

/// A digest of MD5.
pub type ReconfigureDigest = [u8; 16];
/// Bytes of a block of MD5.
const BLOCK: usize = 64;

const CLIENT: u16 = 1;
const SERVER: u16 = 2;
const AUTHENTICATION: u16 = 11;
const MESSAGE: u16 = 19;

/// Of the authentication option: the reconfigure key protocol, HMAC-MD5, numbers that only grow.
const PROTOCOL: [u8; 3] = [3, 1, 0];
/// What the authentication option has: a key, or a digest.
const IS_KEY: u8 = 1;
const IS_DIGEST: u8 = 2;

/// The key of a server, and the number of the last message that it has proved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReconfigureKey {
    /// The key.
    pub key: ReconfigureDigest,
    /// The number; the next one is higher (RFC 8415, 20.3).
    pub replay: u64,
}

/// What is in an authentication option: the number of the message, what follows, and that.
fn authentication(value: &[u8]) -> Option<(u64, u8, ReconfigureDigest)> {
    let (protocol, rest) = value.split_first_chunk::<3>()?;
    let (replay, rest) = rest.split_first_chunk::<8>()?;
    let (kind, digest) = rest.split_first()?;
    let digest = digest.try_into().ok().filter(|_| *protocol == PROTOCOL)?;
    Some((u64::from_be_bytes(*replay), *kind, digest))
}

/// The key that a server gives in the authentication option of its reply (RFC 8415, 20.4.1).
pub fn key_of(option: &[u8]) -> Option<ReconfigureKey> {
    let (replay, kind, key) = authentication(option)?;
    (kind == IS_KEY).then_some(ReconfigureKey { key, replay })
}

/// A server's message that has a client ask again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reconfigure {
    /// The client that it is for.
    pub client: Vec<u8>,
    /// The server.
    pub server: Vec<u8>,
    /// What the client is to ask: a kind of message.
    pub asks: u8,
    /// The number of the message.
    pub replay: u64,
    /// What proves that it is the server's.
    digest: ReconfigureDigest,
    /// The whole message, with zeros in the place of that.
    bytes: Vec<u8>,
}

impl Reconfigure {
    /// Reads one; `None`: it is none, or lacks something that it must have (RFC 8415, 16.11).
    pub fn read(bytes: &[u8]) -> Option<Reconfigure> {
        let (head, rest) = bytes.split_first_chunk::<4>()?;
        if head[0] != kind::RECONFIGURE {
            return None;
        }
        let (mut client, mut server, mut asks, mut proof) = (None, None, None, None);
        let mut options = Options(rest);
        while let Some((number, value)) = options.next() {
            // Each of them is there once.
            let twice = match number {
                CLIENT => client.replace(value.to_vec()).is_some(),
                SERVER => server.replace(value.to_vec()).is_some(),
                MESSAGE => asks.replace(*value.first()?).is_some(),
                AUTHENTICATION => {
                    let end = bytes.len() - options.0.len();
                    proof.replace((authentication(value)?, end)).is_some()
                }
                _ => false,
            };
            if twice {
                return None;
            }
        }
        let asks = asks.filter(|asks| [kind::RENEW, kind::REBIND, kind::INFORMATION].contains(asks))?;
        let ((replay, _, digest), end) = proof.filter(|((_, kind, _), _)| *kind == IS_DIGEST)?;
        let mut zeroed = bytes.to_vec();
        zeroed.get_mut(end - digest.len()..end)?.fill(0);
        Some(Reconfigure { client: client?, server: server?, asks, replay, digest, bytes: zeroed })
    }

    /// Whether a server with this key has sent it, and has not done so before.
    pub fn is_proved_by(&self, key: &ReconfigureKey) -> bool {
        let made = hmac_md5(&key.key, &self.bytes);
        // As long for a wrong first byte as for a wrong last one.
        let differs = made.iter().zip(&self.digest).fold(0, |differs, (a, b)| differs | (a ^ b));
        differs == 0 && self.replay > key.replay
    }
}

/// RFC 2104, for keys that are no longer than a block.
fn hmac_md5(key: &ReconfigureDigest, message: &[u8]) -> ReconfigureDigest {
    let mut block = [0; BLOCK];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    let inner = Md5::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Md5::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    const KEY: ReconfigureKey = ReconfigureKey { key: *b"0123456789abcdef", replay: 7 };

    // RFC 2202, 2: the first test case.
    #[test]
    fn the_digest_is_that_of_the_rfc() {
        let digest = hmac_md5(&[0x0b; 16], b"Hi There");
        let want =
            [0x92, 0x94, 0x72, 0x7a, 0x36, 0x38, 0xbb, 0x1c, 0x13, 0xf4, 0x8e, 0xf8, 0x15, 0x8b, 0xfc, 0x9d];
        assert_eq!(digest, want);
    }

    fn option(bytes: &mut Vec<u8>, number: u16, value: &[u8]) {
        bytes.extend([number.to_be_bytes(), (value.len() as u16).to_be_bytes()].concat());
        bytes.extend(value);
    }

    fn proof(kind: u8, replay: u64) -> Vec<u8> {
        [&PROTOCOL[..], &replay.to_be_bytes(), &[kind], &[0; 16]].concat()
    }

    /// A message with a right digest; the authentication option is not the last one.
    fn message(asks: u8, replay: u64) -> Vec<u8> {
        let mut bytes = vec![kind::RECONFIGURE, 0, 0, 0];
        option(&mut bytes, CLIENT, &[0, 3, 0, 1, 2]);
        option(&mut bytes, AUTHENTICATION, &proof(IS_DIGEST, replay));
        let end = bytes.len();
        option(&mut bytes, SERVER, &[0, 2, 9]);
        option(&mut bytes, MESSAGE, &[asks]);
        let digest = hmac_md5(&KEY.key, &bytes);
        bytes[end - 16..end].copy_from_slice(&digest);
        bytes
    }

    #[test]
    fn a_message_of_the_server_is_believed_once() {
        let bytes = message(kind::RENEW, 8);
        let read = Reconfigure::read(&bytes).unwrap();
        assert_eq!((&read.client[..], &read.server[..]), (&[0, 3, 0, 1, 2][..], &[0, 2, 9][..]));
        assert_eq!((read.asks, read.replay), (kind::RENEW, 8));
        assert!(read.is_proved_by(&KEY));
        assert!(!read.is_proved_by(&ReconfigureKey { replay: 8, ..KEY }), "it is heard again");
        assert!(!read.is_proved_by(&ReconfigureKey { key: [1; 16], ..KEY }), "of another server");
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            let is_believed = Reconfigure::read(&other).is_some_and(|read| read.is_proved_by(&KEY));
            assert!(!is_believed, "byte {at}");
            let _ = Reconfigure::read(&bytes[..at]).is_some_and(|read| read.is_proved_by(&KEY));
        }
    }

    #[test]
    fn what_lacks_something_is_not_read() {
        for asks in [0, kind::SOLICIT, kind::RELEASE, 255] {
            assert_eq!(Reconfigure::read(&message(asks, 8)), None, "{asks}");
        }
        let mut twice = message(kind::REBIND, 8);
        option(&mut twice, MESSAGE, &[kind::RENEW]);
        assert_eq!(Reconfigure::read(&twice), None);
        let mut bare = vec![kind::RECONFIGURE, 0, 0, 0];
        option(&mut bare, CLIENT, &[1, 2, 3]);
        option(&mut bare, SERVER, &[1, 2, 3]);
        option(&mut bare, MESSAGE, &[kind::RENEW]);
        assert_eq!(Reconfigure::read(&bare), None, "no proof");
        option(&mut bare, AUTHENTICATION, &proof(IS_KEY, 9));
        assert_eq!(Reconfigure::read(&bare), None, "a key is no proof");
    }

    #[test]
    fn a_key_is_read() {
        let mut value = proof(IS_KEY, 3);
        value[12..].copy_from_slice(&KEY.key);
        assert_eq!(key_of(&value), Some(ReconfigureKey { replay: 3, ..KEY }));
        for at in [0, 1, 2] {
            let mut other = value.clone();
            other[at] ^= 1;
            assert_eq!(key_of(&other), None, "another protocol, algorithm or kind of number");
        }
        assert_eq!((key_of(&proof(IS_DIGEST, 3)), key_of(&value[..27])), (None, None));
    }
}
