//! A message while it fills (RFC 7011, 3.1 and 3.3).

/// Bytes of a message's header.
pub const HEADER: usize = 16;
/// Bytes of a set's header.
const SET: usize = 4;
/// The set of template records.
pub const TEMPLATES: u16 = 2;
/// The version that is IPFIX.
const VERSION: u16 = 10;

/// Sets of one stream that wait to be sent.
#[derive(Clone, Debug, Default)]
pub struct Message {
    sets: Vec<u8>,
    /// Where the last set begins, and its number.
    last: Option<(usize, u16)>,
    /// Data records in it.
    records: u32,
}

/// No message of this length has room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

impl Message {
    /// Data records in it.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Adds a record to the set of a number; the message takes at most so many bytes.
    ///
    /// # Errors
    /// There is no room.
    pub fn add(&mut self, set: u16, record: &[u8], most: usize) -> Result<(), NoRoom> {
        let same = self.last.is_some_and(|(_, last)| last == set);
        let more = record.len() + if same { 0 } else { SET };
        if HEADER + self.sets.len() + more > most {
            return Err(NoRoom);
        }
        if !same {
            self.last = Some((self.sets.len(), set));
            self.sets.extend(set.to_be_bytes());
            self.sets.extend([0; 2]);
        }
        self.sets.extend(record);
        self.records += u32::from(set != TEMPLATES);
        if let Some((at, _)) = self.last {
            let length = (self.sets.len() - at) as u16;
            if let Some(to) = self.sets.get_mut(at + 2..at + SET) {
                to.copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }

    /// Takes the message's bytes; it is empty then.
    pub fn take(&mut self, at: u32, sequence: u32, domain: u32) -> Vec<u8> {
        let length = (HEADER + self.sets.len()) as u16;
        let mut bytes = Vec::with_capacity(length.into());
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        for number in [at, sequence, domain] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.append(&mut self.sets);
        (self.last, self.records) = (None, 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_these_bytes_and_never_more_than_fit() {
        let mut message = Message::default();
        assert_eq!(message.add(256, &[1, 2, 3], 23), Ok(()));
        assert_eq!(message.add(256, &[4, 5, 6], 25), Err(NoRoom));
        assert_eq!(message.add(256, &[4, 5, 6], 26), Ok(()));
        assert_eq!(message.add(257, &[7], 30), Err(NoRoom), "another set has a header of its own");
        assert_eq!(message.add(257, &[7], 31), Ok(()));
        assert_eq!(message.records(), 3);
        let bytes = message.take(9, 5, 1);
        assert_eq!(bytes[..16], [0, 10, 0, 31, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 1]);
        assert_eq!(bytes[16..], [1, 0, 0, 10, 1, 2, 3, 4, 5, 6, 1, 1, 0, 5, 7]);
        assert!(message.sets.is_empty() && message.records() == 0);
    }
}
