//! What can be asked for, and its checks.

use shoal_wire::MacAddress;

use crate::Error;
use crate::proto::{Mode, SECRET_BYTES, Secret};
use crate::ring::ring_bytes;

/// Most queues of a kind that a memif may have.
pub const MOST_QUEUES: usize = 64;
/// Entries of a ring unless the operator says otherwise.
pub const RING_SIZE: u32 = 1024;
/// Bytes of a ring's buffers unless the operator says otherwise.
pub const BUFFER_SIZE: u16 = 2048;
/// Smallest buffer.
const LEAST_BUFFER: u16 = 64;

/// Which end an interface is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It listens, and uses the peer's memory.
    Master,
    /// It connects, and brings the memory.
    #[default]
    Slave,
}

impl Role {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Role::Master => "master",
            Role::Slave => "slave",
        }
    }
}

/// A memif to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateMemif {
    /// Its number on its socket, which the peer's must be, too.
    pub id: u32,
    /// The socket's number.
    pub socket: u32,
    /// Which end it is.
    pub role: Role,
    /// What frames begin with.
    pub mode: Mode,
    /// Entries of each ring: the slave decides.
    pub ring_size: u32,
    /// Bytes of a ring's buffers: the slave decides.
    pub buffer_size: u16,
    /// Rings to receive by: the slave decides.
    pub rx_queues: u32,
    /// Rings to send by: the slave decides.
    pub tx_queues: u32,
    /// The router's MAC address on it; a random one if none.
    pub mac: Option<MacAddress>,
    /// What the peer must know; empty for nothing.
    pub secret: String,
    /// Whether packets may lie in memory that the peer can write while they are handled. Kept and shown; packets are
    /// always copied.
    pub zero_copy: bool,
}

impl Default for CreateMemif {
    /// As `create interface memif` without further words.
    fn default() -> Self {
        CreateMemif {
            id: 0,
            socket: 0,
            role: Role::default(),
            mode: Mode::default(),
            ring_size: RING_SIZE,
            buffer_size: BUFFER_SIZE,
            rx_queues: 1,
            tx_queues: 1,
            mac: None,
            secret: String::new(),
            zero_copy: true,
        }
    }
}

fn queues(what: &'static str, value: u32) -> Result<(), Error> {
    let most = MOST_QUEUES as u32;
    if (1..=most).contains(&value) {
        return Ok(());
    }
    let nearest = value.clamp(1, most).into();
    Err(Error::Range { what, value: value.into(), rule: "1 to 64", nearest })
}

impl CreateMemif {
    /// The name of the interface.
    pub fn name(&self) -> String {
        format!("memif{}/{}", self.socket, self.id)
    }

    /// Checks all numbers.
    ///
    /// # Errors
    /// One is out of range, or all together need too much memory.
    pub fn check(&self) -> Result<(), Error> {
        queues("number of receive queues", self.rx_queues)?;
        queues("number of transmit queues", self.tx_queues)?;
        if !self.ring_size.is_power_of_two() || self.ring_size > 1 << 14 {
            let nearest = self.ring_size.clamp(1, 1 << 14).next_power_of_two().into();
            let rule = "a power of two from 1 to 16384";
            return Err(Error::Range { what: "ring-size", value: self.ring_size.into(), rule, nearest });
        }
        if self.buffer_size < LEAST_BUFFER {
            let (value, nearest) = (self.buffer_size.into(), LEAST_BUFFER.into());
            return Err(Error::Range { what: "buffer-size", value, rule: "from 64 to 65535", nearest });
        }
        if self.secret.len() > SECRET_BYTES {
            return Err(Error::Secret(self.secret.len()));
        }
        let (queues, ring) = (u64::from(self.rx_queues + self.tx_queues), u64::from(self.ring_size));
        let bytes = queues * (ring * u64::from(self.stride()) + ring_bytes(self.log2()) as u64);
        // Rounding adds a page at most.
        if bytes + 8192 > u64::from(u32::MAX) {
            return Err(Error::Memory { queues, ring, buffer: self.buffer_size.into(), bytes });
        }
        Ok(())
    }

    /// The ring size, as a power of two.
    pub(crate) fn log2(&self) -> u8 {
        self.ring_size.trailing_zeros() as u8
    }

    /// Bytes from one buffer to the next.
    pub(crate) fn stride(&self) -> u32 {
        u32::from(self.buffer_size).next_multiple_of(64)
    }

    /// The secret as it is sent.
    pub(crate) fn secret(&self) -> Secret {
        let mut secret = [0; SECRET_BYTES];
        secret.iter_mut().zip(self.secret.bytes()).for_each(|(to, from)| *to = from);
        secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_numbers_are_told_with_the_nearest_right_one() {
        let said = |memif: CreateMemif| memif.check().unwrap_err().to_string();
        let base = CreateMemif::default;
        assert_eq!(
            said(CreateMemif { ring_size: 1000, ..base() }),
            "ring-size 1000 is not possible: a power of two from 1 to 16384, nearest 1024"
        );
        assert!(said(CreateMemif { ring_size: 0, ..base() }).ends_with("nearest 1"));
        assert!(said(CreateMemif { ring_size: u32::MAX, ..base() }).ends_with("nearest 16384"));
        assert!(said(CreateMemif { buffer_size: 63, ..base() }).ends_with("nearest 64"));
        assert!(said(CreateMemif { rx_queues: 65, ..base() }).ends_with("nearest 64"));
        assert!(said(CreateMemif { tx_queues: 0, ..base() }).ends_with("nearest 1"));
        assert!(said(CreateMemif { secret: "x".repeat(25), ..base() }).contains("at most 24"));
        let huge = CreateMemif { ring_size: 16_384, buffer_size: 65_535, rx_queues: 4, ..base() };
        assert!(said(huge).contains("at most 4 GiB"));
        base().check().unwrap();
    }
}
