//! Sub-interfaces: interfaces that share the device of another, and get some of its frames.

use std::rc::Rc;

use shoal_buffer::SwIfIndex;
use shoal_graph::NodeIndex;
use shoal_infra::{Zeroable, qsbr};

use super::{Device, Interface, Interfaces, Kept, Mtu};
use crate::{Event, IfData, InterfaceError, Match, OUTPUT_ARC, Sub};

/// What stands where other interfaces have a device: whatever is asked of it is the port's affair.
struct SubDevice {
    port: Rc<dyn Device>,
}

impl Device for SubDevice {
    fn class(&self) -> &'static str {
        self.port.class()
    }

    fn speed_kbps(&self) -> u32 {
        self.port.speed_kbps()
    }
}

impl Interfaces {
    /// Creates an interface, `<port>.<number>`, that shares the device of another: it sends by the port's nodes, and has
    /// the port's MAC address, link and MTU, now and later. It starts admin down. Who calls this leads frames to it.
    ///
    /// # Errors
    /// There is no such port, the name is taken, or there are too many interfaces; nothing is left behind then.
    pub fn create_sub(
        &self,
        port: SwIfIndex,
        number: u32,
        takes: Match,
    ) -> Result<SwIfIndex, InterfaceError> {
        let of_port = self.data(port)?;
        let (port_name, device) = self.device(port)?;
        let name = format!("{port_name}.{number}");
        if self.by_name(&name).is_some() {
            return Err(InterfaceError::Exists(name));
        }
        qsbr::admit().map_err(|why| InterfaceError::Table(why.to_string()))?;
        let free = self.names.borrow().free_index();
        let index = free.ok_or_else(|| InterfaceError::Table("full".into()))?;
        let plain_rx_next = self.graph.node("drop")?;
        self.counters.zero(index);
        let mut data = IfData::zeroed().with_tags(takes.tags()).following(&of_port, 0);
        data.hardware = port.0;
        self.store(index, data)?;
        self.graph.follow_features(OUTPUT_ARC, index, Some(port))?;
        let kept = Kept { made_as: name.clone(), follows: self.follows(port), ..Kept::default() };
        let interface = Interface {
            name,
            tag: String::new(),
            device: Rc::new(SubDevice { port: device }),
            output: None,
            tx: None,
            mtu: Mtu { l3: 0, ip4: 0, ip6: 0, mpls: 0 },
            queues: Vec::new(),
            plain_rx_next,
            kept,
            all_frames_needs: 0,
            sub: Some(Sub { port, number, takes }),
        };
        self.enter(index, interface);
        self.subs.borrow_mut().insert((port, number), index);
        self.set_down_feature(index, true)?;
        if self.subs_of(port).len() == 1 {
            self.choose_rx_next(port)?;
        }
        self.tell(Event::Created(index));
        Ok(index)
    }

    /// What a sub-interface takes, and of which port; `None` for other interfaces.
    pub fn sub(&self, index: SwIfIndex) -> Option<Sub> {
        self.all.borrow().get(&index)?.sub
    }

    /// Whether IP may run on an interface: a sub-interface must say exactly which tags its frames have.
    ///
    /// # Errors
    /// There is no such interface, or it is such a sub-interface.
    pub fn check_routable(&self, index: SwIfIndex) -> Result<(), InterfaceError> {
        let name = self.name(index)?;
        match self.sub(index) {
            Some(sub) if !sub.takes.is_exact() => Err(InterfaceError::NotExact(name)),
            _ => Ok(()),
        }
    }

    /// The sub-interfaces of a port, by number.
    pub fn subs_of(&self, port: SwIfIndex) -> Vec<SwIfIndex> {
        self.subs.borrow().range((port, 0)..=(port, u32::MAX)).map(|(_, index)| *index).collect()
    }

    /// The sub-interface of a port that has a number.
    pub fn sub_of(&self, port: SwIfIndex, number: u32) -> Option<SwIfIndex> {
        self.subs.borrow().get(&(port, number)).copied()
    }

    /// The interface whose device an interface shares; itself, unless it is a sub-interface.
    pub fn port_of(&self, index: SwIfIndex) -> SwIfIndex {
        self.sub(index).map_or(index, |sub| sub.port)
    }

    /// The interface's `-output` node, for edges of rewrite nodes; that of the port of a sub-interface.
    ///
    /// # Errors
    /// There is no such interface, or it sends nothing (`local0`).
    pub fn output_node_of(&self, index: SwIfIndex) -> Result<NodeIndex, InterfaceError> {
        let all = self.all.borrow();
        let of = |index: SwIfIndex| all.get(&index).ok_or(InterfaceError::NoIndex(index));
        let interface = of(index)?;
        let sends = interface.sub.map_or(Ok(interface), |sub| of(sub.port))?;
        sends
            .output
            .ok_or_else(|| InterfaceError::NotPossible(interface.name.clone(), "sends no packets".into()))
    }

    /// Gives the sub-interfaces of a port what they share with it.
    pub(super) fn lead_subs(&self, port: SwIfIndex, data: &IfData) -> Result<(), InterfaceError> {
        let subs = self.subs_of(port);
        if subs.is_empty() {
            return Ok(());
        }
        let all = self.all.borrow();
        let mut writer = self.writer.borrow_mut();
        let follow = |index: &SwIfIndex| {
            let (old, sub) = (writer.get(index.0 as usize)?, all.get(index)?);
            Some((index.0 as usize, old.following(data, sub.mtu.l3)))
        };
        let changed: Vec<_> = subs.iter().filter_map(follow).collect();
        writer.store_many(changed).map_err(|e| InterfaceError::Table(e.to_string()))
    }
}
