//! What else makes DHCPv6 clients ask: addresses that other stations have, and servers that have them ask again.

use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_ip6_nd::Nd;
use shoal_module::Control;
use shoal_wire::{FromBytes, Ip6Header, Ip6Prefix};

use super::Dhcp;
use crate::client_message6::Wanted;
use crate::node::ReceivedPacket;
use crate::reconfigure6::Reconfigure;

impl Dhcp {
    /// Hears of addresses of this router that other stations have, as duplicate address detection finds out.
    pub(super) fn watch_duplicates(self: &Rc<Self>, control: &Control) {
        let Ok(nd) = control.get::<Nd>() else { return };
        let weak = Rc::downgrade(self);
        nd.watch_duplicates(move |interface, address| {
            let (Some(dhcp), weak) = (weak.upgrade(), weak.clone()) else { return };
            let Some(processes) = dhcp.control.upgrade().and_then(|control| control.processes().ok()) else {
                return;
            };
            // Neighbour discovery is not done with the address yet.
            processes.spawn_unlisted(async move {
                if let Some(dhcp) = weak.upgrade() {
                    dhcp.decline6(interface, Ip6Prefix::host(address));
                }
            });
        });
    }

    /// Another station has an address that a server gave to an interface: the server hears so, and may give another one.
    fn decline6(&self, interface: SwIfIndex, address: Ip6Prefix) {
        let key = (interface, Wanted::Addresses);
        let acts = {
            let mut all = self.clients6.all.borrow_mut();
            let Some(client) = all.get_mut(&key) else { return };
            let acts = client.machine.decline(address);
            client.declined += u64::from(!acts.is_empty());
            acts
        };
        if !acts.is_empty() {
            tracing::warn!(%interface, "another station has {}, which a server gave: it is declined", address.addr());
        }
        self.act6(key, acts);
    }

    /// A message that has clients ask again. RFC 8415, 16.11: it is for this router alone, and its server proves that it is from it.
    pub(super) fn reconfigure6(&self, heard: &ReceivedPacket, data: &[u8]) {
        let asks = self.proved(heard, data);
        let Some((server, asks)) = asks else {
            let refused = &self.clients6.refused;
            return refused.set(refused.get() + 1);
        };
        let now = self.now();
        for wanted in [Wanted::Addresses, Wanted::Prefixes] {
            let key = (heard.interface, wanted);
            // What is being asked already has its answer first.
            if self.clients6.exchanges.borrow().contains_key(&key) {
                continue;
            }
            let acts = {
                let mut all = self.clients6.all.borrow_mut();
                let client = all.get_mut(&key).filter(|client| client.machine.server == Some(server));
                let Some(client) = client else { continue };
                let acts = client.machine.reconfigure(asks, now);
                client.reconfigured += u64::from(!acts.is_empty());
                acts
            };
            self.act6(key, acts);
        }
    }

    /// The server that has sent a message, and what clients are to ask.
    fn proved(&self, heard: &ReceivedPacket, data: &[u8]) -> Option<(u32, u8)> {
        let (ip, _) = Ip6Header::read_from_prefix(&heard.packet).ok()?;
        let said =
            Reconfigure::read(data).filter(|said| !ip.dst().is_multicast() && said.client == self.duid())?;
        let servers = self.clients6.servers.borrow();
        let server = servers.iter().position(|server| *server == said.server)? as u32;
        let mut keys = self.clients6.keys.borrow_mut();
        let key = keys.get_mut(&server).filter(|key| said.is_proved_by(key))?;
        key.replay = said.replay;
        Some((server, said.asks))
    }

    /// How many messages that had clients ask again were not believed.
    pub fn refused6(&self) -> u64 {
        self.clients6.refused.get()
    }
}
