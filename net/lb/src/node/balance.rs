//! `lb4-gre4`, `lb4-l3dsr`, `lb4-nat4-port`, `lb4-nodeport`, ...: packets for a virtual address go to one of its servers.
//! ip4-lookup | ip6-lookup | ip4-local | ip6-local -> **lb4-gre4** -> ip4-lookup | ip6-lookup
//!
//! Staged, because there may be more flows than the cache holds.

use std::net::IpAddr;
use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_derive::{NextNodes, TraceLine};
use shoal_fib::FibIndex;
use shoal_flow::Search;
use shoal_graph::{Counts, Cx, StatefulStagedNode};
use shoal_nat::Flow;
use shoal_nat::ip6::End;

use super::encap::{gre4, gre6, ip4, ip6, l3dsr, nat4, nat6};
use super::{Error, Shared};
use crate::config::{Config, NO_SOURCE4, NO_SOURCE6};
use crate::flow_stores::FlowStores;
use crate::flows::{self, Flows};
use crate::vip::{Encap, Vip, VipKey};

/// How many nodes there are: all are the same but for their names, and where their packets come from.
pub const NODES: usize = 14;

/// The name of a node, whether its packets are IPv6's, and whether they are for a port of the router.
const fn node(at: usize) -> (&'static str, bool, bool) {
    match at {
        0 => ("lb6-gre6", true, false),
        1 => ("lb6-gre4", true, false),
        2 => ("lb4-gre6", false, false),
        3 => ("lb4-gre4", false, false),
        4 => ("lb4-l3dsr", false, false),
        5 => ("lb6-gre6-port", true, false),
        6 => ("lb6-gre4-port", true, false),
        7 => ("lb4-gre6-port", false, false),
        8 => ("lb4-gre4-port", false, false),
        9 => ("lb4-l3dsr-port", false, false),
        10 => ("lb4-nat4-port", false, false),
        11 => ("lb6-nat6-port", true, false),
        12 => ("lb4-nodeport", false, true),
        _ => ("lb6-nodeport", true, true),
    }
}

/// The node that has the packets of a virtual address's prefix.
pub fn node_of(key: &VipKey, encap: Encap) -> &'static str {
    let of = |all: &'static str, ports: &'static str| if key.port.is_some() { ports } else { all };
    match (key.is_ip6(), encap) {
        (true, Encap::Gre4) => of("lb6-gre4", "lb6-gre4-port"),
        (true, Encap::Gre6 | Encap::L3dsr | Encap::Nat4) => of("lb6-gre6", "lb6-gre6-port"),
        (false, Encap::Gre6 | Encap::Nat6) => of("lb4-gre6", "lb4-gre6-port"),
        (false, Encap::Gre4) => of("lb4-gre4", "lb4-gre4-port"),
        (false, Encap::L3dsr) => of("lb4-l3dsr", "lb4-l3dsr-port"),
        (false, Encap::Nat4) => "lb4-nat4-port",
        (true, Encap::Nat6) => "lb6-nat6-port",
    }
}

/// Where packets go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To a server that has an IPv4 address.
    #[node("ip4-lookup")]
    Ip4,
    /// To one that has an IPv6 address.
    #[node("ip6-lookup")]
    Ip6,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("lb vip[{vip}]: {kind} {key}\n    lb as: {server}")]
pub struct Trace {
    vip: u32,
    kind: String,
    key: VipKey,
    server: IpAddr,
}

/// What a packet carries from stage to stage.
#[derive(Clone, Copy, Default)]
pub struct Key {
    /// The virtual address's number. 0: none.
    vip: u32,
    serial: u32,
    hash: u32,
    search: Search<flows::Key>,
}

/// The code of all nodes.
pub struct Balance<const NODE: usize> {
    pub(crate) shared: Arc<Shared>,
}

impl<const NODE: usize> Balance<NODE> {
    const IS_IP6: bool = node(NODE).1;
    const IS_NODE_PORT: bool = node(NODE).2;

    #[inline(always)]
    fn flow_and_vip<'c>(&self, pkt: &Packet<'_>, config: &'c Config) -> Result<(Flow, &'c Vip), Error> {
        let flow = self.shared.flow(Self::IS_IP6, pkt)?;
        let vip = if Self::IS_NODE_PORT {
            config.node_ports.get(&(Self::IS_IP6, flow.dport)).and_then(|index| config.vip(*index))
        } else {
            config.find(Self::IS_IP6, flow.dst, (flow.protocol, flow.dport))
        };
        let Some(vip) = vip else {
            return Err(if flow.lacks_ports() { Error::Fragments } else { Error::ProtoNotSupported });
        };
        if flow.lacks_ports() && !vip.policy.src_ip_sticky {
            return Err(Error::Fragments);
        }
        Ok((flow, vip))
    }

    fn deliver(
        flows: &mut Flows,
        pkt: &mut Packet<'_>,
        (vip, server): (&Vip, IpAddr),
        config: &Config,
    ) -> Result<Next, Error> {
        let policy = &vip.policy;
        match policy.encap {
            Encap::Gre4 => {
                if config.source4 == NO_SOURCE4 {
                    return Err(Error::NoSource);
                }
                gre4(Self::IS_IP6, pkt, (config.source4, ip4(server)?), flows.identification())?;
            }
            Encap::Gre6 => {
                if config.source6 == NO_SOURCE6 {
                    return Err(Error::NoSource);
                }
                gre6(Self::IS_IP6, pkt, (config.source6, ip6(server)?))?;
            }
            Encap::L3dsr => l3dsr(pkt, ip4(server)?, policy.dscp)?,
            Encap::Nat4 => nat4(pkt, End::Destination, (ip4(server)?, policy.target_port))?,
            Encap::Nat6 => nat6(pkt, End::Destination, (ip6(server)?, policy.target_port))?,
        }
        // Servers are found in the table that has the route to the virtual address.
        pkt.meta_mut().set_fib(Some(FibIndex::DEFAULT));
        Ok(if server.is_ipv6() { Next::Ip6 } else { Next::Ip4 })
    }
}

impl<const NODE: usize> Counts for Balance<NODE> {
    type Error = Error;
}

impl<const NODE: usize> StatefulStagedNode for Balance<NODE> {
    const NAME: &'static str = node(NODE).0;
    type Feature = FlowStores;
    type Next = Next;
    type Trace = Trace;
    type Key = Key;

    #[inline(always)]
    fn prepare(&self, flows: &mut Flows, pkt: &Packet<'_>, cx: &mut Cx<'_, Self>) -> Key {
        let config = self.shared.config.load(cx.guard());
        let Ok((flow, vip)) = self.flow_and_vip(pkt, config) else { return Key::default() };
        let hash = if vip.policy.src_ip_sticky {
            flow.hash_of_client(Self::IS_IP6)
        } else {
            flow.hash(Self::IS_IP6)
        };
        let search = flows.search(flows::key(vip.serial, hash));
        Key { vip: vip.index, serial: vip.serial, hash, search }
    }

    #[inline(always)]
    fn seek(&self, flows: &mut Flows, keys: &mut [Key], _: &mut Cx<'_, Self>) {
        let mut searches = [Search::default(); shoal_graph::GROUP];
        for (search, key) in searches.iter_mut().zip(keys.iter()) {
            *search = key.search;
        }
        if let Some(some) = searches.get_mut(..keys.len()) {
            flows.seek(some);
        }
        for (key, search) in keys.iter_mut().zip(searches) {
            key.search = search;
        }
    }

    fn packet(
        &self,
        flows: &mut Flows,
        key: Key,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<Next, Error> {
        let config = self.shared.config.load(cx.guard());
        let Some(vip) = config.vip(key.vip).filter(|vip| vip.serial == key.serial) else {
            // There was none, or it has gone since.
            return Err(self.flow_and_vip(pkt, config).err().unwrap_or(Error::NoServer));
        };
        let (shared, thread, index) = (&self.shared, cx.thread(), vip.index as usize);
        let known = flows.find(&key.search, cx.now()).and_then(|pick| vip.server(pick));
        let server = if let Some(server) = known {
            shared.existing.add(thread, index, 1);
            server
        } else {
            let Some((pick, server)) = vip.pick(key.hash) else {
                shared.no_server.add(thread, index, 1);
                return Err(Error::NoServer);
            };
            let has_room = flows.remember(&key.search, pick, cx.now());
            let counter = if has_room { &shared.first } else { &shared.untracked };
            counter.add(thread, index, 1);
            server
        };
        cx.trace(pkt, || Trace { vip: vip.index, kind: vip.kind(), key: vip.key, server });
        let next = Self::deliver(flows, pkt, (vip, server), config)?;
        cx.count(Error::Balanced, 1);
        Ok(next)
    }
}
