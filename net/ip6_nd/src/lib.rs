//! Neighbour discovery for IPv6: which station has an address, is it still there, may we have it. RFC 4861, RFC 4862.
//!
//! Packets without a neighbour come to `ip6-discover-neighbor` and `ip6-glean`, which ask the link and hand the
//! packet to [`Neighbours`] to wait. Messages of others come by their ICMPv6 type ([`MESSAGES`]); nodes check and
//! answer them and tell [`Nd`] the facts. [`Nd`] knows this router's addresses on each interface: whether they are
//! proven unique, which groups they make it join, what it advertises to hosts. The table is shared with ARP: see
//! [`shoal_neighbor`].
#![forbid(unsafe_code)]

pub mod api;
pub mod autoremove;
pub mod cli;
mod control;
pub mod counters;
mod error;
mod fact;
mod frame;
mod lines;
mod link;
mod node;
mod observe;
mod process;
mod protocol;
mod running;
mod show;

pub use control::ra::{Advertise, Course, Prefix, RaConfig};
pub use control::{Autoconfigure, Dad, DefaultRoute, FormedAddress, Nd, Proxy, Solicit, VirtualSpeaker};
pub use error::NdError;
pub use link::{AddressState, Link, Links};
pub use protocol::Discovery;

use std::net::Ipv6Addr;
use std::rc::Rc;

use shoal_adj::Adjacencies;
use shoal_fib::Fib;
use shoal_graph::FeatureSpec;
use shoal_graph::process::{Receiver, channel};
use shoal_icmp::Icmp6;
use shoal_interface::Interfaces;
use shoal_ip6::{AddressEvent, Ip6};
use shoal_module::{Control, InitError, Module};
use shoal_neighbor::counters::HeldCounters;
use shoal_neighbor::message::Waiting;
use shoal_neighbor::table;
use shoal_wire::Icmp6Type;

/// What names an IPv6 neighbour: its interface and its address.
pub type Key = table::Key<Ipv6Addr>;

/// All IPv6 neighbours.
pub type Neighbours = shoal_neighbor::Neighbours<Discovery>;

/// Facts and packets on their way to the control plane.
const CHANNEL: usize = 1024;

/// The nodes that take ICMPv6 messages of a type, as [`Icmp6::set_taker`] hands them on.
pub const MESSAGES: &[(Icmp6Type, &str)] = &[
    (Icmp6Type::ROUTER_SOLICITATION, "icmp6-router-solicitation"),
    (Icmp6Type::ROUTER_ADVERTISEMENT, "icmp6-router-advertisement"),
    (Icmp6Type::NEIGHBOR_SOLICITATION, "icmp6-neighbor-solicitation"),
    (Icmp6Type::NEIGHBOR_ADVERTISEMENT, "icmp6-neighbor-advertisement"),
    (Icmp6Type::MULTICAST_LISTENER_QUERY, "icmp6-multicast-listener-query"),
    (Icmp6Type::MULTICAST_LISTENER_REPORT, "icmp6-multicast-listener-report"),
    (Icmp6Type::MULTICAST_LISTENER_DONE, "icmp6-multicast-listener-report"),
    (Icmp6Type::MULTICAST_LISTENER_REPORT_V2, "icmp6-multicast-listener-report"),
];

/// The module.
pub static MODULE: Module = Module {
    name: "ip6-nd",
    description: "Neighbour discovery, router advertisements and group membership of IPv6",
    init,
    start,
    commands: cli::COMMANDS,
    running: running::running,
    lines: lines::LINES,
    api: &[&api::API, &api::DAD, &api::rd_cp::API],
    ..Module::NONE
};

/// The channels' ends, from `init` to `start`.
struct ChannelEnds {
    facts: Receiver<fact::Fact>,
    wait: Receiver<Waiting<Ipv6Addr>>,
    /// Of the neighbour table, and of everything else that has a time.
    bells: [Receiver<()>; 2],
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let counters = counters::NdCounters::new(graph.counters())?;
    let links = Links::default();
    let (tell, facts) = channel(CHANNEL);
    let (wait_tx, wait) = channel(CHANNEL);
    let ((table_bell, table_rung), (bell, rung)) = (channel(1), channel(1));
    let eyes = node::ReceiveContext {
        interfaces: control.get::<Interfaces>()?.table(),
        links: links.clone(),
        counters: counters.clone(),
        tell: tell.clone(),
    };
    graph.add_packet(node::Solicitation::new(eyes.clone()))?;
    graph.add_packet(node::Advertisement::new(eyes.clone()))?;
    graph.add_packet(node::RouterSolicitation::new(eyes.clone()))?;
    graph.add_packet(node::RouterAdvertisement::new(eyes.clone()))?;
    graph.add_packet(node::ListenerQuery::new(eyes.clone()))?;
    graph.add_packet(node::ListenerReport { eyes: eyes.clone() })?;
    graph.add_packet(node::Failed::new(shoal_ip6::Unreachables::of(control)))?;
    let adjacencies = control.get::<Adjacencies>()?.table();
    graph.add_frame(node::Ip6Redirect {
        adjacencies: adjacencies.clone(),
        interfaces: control.get::<Interfaces>()?.table(),
        links: links.clone(),
        allowance: control.get::<Icmp6>()?.allowance(),
    })?;
    let fib = control.get::<Fib>()?.tables();
    graph.add_packet(node::Mirror::<false>::new(eyes.clone(), fib.clone(), adjacencies.clone()))?;
    graph.add_packet(node::Mirror::<true>::new(eyes.clone(), fib, adjacencies.clone()))?;
    for (arc, node, after) in control::MIRRORS {
        graph.add_feature(FeatureSpec { arc, node, before: &[], after });
    }
    let asker = || node::Solicitor::new(eyes.clone(), adjacencies.clone(), wait_tx.clone());
    let discover = graph.add_frame(node::Discover(asker()))?;
    graph.add_frame(node::Glean(asker()))?;
    let held = HeldCounters::new(graph.counters(), "ip6-nd")?;
    let protocol = Discovery::new(control, discover, links.clone(), counters.clone())?;
    let neighbours = control.put_rc(Neighbours::new(control, protocol, held, table_bell)?);
    let nd = control.put_rc(Nd::new(control, neighbours, links, counters, bell)?);
    nd.follow_interfaces();
    api::follow(control, &nd);
    control.put(ChannelEnds { facts, wait, bells: [table_rung, rung] });
    Ok(())
}

/// Joins IPv6 forwarding and ICMPv6: their packets come here, and the addresses of interfaces are followed. Their
/// nodes' own edges are numbered when the graph is built, so others come after that.
fn attach(control: &Rc<Control>) -> Result<(), InitError> {
    let (graph, ip6, icmp6) = (control.graph()?, control.get::<Ip6>()?, control.get::<Icmp6>()?);
    for (kind, node) in MESSAGES {
        icmp6.set_taker(*kind, graph.node(node)?)?;
    }
    ip6.prove_addresses();
    ip6.set_glean_node(graph.node("ip6-glean")?).map_err(|e| InitError::Other(e.to_string()))?;
    ip6.set_redirect_node(graph.node("ip6-redirect")?).map_err(|e| InitError::Other(e.to_string()))?;
    ip6.subscribe(|control, event| {
        let Ok(nd) = control.get::<Nd>() else { return };
        match event {
            AddressEvent::Added(interface, prefix) => {
                if let Err(e) = nd.add_address(interface, prefix) {
                    tracing::warn!(%interface, %prefix, "not followed: {e}");
                }
            }
            AddressEvent::Removed(interface, prefix) => nd.remove_address(interface, prefix.addr()),
            AddressEvent::Borrowed(interface) => nd.borrow_addresses(interface),
        }
    });
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    attach(control)?;
    let (processes, nd) = (control.processes()?, control.get::<Nd>()?);
    let (neighbours, ends) = (control.get::<Neighbours>()?, control.get::<ChannelEnds>()?);
    let [table_bell, bell] = ends.bells.clone();
    processes.spawn("ip6-neighbor-learn", process::learn(Rc::clone(&nd), ends.facts.clone()));
    let hold = shoal_neighbor::process::hold(Rc::clone(&neighbours), ends.wait.clone());
    processes.spawn("ip6-neighbor-hold", hold);
    let age = shoal_neighbor::process::age(neighbours, Rc::clone(&processes), table_bell);
    processes.spawn("ip6-neighbor-age-process", age);
    processes.spawn("ip6-ra-process", process::times(nd, Rc::clone(&processes), bell));
    Ok(())
}
