//! Which back end a client of a balanced service had, so that it gets the same again.

use std::collections::HashMap;

use shoal_graph::clock::Time;

/// Clients remembered by a thread.
const MOST: usize = 1 << 16;
/// Clients looked at when there is no room.
const LOOKED_AT: usize = 32;

/// A client and the service it asked: addresses, port, protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Client {
    /// The client.
    pub client: u32,
    /// The service.
    pub service: u32,
    /// Its port.
    pub port: u16,
    /// Its protocol.
    pub protocol: u8,
}

/// The back end it had, and until when.
#[derive(Clone, Copy, Debug)]
struct PreviousBackend {
    address: u32,
    port: u16,
    until: Time,
}

/// What a thread remembers.
#[derive(Debug, Default)]
pub struct Affinity {
    clients: HashMap<Client, PreviousBackend>,
}

impl Affinity {
    /// The back end a client had lately.
    pub fn get(&self, client: &Client, now: Time) -> Option<(u32, u16)> {
        let had = self.clients.get(client)?;
        (had.until > now).then_some((had.address, had.port))
    }

    /// It has this one, and keeps it for so many seconds.
    pub fn put(&mut self, client: Client, (address, port): (u32, u16), seconds: u32, now: Time) {
        if self.clients.len() >= MOST && !self.clients.contains_key(&client) {
            let old: Vec<Client> = self
                .clients
                .iter()
                .take(LOOKED_AT)
                .filter(|(_, had)| had.until <= now)
                .map(|(c, _)| *c)
                .collect();
            for client in &old {
                self.clients.remove(client);
            }
            if self.clients.len() >= MOST {
                return;
            }
        }
        let until = now.after(std::time::Duration::from_secs(seconds.into()));
        self.clients.insert(client, PreviousBackend { address, port, until });
    }

    /// Forgets the clients of a service.
    pub fn forget(&mut self, service: u32, port: u16, protocol: u8) {
        self.clients.retain(|c, _| (c.service, c.port, c.protocol) != (service, port, protocol));
    }
}
