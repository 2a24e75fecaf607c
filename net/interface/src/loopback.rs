//! `loopN`: an interface without a wire. What it sends comes back as received on it.
//! loopN-output -> **loopN-tx** -> ethernet-input
//!
//! A packet that comes back is judged like any other: frames for other stations, the router's own ARP requests
//! and unknown types are dropped, and IP packets lose one from their TTL each time they are routed out again. So
//! the way through a loopback ends after at most 255 turns, all in the round of the loop it began in.
//!
//! The tx node is a frame node: its packets keep together, so the whole frame is counted and moved at once.

use std::rc::Rc;

use shoal_buffer::{Flags, Frame, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{FrameCx, FrameNode, NextNodes as _};
use shoal_wire::MacAddress;

use crate::{
    Create, Device, IfData, IfFlags, IfTable, InterfaceError, Interfaces, receive_again, send_received,
};

/// What [`crate::Info::class`] says of a loopback.
pub(crate) const CLASS: &str = "Loopback";
/// The same of an interface that was made to be where a bridge domain's packets are routed.
pub(crate) const BVI: &str = "BVI";
/// VPP's default for loopbacks.
const MTU: u16 = 9000;
/// Loopbacks are numbered below this.
pub(crate) const MAX_INSTANCES: u32 = 16 * 1024;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Back in.
    #[node("ethernet-input")]
    Input,
}

/// What `show trace` says.
struct Looped(SwIfIndex);

impl std::fmt::Display for Looped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "back in: sw_if_index {}", self.0)
    }
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
enum TxError {
    /// frame has come back by a switched loopback before
    #[counter("looped")]
    Looped,
}

struct LoopbackTx {
    interfaces: IfTable,
}

/// Whether a frame may come back by a loopback that is part of a bridge or cross-connect: once, if it is not where the
/// bridge's packets are routed. A frame that is switched has no TTL that would end its way.
fn may_return(data: &IfData, flags: Flags) -> Option<Flags> {
    if data.flags().all(IfFlags::L2) && !data.flags().has(IfFlags::BVI) {
        return flags.received_again().filter(|_| flags.received_again_times() == 0);
    }
    Some(flags)
}

impl FrameNode for LoopbackTx {
    const NAME: &'static str = "loopback-tx";
    type Next = Next;
    type Error = TxError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let (memory, thread) = (cx.memory(), cx.thread());
        let (guard, mut looped) = (cx.guard(), false);
        let mut run = (SwIfIndex(0), 0u64, 0u64);
        let count = |(rx, packets, bytes): (SwIfIndex, u64, u64), cx: &FrameCx<'_>| {
            if packets > 0 {
                cx.counters().rx.add(thread, rx.0 as usize, packets, bytes);
            }
        };
        for i in 0..frame.len() {
            let Some(mut pkt) = frame.packet(memory, i) else { continue };
            let (interface, bytes) = (pkt.tx(), pkt.len() as u64);
            if interface != run.0 {
                count(run, cx);
                run = (interface, 0, 0);
            }
            run = (interface, run.1 + 1, run.2 + bytes);
            let meta = pkt.meta_mut();
            let Some(flags) = may_return(self.interfaces.get(interface, guard), meta.flags) else {
                looped = true;
                continue;
            };
            meta.flags = flags;
            receive_again(meta, interface);
            cx.trace(&pkt, || Looped(interface));
        }
        count(run, cx);
        if looped {
            return send_received(frame, Next::Input.edge(), TxError::Looped, cx);
        }
        cx.send_frame(Next::Input.edge(), frame);
    }
}

/// An interface without a wire, of either class.
struct Loopback(&'static str);

impl Device for Loopback {
    fn class(&self) -> &'static str {
        self.0
    }
}

/// The address VPP gives to loopbacks: `de:ad:00:00:00:NN`.
pub(crate) fn default_mac(instance: u32) -> MacAddress {
    let [_, _, high, low] = instance.to_be_bytes();
    MacAddress([0xde, 0xad, 0, 0, high, low])
}

/// The address VPP gives to `bviN`: `b0:b0:00:00:00:NN`.
pub(crate) fn bvi_mac(instance: u32) -> MacAddress {
    let [_, _, high, low] = instance.to_be_bytes();
    MacAddress([0xb0, 0xb0, 0, 0, high, low])
}

impl Interfaces {
    /// Creates `bvi<instance>`, which is a loopback to be made the routed interface of a bridge domain; the first free
    /// number and an address of its own if none is given.
    ///
    /// # Errors
    /// As [`Interfaces::create_loopback`].
    pub fn create_bvi(
        &self,
        mac: Option<MacAddress>,
        instance: Option<u32>,
    ) -> Result<SwIfIndex, InterfaceError> {
        let is_free = |n: &u32| self.by_name(&format!("bvi{n}")).is_none();
        let free = || (0..MAX_INSTANCES).find(is_free).unwrap_or(MAX_INSTANCES);
        let instance = instance.unwrap_or_else(free);
        let name = format!("bvi{instance}");
        if !is_free(&instance) {
            return Err(InterfaceError::Exists(name));
        }
        self.create_wireless(name, instance, mac.unwrap_or_else(|| bvi_mac(instance)), BVI)
    }

    /// Deletes such an interface.
    ///
    /// # Errors
    /// There is no such interface, or it is none of ours.
    pub fn delete_bvi(&self, index: SwIfIndex) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        if device.class() != BVI {
            return Err(InterfaceError::NotPossible(name, "is not a bvi interface".into()));
        }
        self.delete(index)
    }

    /// Creates a loopback, `loop<instance>`; the first free number and an address of its own if none is given.
    ///
    /// # Errors
    /// The number is taken or too large, the address is a group's, or the graph refuses.
    pub fn create_loopback(
        &self,
        mac: Option<MacAddress>,
        instance: Option<u32>,
    ) -> Result<SwIfIndex, InterfaceError> {
        let instance = instance.or_else(|| self.free_loopback()).unwrap_or(MAX_INSTANCES);
        let name = format!("loop{instance}");
        if instance < MAX_INSTANCES && self.is_loopback_taken(instance) {
            return Err(InterfaceError::Exists(name));
        }
        self.create_wireless(name, instance, mac.unwrap_or_else(|| default_mac(instance)), CLASS)
    }

    fn create_wireless(
        &self,
        name: String,
        instance: u32,
        mac: MacAddress,
        class: &'static str,
    ) -> Result<SwIfIndex, InterfaceError> {
        if instance >= MAX_INSTANCES {
            let (what, most) = ("instance", MAX_INSTANCES - 1);
            return Err(InterfaceError::Range { what, interface: name, value: instance, least: 0, most });
        }
        if mac.is_multicast() || mac.is_zero() {
            let why = format!("{mac} is not the address of one station");
            return Err(InterfaceError::NotPossible(name, why));
        }
        let create = Create {
            name: &name,
            mac,
            mtu: MTU,
            flags: IfFlags::ETHERNET.set(IfFlags::LINK_UP, true),
            rx_next: "ethernet-input",
            device: Rc::new(Loopback(class)),
        };
        self.create(&create, LoopbackTx { interfaces: self.table() })
    }

    /// Whether an interface is a loopback: there is no other station on its link. One that is part of a bridge has as many
    /// as that has.
    pub fn is_loopback(&self, index: SwIfIndex) -> bool {
        let wireless = self.device(index).is_ok_and(|(_, device)| [CLASS, BVI].contains(&device.class()));
        wireless && !self.data(index).is_ok_and(|data| data.flags().has(IfFlags::L2))
    }

    /// Why there is no other system at the end of an interface's link; `None` if there may be one.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn lacks_link(&self, index: SwIfIndex) -> Result<Option<&'static str>, InterfaceError> {
        let flags = self.data(index)?.flags();
        Ok(match () {
            () if self.sub(index).is_some() => Some("is a sub-interface"),
            () if !flags.has(IfFlags::ETHERNET) => Some("has no Ethernet frames"),
            () if self.is_loopback(index) => Some("is a loopback"),
            () if flags.has(IfFlags::POINT_TO_POINT) => Some("is a pipe"),
            () => None,
        })
    }

    /// Whether there can be stations on an interface's link that are asked for their addresses: not on that of a loopback, on
    /// one that a program feeds, or between two ends.
    pub fn has_stations(&self, index: SwIfIndex) -> bool {
        let silent = IfFlags::FED.set(IfFlags::POINT_TO_POINT, true);
        !self.is_loopback(index) && !self.data(index).is_ok_and(|data| data.flags().has(silent))
    }

    /// The packets of an interface are a program's. There is no other station on its link, so no neighbour is asked for
    /// there.
    pub fn set_fed(&self, index: SwIfIndex) {
        if let Err(e) = self.modify(index, |d| d.with_flags(d.flags().set(IfFlags::FED, true))) {
            tracing::warn!(%index, "not marked as fed by a program: {e}");
        }
    }

    /// Deletes a loopback.
    ///
    /// # Errors
    /// There is no such interface, or it is none of ours.
    pub fn delete_loopback(&self, index: SwIfIndex) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        if device.class() != CLASS {
            return Err(InterfaceError::NotPossible(name, "is not a loopback interface".into()));
        }
        self.delete(index)
    }
}

#[cfg(test)]
mod tests {
    use shoal_buffer::Packet;
    use shoal_graph::{Cx, Graph, NoNext, PacketNode};

    use super::*;
    use crate::testing;

    /// Stands in for `ethernet-input`: takes every frame and says so.
    struct Sink;

    #[derive(shoal_derive::ErrorCounters, Clone, Copy, Debug)]
    enum Error {
        /// frame came back
        Back,
        /// frame came back with marks of its way out
        Marked,
    }

    impl PacketNode for Sink {
        const NAME: &'static str = "ethernet-input";
        type Next = NoNext;
        type Error = Error;
        type Trace = &'static str;

        fn packet(&self, pkt: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<NoNext, Error> {
            let marks = Flags::LOCALLY_ORIGINATED.with(Flags::LINK_MULTICAST);
            let clean = !pkt.flags().has(marks) && pkt.tx() == SwIfIndex::NONE;
            Err(if clean { Error::Back } else { Error::Marked })
        }
    }

    fn send(graph: &Graph, interfaces: &Interfaces, index: SwIfIndex, packets: usize) {
        let node = interfaces.output_node();
        let mut main = graph.main();
        for _ in 0..packets {
            let mut buffer = main.cache().alloc_data(&[0xff; 60]).unwrap();
            let mut pkt = main.cache().packet(&mut buffer);
            pkt.meta_mut().tx = index;
            pkt.meta_mut().flags = Flags::LOCALLY_ORIGINATED.with(Flags::LINK_MULTICAST);
            main.inject(node, buffer);
        }
        drop(main);
        while graph.round().worked {}
    }

    #[test]
    fn what_a_loopback_sends_comes_back_once_as_received_on_it() {
        let control = testing::router(|graph| graph.add_packet(Sink).map(drop));
        let (graph, interfaces) = (control.graph().unwrap(), control.get::<Interfaces>().unwrap());
        let index = interfaces.create_loopback(None, None).unwrap();
        interfaces.set_admin(index, true).unwrap();
        send(&graph, &interfaces, index, 300);
        let counters = graph.graph_counters();
        assert_eq!(counters.tx.sum(index.0 as usize), (300, 18_000));
        assert_eq!(counters.rx.sum(index.0 as usize), (300, 18_000));
        assert_eq!(graph.error_count("ethernet-input", "frame came back"), Some(300));
        assert_eq!(graph.error_count("ethernet-input", "marked"), Some(0));
        assert_eq!(graph.pool().stats().used, 0);
    }

    #[test]
    fn numbers_and_addresses_are_given_out_and_refused() {
        let control = testing::router(|graph| graph.add_packet(Sink).map(drop));
        let interfaces = control.get::<Interfaces>().unwrap();
        let seven = interfaces.create_loopback(None, Some(7)).unwrap();
        assert_eq!(interfaces.name(seven).unwrap(), "loop7");
        assert_eq!(interfaces.data(seven).unwrap().mac().to_string(), "de:ad:00:00:00:07");
        let zero = interfaces.create_loopback(None, None).unwrap();
        assert_eq!(interfaces.name(zero).unwrap(), "loop0");
        assert_eq!(interfaces.create_loopback(None, Some(7)), Err(InterfaceError::Exists("loop7".into())));
        assert!(interfaces.create_loopback(None, Some(u32::MAX)).is_err());
        assert!(interfaces.create_loopback(Some(MacAddress::BROADCAST), None).is_err());
        assert!(interfaces.delete_loopback(SwIfIndex(0)).is_err());
        interfaces.delete_loopback(seven).unwrap();
        interfaces.create_loopback(None, Some(7)).unwrap();
    }
}
