//! Changing an interface: state, MTU, MAC, name, superpath.

use std::sync::atomic::Ordering;

use shoal_buffer::SwIfIndex;
use shoal_graph::{GraphError, PacketNode};
use shoal_wire::MacAddress;

use super::{Device, Interfaces, MAX_MTU, Mtu, TAGS};
use crate::node::down::DOWN;
use crate::node::stats_collect::{StatsCollectRx, StatsCollectTx};
use crate::{DEVICE_INPUT_ARC, Event, IfFlags, InterfaceError, OUTPUT_ARC};

/// Which MTU of an interface to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MtuLayer {
    /// Of everything above Ethernet.
    L3,
    /// Of IPv4.
    Ip4,
    /// Of IPv6.
    Ip6,
    /// Of MPLS.
    Mpls,
}

/// Something begins or ceases to need a thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// From now on.
    Begins,
    /// No longer.
    Ends,
}

/// What becomes of the frames an interface receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// They are switched: bridged, for example.
    Two,
    /// They go out of another interface.
    Crossed,
    /// They are those of a bridge domain that are routed here.
    Bvi,
    /// They are routed.
    Three,
}

fn check_mtu(name: &str, zero_fits: bool, value: u32) -> Result<(), InterfaceError> {
    if zero_fits && value == 0 || (64..=MAX_MTU).contains(&value) {
        return Ok(());
    }
    let interface = name.to_owned();
    Err(InterfaceError::Range { what: "MTU", interface, value, least: 64, most: MAX_MTU })
}

impl Interfaces {
    pub(crate) fn device(
        &self,
        index: SwIfIndex,
    ) -> Result<(String, std::rc::Rc<dyn Device>), InterfaceError> {
        let all = self.all.borrow();
        let interface = all.get(&index).ok_or(InterfaceError::NoIndex(index))?;
        Ok((interface.name.clone(), std::rc::Rc::clone(&interface.device)))
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// There is none, or its device cannot; nothing is changed then.
    pub fn set_admin(&self, index: SwIfIndex, up: bool) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        if self.data(index)?.flags().has(IfFlags::ADMIN_UP) == up {
            return Ok(());
        }
        if let Some(sub) = self.sub(index)
            && up
            && !self.data(sub.port)?.is_up()
        {
            return Err(InterfaceError::PortDown(self.name(sub.port)?));
        }
        device.set_admin(up).map_err(|e| InterfaceError::NotPossible(name.clone(), e))?;
        self.modify(index, |d| d.with_flags(d.flags().set(IfFlags::ADMIN_UP, up)))?;
        self.set_down_feature(index, !up)?;
        self.graph.events().write(0, format!("{name} admin {}", if up { "up" } else { "down" }));
        self.tell(Event::Admin(index, up));
        self.tell_subs_of_link(index)
    }

    /// What an interface that is down is to send is dropped, and what its sub-interfaces are to.
    pub(super) fn set_down_feature(&self, index: SwIfIndex, down: bool) -> Result<(), InterfaceError> {
        Ok(self.graph.enable_feature(OUTPUT_ARC, DOWN, index, down)?)
    }

    /// The link of sub-interfaces is that of their port while that is up.
    fn tell_subs_of_link(&self, port: SwIfIndex) -> Result<(), InterfaceError> {
        for sub in self.subs_of(port) {
            let up = self.data(sub)?.flags().has(IfFlags::LINK_UP);
            self.tell(Event::Link(sub, up));
        }
        Ok(())
    }

    /// A device says whether the other end is there.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_link(&self, index: SwIfIndex, up: bool) -> Result<(), InterfaceError> {
        if self.data(index)?.flags().has(IfFlags::LINK_UP) == up {
            return Ok(());
        }
        self.modify(index, |d| d.with_flags(d.flags().set(IfFlags::LINK_UP, up)))?;
        let name = self.name(index)?;
        self.graph.events().write(0, format!("{name} link {}", if up { "up" } else { "down" }));
        self.tell(Event::Link(index, up));
        self.tell_subs_of_link(index)
    }

    /// Sets an MTU; 0 for a protocol means that of the layer below.
    ///
    /// # Errors
    /// There is no such interface, the value is out of range, or its device cannot.
    pub fn set_mtu(&self, index: SwIfIndex, layer: MtuLayer, value: u32) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        // A sub-interface without an MTU of its own has its port's.
        check_mtu(&name, layer != MtuLayer::L3 || self.sub(index).is_some(), value)?;
        if layer == MtuLayer::L3 {
            device.set_mtu(value).map_err(|e| InterfaceError::NotPossible(name, e))?;
        }
        self.change_mtu(index, |mtu| {
            let Mtu { l3, ip4, ip6, mpls } = mtu;
            let slot = match layer {
                MtuLayer::L3 => l3,
                MtuLayer::Ip4 => ip4,
                MtuLayer::Ip6 => ip6,
                MtuLayer::Mpls => mpls,
            };
            *slot = value as u16;
        })?;
        if layer == MtuLayer::L3 {
            self.keep_mtu(index, value as u16);
        }
        Ok(())
    }

    /// Sets the MTUs of all packets, of IPv4, IPv6 and MPLS, or none of them. 0 leaves the first as it is, and lets it
    /// hold for the others.
    ///
    /// # Errors
    /// As [`Self::set_mtu`].
    pub fn set_mtus(&self, index: SwIfIndex, values: [u32; 4]) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        let ([all, ip4, ip6, mpls], is_sub) = (values, self.sub(index).is_some());
        // 0 is a good value of all layers but the first.
        let first = if all == 0 { MtuLayer::Ip4 } else { MtuLayer::L3 };
        for (layer, value) in
            [(first, all), (MtuLayer::Ip4, ip4), (MtuLayer::Ip6, ip6), (MtuLayer::Mpls, mpls)]
        {
            check_mtu(&name, layer != MtuLayer::L3, value)?;
        }
        if all != 0 {
            device.set_mtu(all).map_err(|e| InterfaceError::NotPossible(name, e))?;
        }
        self.change_mtu(index, |mtu| {
            // That of a sub-interface is its port's again.
            let l3 = if all == 0 && !is_sub { mtu.l3 } else { all as u16 };
            *mtu = Mtu { l3, ip4: ip4 as u16, ip6: ip6 as u16, mpls: mpls as u16 };
        })?;
        if all != 0 || is_sub {
            self.keep_mtu(index, all as u16);
        }
        Ok(())
    }

    fn change_mtu(&self, index: SwIfIndex, change: impl FnOnce(&mut Mtu)) -> Result<(), InterfaceError> {
        let mtu = {
            let mut all = self.all.borrow_mut();
            let interface = all.get_mut(&index).ok_or(InterfaceError::NoIndex(index))?;
            change(&mut interface.mtu);
            interface.mtu
        };
        let ports = self.data(self.port_of(index))?.mtu;
        self.modify(index, |mut d| {
            (d.mtu, d.mtu_ip4, d.mtu_ip6) = (if mtu.l3 == 0 { ports } else { mtu.l3 }, mtu.ip4, mtu.ip6);
            d
        })?;
        self.tell(Event::Mtu(index));
        self.subs_of(index).into_iter().for_each(|sub| self.tell(Event::Mtu(sub)));
        Ok(())
    }

    /// Sets the MAC address. That of a sub-interface is its port's, so that all change.
    ///
    /// # Errors
    /// There is no such interface, the address is a group's, or its device cannot.
    pub fn set_mac(&self, index: SwIfIndex, mac: MacAddress) -> Result<(), InterfaceError> {
        let index = self.port_of(index);
        let (name, device) = self.device(index)?;
        // `local0' has none at first, and may have none again.
        if mac.is_multicast() || mac.is_zero() && index != SwIfIndex(0) {
            let why = format!("{mac} is not the address of one station");
            return Err(InterfaceError::NotPossible(name, why));
        }
        device.set_mac(mac).map_err(|e| InterfaceError::NotPossible(name, e))?;
        self.modify(index, |d| d.with_mac(mac))?;
        self.tell(Event::Mac(index));
        self.subs_of(index).into_iter().for_each(|sub| self.tell(Event::Mac(sub)));
        Ok(())
    }

    /// Accepts frames for all MAC addresses, or only its own.
    ///
    /// # Errors
    /// There is no such interface, or its device cannot.
    pub fn set_promiscuous(&self, index: SwIfIndex, on: bool) -> Result<(), InterfaceError> {
        let index = self.port_of(index);
        if self.all_frames_needs(index)? == 0 {
            self.take_all_frames(index, on)?;
        }
        self.modify(index, |d| d.with_flags(d.flags().set(IfFlags::PROMISCUOUS, on)))
    }

    /// Something needs frames for other MAC addresses from an interface, or no longer: layer 2, a sub-interface with an
    /// address of its own. The device takes them in while anything does, or the operator says so.
    ///
    /// # Errors
    /// There is no such interface, or its device cannot; nothing is changed then.
    pub fn need_all_frames(&self, index: SwIfIndex, need: Need) -> Result<(), InterfaceError> {
        let before = self.all_frames_needs(index)?;
        let now = match need {
            Need::Begins => before + 1,
            Need::Ends => before.saturating_sub(1),
        };
        let said = self.data(index)?.flags().has(IfFlags::PROMISCUOUS);
        if !said && (before == 0) != (now == 0) {
            self.take_all_frames(index, now > 0)?;
        }
        if let Some(interface) = self.all.borrow_mut().get_mut(&index) {
            interface.all_frames_needs = now;
        }
        Ok(())
    }

    fn all_frames_needs(&self, index: SwIfIndex) -> Result<usize, InterfaceError> {
        self.all.borrow().get(&index).map(|i| i.all_frames_needs).ok_or(InterfaceError::NoIndex(index))
    }

    fn take_all_frames(&self, index: SwIfIndex, on: bool) -> Result<(), InterfaceError> {
        let (name, device) = self.device(index)?;
        device.set_promiscuous(on).map_err(|e| InterfaceError::NotPossible(name, e))
    }

    /// Puts an interface into layer 2 or takes it back: what it receives is bridged or cross-connected, or routed.
    ///
    /// # Errors
    /// There is no such interface, it has no Ethernet header, or its device cannot take frames for others; nothing is
    /// changed then.
    pub fn set_layer(&self, index: SwIfIndex, layer: Layer) -> Result<(), InterfaceError> {
        let data = self.data(index)?;
        let on = layer != Layer::Three;
        let (crossed, bvi) = (layer == Layer::Crossed, layer == Layer::Bvi);
        let flags = data.flags().set(IfFlags::L2, on).set(IfFlags::XCONNECT, crossed).set(IfFlags::BVI, bvi);
        let flags = flags.set(IfFlags::BRIDGED, layer == Layer::Two);
        if flags == data.flags() {
            return Ok(());
        }
        if !data.flags().has(IfFlags::ETHERNET) {
            return Err(InterfaceError::NotPossible(self.name(index)?, "has no Ethernet header".into()));
        }
        if data.flags().has(IfFlags::L2) != on {
            let port = SwIfIndex(data.hardware);
            self.need_all_frames(port, if on { Need::Begins } else { Need::Ends })?;
        }
        self.modify(index, |d| d.with_flags(flags))?;
        self.choose_rx_next(index)
    }

    /// Sets the operator's tag.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_tag(&self, index: SwIfIndex, tag: &str) -> Result<(), InterfaceError> {
        let mut all = self.all.borrow_mut();
        let interface = all.get_mut(&index).ok_or(InterfaceError::NoIndex(index))?;
        tag.clone_into(&mut interface.tag);
        self.graph.counters().names(TAGS).set(index.0 as usize, tag);
        Ok(())
    }

    /// Gives an interface another name, and its nodes those that go with it.
    ///
    /// # Errors
    /// There is no such interface, or the name is taken, of a node too, or has blanks.
    pub fn rename(&self, index: SwIfIndex, name: &str) -> Result<(), InterfaceError> {
        if self.by_name(name).is_some() {
            return Err(InterfaceError::Exists(name.to_owned()));
        }
        let old = self.name(index)?;
        if name.is_empty() || name.len() > 63 || name.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            return Err(InterfaceError::NotPossible(
                old,
                "a name has 1 to 63 characters and no blanks".into(),
            ));
        }
        self.rename_nodes(index, name)?;
        self.rename_one(index, &old, name);
        // Those that are called by their number on it are so now.
        for sub in self.subs_of(index) {
            let Some(number) = self.sub(sub).map(|sub| sub.number) else { continue };
            let (was, is) = (format!("{old}.{number}"), format!("{name}.{number}"));
            if self.name(sub).is_ok_and(|name| name == was) && self.by_name(&is).is_none() {
                self.rename_one(sub, &was, &is);
            }
        }
        Ok(())
    }

    fn rename_one(&self, index: SwIfIndex, old: &str, name: &str) {
        if let Some(interface) = self.all.borrow_mut().get_mut(&index) {
            name.clone_into(&mut interface.name);
            interface.queues.iter().for_each(|(_, queue)| self.graph.rename_queue(*queue, name));
        }
        {
            let mut names = self.names.borrow_mut();
            names.forget(old);
            names.insert(name, index);
        }
        self.graph.counters().remove_prefix(&format!("/interfaces/{}/", old.replace('/', "_")));
        self.publish_names(index, name);
        self.tell(Event::Name(index));
    }

    /// The nodes of an interface are called after it. Sub-interfaces have none.
    fn rename_nodes(&self, index: SwIfIndex, new: &str) -> Result<(), GraphError> {
        let nodes =
            self.all.borrow().get(&index).map_or([None; 2], |interface| [interface.tx, interface.output]);
        let named = || nodes.into_iter().zip(["tx", "output"]).filter_map(|(node, what)| Some((node?, what)));
        let taken =
            named().map(|(_, what)| format!("{new}-{what}")).find(|name| self.graph.node(name).is_ok());
        if let Some(taken) = taken {
            return Err(GraphError::Exists(taken));
        }
        self.graph
            .batch(|| named().try_for_each(|(node, what)| self.graph.rename(node, &format!("{new}-{what}"))))
    }

    /// Gives an interface whose name ends with a number another number.
    ///
    /// # Errors
    /// There is no such interface, its name has no number, it is `local0`, or the name is taken.
    pub fn renumber(&self, index: SwIfIndex, number: u32) -> Result<(), InterfaceError> {
        let name = self.name(index)?;
        let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if index == SwIfIndex(0) || kind == name || kind.is_empty() {
            return Err(InterfaceError::NotPossible(name, "has no number that could be changed".into()));
        }
        self.rename(index, &format!("{kind}{number}"))
    }

    /// Enables or disables a feature of an arc on an interface.
    ///
    /// # Errors
    /// There is no such interface, arc or feature.
    pub fn enable_feature(
        &self,
        arc: &str,
        feature: &str,
        index: SwIfIndex,
        on: bool,
    ) -> Result<(), InterfaceError> {
        self.data(index)?;
        self.graph.enable_feature(arc, feature, index, on)?;
        if arc == DEVICE_INPUT_ARC { self.choose_rx_next(index) } else { Ok(()) }
    }

    /// Counts packets by kind of destination, or no longer.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn collect_detailed(&self, index: SwIfIndex, on: bool) -> Result<(), InterfaceError> {
        self.enable_feature(DEVICE_INPUT_ARC, StatsCollectRx::NAME, index, on)?;
        self.enable_feature(OUTPUT_ARC, StatsCollectTx::NAME, index, on)
    }

    /// Chooses where an interface's frames go: to the features they run through first, if there are any; else, and
    /// after those, to the superpath that suits it best.
    pub(crate) fn choose_rx_next(&self, index: SwIfIndex) -> Result<(), InterfaceError> {
        let Some(plain) = self.all.borrow().get(&index).map(|i| i.plain_rx_next) else { return Ok(()) };
        let superpath = self.superpath_for(index)?;
        let sorted = self.sorts_tags(index);
        let fast = sorted.or(superpath).unwrap_or(plain);
        let featured = self.graph.arc(DEVICE_INPUT_ARC)?.any(index);
        // A superpath sends frames with traced packets the ordinary way by itself.
        let end = self.graph.add_edge(self.device_input_end, fast)?;
        self.modify(index, |mut d| {
            d.device_input_end_edge = end.0;
            d = d.with_superpath(superpath);
            if featured {
                d.with_rx_next(self.device_input, self.device_input)
            } else {
                d.with_rx_next(fast, plain)
            }
        })?;
        self.lead_queues(index)
    }

    /// IPv4 runs on an interface, or does so no more; and in which table packets received there are looked up.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_ip4(&self, index: SwIfIndex, enabled: bool, fib: u32) -> Result<(), InterfaceError> {
        self.modify(index, |mut d| {
            d.fib_ip4 = fib;
            d.with_flags(d.flags().set(IfFlags::IP4, enabled))
        })?;
        if let Some(table) = self.table.ip4_tables.get(index.0 as usize) {
            table.store(fib, Ordering::Relaxed);
        }
        self.tell(Event::Ip4(index, enabled));
        self.choose_rx_next(index)
    }

    /// The same of IPv6.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_ip6(&self, index: SwIfIndex, enabled: bool, fib: u32) -> Result<(), InterfaceError> {
        self.modify(index, |mut d| {
            d.fib_ip6 = fib;
            d.with_flags(d.flags().set(IfFlags::IP6, enabled))
        })?;
        if let Some(table) = self.table.ip6_tables.get(index.0 as usize) {
            table.store(fib, Ordering::Relaxed);
        }
        self.tell(Event::Ip6(index, enabled));
        self.choose_rx_next(index)
    }
}
