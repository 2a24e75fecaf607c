//! The control plane of interfaces: the only code that writes the table packets read.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use shoal_buffer::{MAX_INTERFACES, SwIfIndex};
use shoal_graph::{
    ArcSide, ArcSpec, Edge, FeatureSpec, FrameNode, Graph, NodeIndex, PacketNode, QueueId, QueueInfo, RxMode,
    RxQueue,
};
use shoal_infra::{StableArena, TwinTable, TwinTableWriter, Zeroable, qsbr};
use shoal_module::cli::nearest;
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;

use crate::counters::IfCounters;
use crate::extra_macs::ExtraMacs;
use crate::node::arc_end::ArcEnd;
use crate::node::device_input::DeviceInput;
use crate::node::device_input_end::DeviceInputEnd;
use crate::node::down::{DOWN, Down};
use crate::node::error_punt::ErrorPunt;
use crate::node::interface_output::InterfaceOutput;
use crate::node::output::Output;
use crate::node::stats_collect::{StatsCollectRx, StatsCollectTx};
use crate::{
    DEVICE_INPUT_ARC, Event, IfData, IfFlags, IfTable, InterfaceError, OUTPUT_ARC, Sub, TxPlacement,
};

mod change;
mod clear;
mod kept;
mod names;
mod queues;
mod sources;
mod sub;
mod superpaths;

pub use change::{Layer, MtuLayer, Need};
pub(crate) use kept::Kept;
pub use kept::{ProviderSaid, TagsSaid};
pub use queues::{Queue, TxQueueInfo};
pub use sources::SwitchedFeature;
use superpaths::Superpaths;
pub use superpaths::{Medium, Superpath, SuperpathChoice, SuperpathObstacle};

/// Operators' tags of interfaces in the stats segment, for exporters that label with them.
const TAGS: &str = "/if/tags";
/// Largest MTU a device may carry.
pub const MAX_MTU: u32 = 65_535;

type Subscriber = Rc<dyn Fn(&Rc<Control>, Event)>;

/// What a driver can be asked to do with its device.
pub trait Device {
    /// The driver's name as `show hardware-interfaces` prints it.
    fn class(&self) -> &'static str;

    /// The operator set the interface up or down.
    ///
    /// # Errors
    /// Why the device cannot.
    fn set_admin(&self, _up: bool) -> Result<(), String> {
        Ok(())
    }

    /// Accept frames for all MAC addresses, or only its own.
    ///
    /// # Errors
    /// Why the device cannot.
    fn set_promiscuous(&self, _on: bool) -> Result<(), String> {
        Ok(())
    }

    /// Use another MAC address.
    ///
    /// # Errors
    /// Why the device cannot.
    fn set_mac(&self, _mac: MacAddress) -> Result<(), String> {
        Ok(())
    }

    /// Carry packets up to another size.
    ///
    /// # Errors
    /// Why the device cannot.
    fn set_mtu(&self, _mtu: u32) -> Result<(), String> {
        Ok(())
    }

    /// Have another number of receive queues, while packets flow.
    ///
    /// # Errors
    /// Why the device cannot, and what it allows.
    fn set_rx_queues(&self, _queues: u32) -> Result<(), String> {
        Err("its receive queues are chosen when it is created: delete it and create it again".into())
    }

    /// Whether its MTU is what somebody else gave it, so that it says something to ask for the one it has.
    fn has_given_mtu(&self) -> bool {
        false
    }

    /// Its receive queues are waited for in another way.
    ///
    /// # Errors
    /// Why the device cannot, and what it can.
    fn set_rx_mode(&self, _mode: RxMode) -> Result<(), String> {
        Ok(())
    }

    /// Lines for `show hardware-interfaces`, without indentation.
    fn describe(&self) -> String {
        String::new()
    }

    /// Further lines for `show hardware-interfaces detail`, such as the device's own counters.
    fn detail(&self) -> String {
        String::new()
    }

    /// Link speed in kbit/s, 0 when unknown.
    fn speed_kbps(&self) -> u32 {
        0
    }

    /// Its transmit queues, if it has any that threads choose from.
    fn tx_placement(&self) -> Option<&TxPlacement> {
        None
    }
}

/// MTUs by layer; 0 for a layer means that of the layer below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mtu {
    /// Largest packet without the Ethernet header.
    pub l3: u16,
    /// Largest IPv4 packet.
    pub ip4: u16,
    /// Largest IPv6 packet.
    pub ip6: u16,
    /// Largest MPLS packet.
    pub mpls: u16,
}

/// What a new interface is made of.
pub struct Create<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its MAC address; all zero for one without Ethernet header.
    pub mac: MacAddress,
    /// Its MTU.
    pub mtu: u16,
    /// Flags to start with: [`IfFlags::ETHERNET`], [`IfFlags::LINK_UP`], offloads.
    pub flags: IfFlags,
    /// Where its received frames go.
    pub rx_next: &'a str,
    /// Its device.
    pub device: Rc<dyn Device>,
}

struct Interface {
    name: String,
    tag: String,
    device: Rc<dyn Device>,
    output: Option<NodeIndex>,
    tx: Option<NodeIndex>,
    mtu: Mtu,
    queues: Vec<(u32, QueueId)>,
    /// What its receive nodes are when nothing faster is chosen.
    plain_rx_next: NodeIndex,
    kept: Kept,
    /// How many need frames for other MAC addresses from it.
    all_frames_needs: usize,
    /// What it takes of its port's frames, if it is a sub-interface.
    sub: Option<Sub>,
}

/// An interface as `show interface` prints it.
#[derive(Clone, Debug)]
pub struct Info {
    /// Its index.
    pub index: SwIfIndex,
    /// Its name.
    pub name: String,
    /// The operator's tag.
    pub tag: String,
    /// Its driver's name.
    pub class: &'static str,
    /// Its MAC address.
    pub mac: MacAddress,
    /// Its flags.
    pub flags: IfFlags,
    /// Its MTUs; all 0 for a sub-interface that has its port's.
    pub mtu: Mtu,
    /// The largest packet that its device carries.
    pub link_mtu: u16,
    /// What it takes of its port's frames, if it is a sub-interface.
    pub sub: Option<Sub>,
    /// What layer 2 does to its tags.
    pub tag_rewrite: TagsSaid,
    /// Lines from its device.
    pub device: String,
    /// Link speed in kbit/s, 0 when unknown.
    pub speed_kbps: u32,
}

/// All interfaces.
pub struct Interfaces {
    graph: Rc<Graph>,
    control: Weak<Control>,
    table: IfTable,
    writer: RefCell<TwinTableWriter<IfData>>,
    all: RefCell<BTreeMap<SwIfIndex, Interface>>,
    /// Sub-interfaces by port and number.
    subs: RefCell<BTreeMap<(SwIfIndex, u32), SwIfIndex>>,
    names: RefCell<names::Names>,
    subscribers: RefCell<Vec<Subscriber>>,
    sources: sources::Sources,
    interface_output: Cell<NodeIndex>,
    arc_end: Cell<NodeIndex>,
    device_input: NodeIndex,
    device_input_end: NodeIndex,
    pub(crate) counters: IfCounters,
    superpaths: Superpaths,
    /// How new receive queues are waited for.
    default_rx_mode: Cell<RxMode>,
}

struct Local0;

impl Device for Local0 {
    fn class(&self) -> &'static str {
        "local"
    }
}

impl Interfaces {
    /// The table with `local0`, and the two nodes without an interface.
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let (records, writer) = TwinTable::with_capacity(MAX_INTERFACES)?;
        let tables = || StableArena::with_capacity(MAX_INTERFACES);
        let extra_macs = ExtraMacs::new();
        let table = IfTable { records, ip4_tables: tables()?, ip6_tables: tables()?, extra_macs };
        let interface_output = graph.add_packet(InterfaceOutput { interfaces: table.clone() })?;
        let arc_end = graph.add_packet(ArcEnd { interfaces: table.clone() })?;
        graph.add_arc(ArcSpec {
            name: OUTPUT_ARC,
            side: ArcSide::Send,
            starts: &[],
            end: "interface-output-arc-end",
        });
        graph.add_arc(ArcSpec {
            name: DEVICE_INPUT_ARC,
            side: ArcSide::Receive,
            starts: &["device-input"],
            end: "device-input-arc-end",
        });
        let device_input = graph.add_packet(DeviceInput { arc: graph.arc(DEVICE_INPUT_ARC)? })?;
        let device_input_end = graph.add_packet(DeviceInputEnd { interfaces: table.clone() })?;
        let counters = IfCounters::new(&graph)?;
        let collect = StatsCollectRx { interfaces: table.clone(), counters: counters.rx_by_cast.clone() };
        graph.add_packet(collect)?;
        let collect = StatsCollectTx { interfaces: table.clone(), counters: counters.tx_by_cast.clone() };
        graph.add_packet(collect)?;
        let (rx, tx) = (StatsCollectRx::NAME, StatsCollectTx::NAME);
        graph.add_feature(FeatureSpec { arc: DEVICE_INPUT_ARC, node: rx, before: &[], after: &[] });
        graph.add_feature(FeatureSpec { arc: OUTPUT_ARC, node: tx, before: &[], after: &[DOWN] });
        graph.add_packet(Down)?;
        graph.add_packet(ErrorPunt)?;
        graph.add_feature(FeatureSpec { arc: OUTPUT_ARC, node: DOWN, before: &[], after: &[] });
        let interfaces = Rc::new(Interfaces {
            graph,
            control: Rc::downgrade(control),
            table,
            writer: RefCell::new(writer),
            all: RefCell::default(),
            subs: RefCell::default(),
            names: RefCell::default(),
            subscribers: RefCell::default(),
            sources: sources::Sources::default(),
            interface_output: Cell::new(interface_output),
            arc_end: Cell::new(arc_end),
            device_input,
            device_input_end,
            counters,
            superpaths: Superpaths::default(),
            default_rx_mode: Cell::default(),
        });
        let drop = interfaces.graph.node("drop")?;
        let local0 = Interface {
            name: "local0".into(),
            tag: String::new(),
            device: Rc::new(Local0),
            output: None,
            tx: None,
            mtu: Mtu { l3: 0, ip4: 0, ip6: 0, mpls: 0 },
            queues: Vec::new(),
            plain_rx_next: drop,
            kept: Kept { made_as: "local0".into(), ..Kept::default() },
            all_frames_needs: 0,
            sub: None,
        };
        interfaces.enter(SwIfIndex(0), local0);
        Ok(interfaces)
    }

    /// The table packets read.
    pub fn table(&self) -> IfTable {
        self.table.clone()
    }

    /// The graph interfaces live in.
    pub fn graph(&self) -> &Rc<Graph> {
        &self.graph
    }

    /// Tells `subscriber` whatever happens from now on. Of an interface that goes, those hear first who subscribed last:
    /// who uses what another keeps lets go of it before the other looks for what is left.
    pub fn subscribe(&self, subscriber: impl Fn(&Rc<Control>, Event) + 'static) {
        self.subscribers.borrow_mut().push(Rc::new(subscriber));
    }

    pub(crate) fn tell(&self, event: Event) {
        let subscribers = self.subscribers.borrow().clone();
        let Some(control) = self.control.upgrade() else { return };
        match event {
            Event::Deleting(_) => subscribers.iter().rev().for_each(|tell| tell(&control, event)),
            _ => subscribers.iter().for_each(|tell| tell(&control, event)),
        }
    }

    fn enter(&self, index: SwIfIndex, interface: Interface) {
        let name = interface.name.clone();
        {
            let mut names = self.names.borrow_mut();
            names.insert(&name, index);
            names.take(&name);
        }
        self.all.borrow_mut().insert(index, interface);
        self.publish_names(index, &name);
    }

    fn publish_names(&self, index: SwIfIndex, name: &str) {
        let at = index.0 as usize;
        self.counters.ensure(index);
        self.graph.if_names().set(at, name);
        let (counters, folder) = (self.graph.counters(), name.replace('/', "_"));
        for counter in self.counters.names() {
            counters.symlink(&format!("/interfaces/{folder}/{counter}"), &format!("/if/{counter}"), at);
        }
    }

    /// Creates an interface with its nodes; `tx` becomes `<name>-tx`. It starts admin down.
    ///
    /// # Errors
    /// The name is taken, or the graph refuses; nothing is left behind then.
    pub fn create(&self, create: &Create<'_>, tx: impl FrameNode) -> Result<SwIfIndex, InterfaceError> {
        if self.by_name(create.name).is_some() {
            return Err(InterfaceError::Exists(create.name.to_owned()));
        }
        qsbr::admit().map_err(|why| InterfaceError::Table(why.to_string()))?;
        let free = self.names.borrow().free_index();
        let index = free.ok_or_else(|| InterfaceError::Table("full".into()))?;
        let rx_next = self.graph.node(create.rx_next)?;
        let output = Arc::new(Output { arc: self.graph.arc(OUTPUT_ARC)?, interfaces: self.table() });
        let made: Result<_, InterfaceError> = self.graph.batch(|| {
            let tx = self.graph.add_frame_named(&format!("{}-tx", create.name), tx)?;
            let made = self.graph.add_plain_named(&format!("{}-output", create.name), output);
            let made = made.map_err(InterfaceError::from).and_then(|output| {
                let edges = self.connect((output, tx), index);
                edges.inspect_err(|_| drop(self.graph.remove(output))).map(|edges| (output, edges))
            });
            let (output, edges) = made.inspect_err(|_| drop(self.graph.remove(tx)))?;
            Ok(((output, tx), edges))
        });
        let ((output, tx), edges) = made?;
        let entered = self.enter_new(create, index, (output, tx), edges, rx_next);
        if entered.is_err() {
            let _ = self.graph.remove(output);
            let _ = self.graph.remove(tx);
        }
        entered?;
        self.tell(Event::Created(index));
        Ok(index)
    }

    /// Gives the nodes of a new interface their place in the graph; the edges that lead to them.
    fn connect(
        &self,
        (output, tx): (NodeIndex, NodeIndex),
        index: SwIfIndex,
    ) -> Result<(Edge, Edge), InterfaceError> {
        let Edge(_) = self.graph.add_edge(output, tx)?;
        self.graph.start_arc_at(output, OUTPUT_ARC)?;
        let output_edge = self.graph.add_edge(self.interface_output.get(), output)?;
        let arc_end_edge = self.graph.add_edge(self.arc_end.get(), tx)?;
        self.set_down_feature(index, true)?;
        Ok((output_edge, arc_end_edge))
    }

    fn enter_new(
        &self,
        create: &Create<'_>,
        index: SwIfIndex,
        (output, tx): (NodeIndex, NodeIndex),
        (output_edge, arc_end_edge): (Edge, Edge),
        rx_next: NodeIndex,
    ) -> Result<(), InterfaceError> {
        self.counters.zero(index);
        let mut data =
            IfData::zeroed().with_flags(create.flags).with_mac(create.mac).with_rx_next(rx_next, rx_next);
        data.mtu = create.mtu;
        data.output_edge = output_edge.0;
        data.arc_end_edge = arc_end_edge.0;
        data.hardware = index.0;
        self.store(index, data)?;
        let mtu = Mtu { l3: create.mtu, ip4: 0, ip6: 0, mpls: 0 };
        let device = Rc::clone(&create.device);
        let name = create.name.to_owned();
        let kept = Kept { made_as: name.clone(), usual_mtu: create.mtu, ..Kept::default() };
        let interface = Interface {
            name,
            tag: String::new(),
            device,
            output: Some(output),
            tx: Some(tx),
            mtu,
            queues: Vec::new(),
            plain_rx_next: rx_next,
            kept,
            all_frames_needs: 0,
            sub: None,
        };
        self.enter(index, interface);
        self.choose_rx_next(index)
    }

    /// Takes an interface away: tells everybody first, then its queues, nodes and names go.
    ///
    /// # Errors
    /// There is none, or it is `local0`, or a thread does not move.
    pub fn delete(&self, index: SwIfIndex) -> Result<(), InterfaceError> {
        if index == SwIfIndex(0) {
            return Err(InterfaceError::NotPossible("local0".into(), "cannot be deleted".into()));
        }
        // One that does not move may be in the middle of the device's code.
        self.graph.all_move()?;
        self.subs_of(index).into_iter().try_for_each(|sub| self.delete(sub))?;
        self.modify(index, |data| data.with_flags(data.flags().set(IfFlags::ADMIN_UP, false)))?;
        self.set_layer(index, Layer::Three)?;
        self.tell(Event::Deleting(index));
        self.forget_macs(index);
        let removed = self.all.borrow_mut().remove(&index);
        let removed = removed.ok_or(InterfaceError::NoIndex(index))?;
        let Interface { name, queues, output, tx, device, kept, sub, .. } = removed;
        if let Some(Sub { port, number, .. }) = sub {
            self.subs.borrow_mut().remove(&(port, number));
            self.sub_has_gone(port);
        }
        // The number is free when nothing of the interface is left.
        self.names.borrow_mut().forget(&name);
        for (_, queue) in queues {
            drop(self.graph.remove_queue(queue)?);
        }
        // Not before: no thread may read from a device that is being taken down.
        drop(device);
        self.graph.clear_features(index);
        self.store(index, IfData::zeroed())?;
        self.graph.batch(|| [output, tx].into_iter().flatten().try_for_each(|n| self.graph.remove(n)))?;
        self.names.borrow_mut().remove(&name, &kept.made_as, index);
        self.graph.counters().remove_prefix(&format!("/interfaces/{}/", name.replace('/', "_")));
        self.graph.if_names().set(index.0 as usize, "deleted");
        self.graph.counters().names(TAGS).set(index.0 as usize, "");
        self.tell(Event::Deleted(index));
        Ok(())
    }

    /// The interface of a name.
    pub fn by_name(&self, name: &str) -> Option<SwIfIndex> {
        self.names.borrow().find(name)
    }

    /// The name nearest to one that is not there.
    pub fn nearest_name(&self, name: &str) -> Option<String> {
        let all = self.all.borrow();
        nearest(name, all.values().map(|i| i.name.as_str())).map(str::to_owned)
    }

    /// All interfaces by index.
    pub fn indices(&self) -> Vec<SwIfIndex> {
        self.all.borrow().keys().copied().collect()
    }

    /// The interface of this number, or the one with the next higher.
    pub fn at_or_after(&self, index: SwIfIndex) -> Option<SwIfIndex> {
        self.all.borrow().range(index..).next().map(|(index, _)| *index)
    }

    /// An interface's name.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn name(&self, index: SwIfIndex) -> Result<String, InterfaceError> {
        self.all.borrow().get(&index).map(|i| i.name.clone()).ok_or(InterfaceError::NoIndex(index))
    }

    /// The lines about an interface's device for `detail`.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn detail(&self, index: SwIfIndex) -> Result<String, InterfaceError> {
        Ok(self.device(index)?.1.detail())
    }

    /// Everything about an interface but its counters.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn info(&self, index: SwIfIndex) -> Result<Info, InterfaceError> {
        let info = self.summary(index)?;
        let device = self.device(index)?.1.describe();
        Ok(Info { device, ..info })
    }

    /// The same without the lines from its device, which take long.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn summary(&self, index: SwIfIndex) -> Result<Info, InterfaceError> {
        let data = self.data(index)?;
        let all = self.all.borrow();
        let interface = all.get(&index).ok_or(InterfaceError::NoIndex(index))?;
        Ok(Info {
            index,
            name: interface.name.clone(),
            tag: interface.tag.clone(),
            class: interface.device.class(),
            mac: data.mac(),
            flags: data.flags(),
            mtu: interface.mtu,
            link_mtu: interface.sub.and_then(|sub| all.get(&sub.port)).unwrap_or(interface).mtu.l3,
            sub: interface.sub,
            tag_rewrite: interface.kept.tag_rewrite,
            device: String::new(),
            speed_kbps: interface.device.speed_kbps(),
        })
    }

    /// The record packets read of an interface.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn data(&self, index: SwIfIndex) -> Result<IfData, InterfaceError> {
        if !self.all.borrow().contains_key(&index) {
            return Err(InterfaceError::NoIndex(index));
        }
        Ok(self.writer.borrow().get(index.0 as usize).copied().unwrap_or_else(IfData::zeroed))
    }

    fn store(&self, index: SwIfIndex, data: IfData) -> Result<(), InterfaceError> {
        let stored = self.writer.borrow_mut().store(index.0 as usize, data);
        stored.map_err(|e| InterfaceError::Table(e.to_string()))
    }

    /// Changes the record packets read of an interface.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn modify(
        &self,
        index: SwIfIndex,
        change: impl FnOnce(IfData) -> IfData,
    ) -> Result<(), InterfaceError> {
        let old = self.data(index)?;
        let new = change(old);
        if new == old {
            return Ok(());
        }
        self.store(index, new)?;
        self.lead_subs(index, &new)
    }

    /// The node a packet with this interface as its sending one is put into.
    pub fn output_node(&self) -> NodeIndex {
        self.interface_output.get()
    }
}
