//! linux-cp: interfaces with an image in Linux, so that its programs can be reached at the router's own addresses.
//!
//! ```text
//! ip4-local, ip6-local -- no listener here -----> linux-cp-... --> the image's output --> Linux: bird, sshd, ...
//! what they send --> device-input: linux-cp-xc --> the interface's output
//! ```
//! The image is made by the module that makes interfaces to the kernel ([`shoal_interface::HostSide`]); no driver is
//! named here.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod daemon_listener;
mod error;
mod lines;
mod node;
mod peers;
mod running;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use shoal_ethernet::Ethernet;
use shoal_fib::Family;
use shoal_graph::{ALL_INTERFACES, FeatureSpec, Graph};
use shoal_interface::{DEVICE_INPUT_ARC, IfTable, Interfaces};
use shoal_ip::ListenerTable;
use shoal_ip4::{Ip4, Ip4Family};
use shoal_ip6::{Ip6, Ip6Family};
use shoal_mfib::Mfib;
use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};
use shoal_module::{Control, InitError, Module};

pub use control::{Lcp, PairInfo, Sync, TablePair, VlanInfo, VrfInfo, resilient};
pub use daemon_listener::{ConnectionTaker, DaemonAddress, ListenError, accept};
pub use error::LcpError;
pub use peers::Peers;

use node::{
    ArpReplies, Decide, Groups, Ip4Groups, Ip4Local, Ip4Punt, Ip6Groups, Ip6Local, Ip6Punt, LinuxGroups, Osi,
    Other, Protocols, ToHost, Xc,
};

/// The module.
pub static MODULE: Module = Module {
    name: "linux-cp",
    description: "Linux control plane: images of interfaces in Linux",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API],
    sections: &[SECTION, NETLINK],
    features: &[
        "linux-cp-ip4-local",
        "linux-cp-ip6-local",
        "linux-cp-ip4-mcast",
        "linux-cp-ip6-mcast",
        "linux-cp-punt-ip4",
        "linux-cp-punt-ip6",
        "linux-cp-arp-phy",
        "linux-cp-xc",
    ],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Why a word of VPP's changes nothing.
const AS_LINUX_SAYS: &str = "a route of Linux goes when Linux takes it away";
/// The same.
const QUEUES: &str = "an image has one queue of each kind";

const SECTION: Section = Section {
    name: "linux-cp",
    doc: "images of interfaces in Linux",
    effect: Effect::Honoured,
    body: Body::Keys(&[
        Key::new("default netns", Kind::Word, "network namespace of images that name none"),
        Key::new("lcp-sync", Kind::Flag, "mirror MTU and addresses of interfaces to their images"),
        Key::new(
            "lcp-auto-subint",
            Kind::Flag,
            "make images of new sub-interfaces of interfaces that have one",
        ),
        Key::new(
            "lcp-sync-unnumbered",
            Kind::Flag,
            "mirror borrowed addresses, too; so it is without this, too",
        ),
        Key::accepted(
            "del-static-on-link-down",
            Kind::Flag,
            AS_LINUX_SAYS,
            "withdraw static routes of a link",
        ),
        Key::accepted(
            "del-dynamic-on-link-down",
            Kind::Flag,
            AS_LINUX_SAYS,
            "withdraw learnt routes of a link",
        ),
        Key::accepted(
            "num-rx-queues",
            Kind::U64 { min: 0, max: 65_535 },
            QUEUES,
            "receive queues of an image",
        ),
        Key::accepted(
            "num-tx-queues",
            Kind::U64 { min: 0, max: 65_535 },
            QUEUES,
            "transmit queues of an image",
        ),
    ]),
};

/// Why a word of VPP's changes nothing.
const AS_THEY_COME: &str = "messages are taken in as they come, and packets go first";
/// The same.
const ASKED_AGAIN: &str = "the buffer has 64 MB; what is lost all the same is asked for again";

const NETLINK: Section = Section {
    name: "linux-nl",
    doc: "how routes, neighbours and addresses of Linux are heard",
    effect: Effect::Honoured,
    body: Body::Keys(&[
        Key::accepted("nl-rx-buffer-size", NUMBER, ASKED_AGAIN, "bytes of the socket's buffer"),
        Key::accepted("nl-batch-size", NUMBER, AS_THEY_COME, "messages that are handled at once"),
        Key::accepted("nl-batch-delay-ms", NUMBER, AS_THEY_COME, "milliseconds between two batches"),
        Key::new(
            "audit-interval",
            Kind::U64 { min: 0, max: 86_400 },
            "seconds between two audits (600); 0: none (shoal only)",
        ),
    ]),
};

const NUMBER: Kind = Kind::U64 { min: 0, max: u32::MAX as u64 };

/// What the start-up file says.
fn configure(control: &Control, lcp: &Lcp) {
    let Ok(sections) = control.get::<BTreeMap<&'static str, Settings>>() else { return };
    let disabled = |file: &str| {
        let plugins = sections.get("plugins");
        plugins
            .is_some_and(|all| all.named("plugin").any(|(name, said)| name == file && said.flag("disable")))
    };
    lcp.follows_linux.set(!disabled("linux_nl_plugin.so"));
    lcp.osi_is_on.set(!disabled("osi_plugin.so"));
    if let Some(seconds) = sections.get(NETLINK.name).and_then(|s| s.u64("audit-interval")) {
        lcp.set_audit_interval(Duration::from_secs(seconds));
    }
    let Some(settings) = sections.get(SECTION.name) else { return };
    lcp.set_default_netns(settings.text("default netns"));
    if settings.flag("lcp-sync") {
        lcp.set_sync(Sync::On);
    }
    if settings.flag("lcp-auto-subint") {
        lcp.set_auto_subint(Sync::On);
    }
}

fn add<D: Decide>(
    graph: &Rc<Graph>,
    arc: &'static str,
    (peers, interfaces): (&Peers, &IfTable),
    decide: D,
) -> Result<(), InitError> {
    graph.add_frame(ToHost { peers: peers.clone(), interfaces: interfaces.clone(), decide })?;
    graph.add_feature(FeatureSpec { arc, node: D::NAME, before: &[], after: &[] });
    Ok(())
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
    let peers = Peers::new()?;
    let table = interfaces.table();
    let with = (&peers, &table);
    let listeners4 = control.get::<ListenerTable<Ip4Family>>()?.shared();
    let listeners6 = control.get::<ListenerTable<Ip6Family>>()?.shared();
    add(&graph, shoal_ip4::LOCAL_ARC, with, Ip4Local(listeners4))?;
    add(&graph, shoal_ip6::LOCAL_ARC, with, Ip6Local(listeners6))?;
    let (mfib, linux) = (control.get::<Mfib>()?, [LinuxGroups::new()?, LinuxGroups::new()?]);
    let groups = |family, of: &LinuxGroups| Groups {
        table: mfib.table(family),
        interfaces: table.clone(),
        linux: of.clone(),
    };
    let [ip4, ip6] = &linux;
    add(&graph, shoal_ip4::MULTICAST_ARC, with, Ip4Groups(groups(Family::Ip4, ip4)))?;
    add(&graph, shoal_ip6::MULTICAST_ARC, with, Ip6Groups(groups(Family::Ip6, ip6)))?;
    add(&graph, shoal_ip4::PUNT_ARC, with, Ip4Punt)?;
    add(&graph, shoal_ip6::PUNT_ARC, with, Ip6Punt)?;
    add(&graph, shoal_arp::ARC, with, ArpReplies)?;
    graph.add_packet(Xc { peers: peers.clone(), interfaces: table.clone() })?;
    graph.add_feature(FeatureSpec { arc: DEVICE_INPUT_ARC, node: "linux-cp-xc", before: &[], after: &[] });
    graph.add_packet(Other { peers: peers.clone(), interfaces: table.clone() })?;
    let protocols = Protocols::default();
    graph.add_packet(Osi {
        peers: peers.clone(),
        interfaces: table.clone(),
        protocols: protocols.clone(),
    })?;
    let ethernet = control.get::<Ethernet>()?;
    let (other, osi) = (ethernet.edge_to("linux-cp-other")?, ethernet.edge_to("linux-cp-osi")?);
    let lcp = control.put(Lcp::new(control, peers, other, (osi, protocols), linux)?);
    configure(control, &lcp);
    lcp.started();
    interfaces.subscribe(|control, event| {
        if let Ok(lcp) = control.get::<Lcp>() {
            lcp.follow(event);
        }
    });
    control.get::<Ip4>()?.subscribe(|control, event| {
        let i = match event {
            shoal_ip4::AddressEvent::Added(i, _)
            | shoal_ip4::AddressEvent::Removed(i, _)
            | shoal_ip4::AddressEvent::Borrowed(i) => i,
        };
        if let Ok(lcp) = control.get::<Lcp>() {
            lcp.sync_addresses(i);
        }
    });
    control.get::<Ip6>()?.subscribe(|control, event| {
        let i = match event {
            shoal_ip6::AddressEvent::Added(i, _)
            | shoal_ip6::AddressEvent::Removed(i, _)
            | shoal_ip6::AddressEvent::Borrowed(i) => i,
        };
        if let Ok(lcp) = control.get::<Lcp>() {
            lcp.sync_addresses(i);
        }
    });
    Ok(())
}

/// Packets of all interfaces pass the punt arcs; those of interfaces without an image go on.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    for (arc, node) in [(shoal_ip4::PUNT_ARC, Ip4Punt::NAME), (shoal_ip6::PUNT_ARC, Ip6Punt::NAME)] {
        graph.enable_feature(arc, node, ALL_INTERFACES, true)?;
    }
    control.get::<Lcp>()?.audit_regularly();
    Ok(())
}
