//! What can be asked for.

use shoal_wire::MacAddress;

/// Who listens on the socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// This end connects, again and again.
    #[default]
    Client,
    /// This end listens.
    Server,
}

impl Role {
    /// VPP's word.
    pub fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }
}

/// An interface to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateVhost {
    /// The socket's file; one without a slash lies in the runtime directory.
    pub socket: String,
    /// Who listens.
    pub role: Role,
    /// Features of the device that may be offered.
    pub mask: u64,
    /// The router's MAC address on it; a random one if none.
    pub mac: Option<MacAddress>,
    /// The number in its name; the lowest free one if none.
    pub number: Option<u32>,
    /// Accepted, and shown; large packets and open checksums are always offered.
    pub gso: bool,
}

impl Default for CreateVhost {
    fn default() -> Self {
        CreateVhost {
            socket: String::new(),
            role: Role::default(),
            mask: u64::MAX,
            mac: None,
            number: None,
            gso: false,
        }
    }
}
