//! Sub-interfaces: interfaces that share the device of another, and get some of its frames.

use std::rc::Rc;

use shoal_buffer::SwIfIndex;
use shoal_infra::Zeroable;

use super::{Device, Interface, Interfaces, Kept, Mtu};
use crate::{Event, IfData, IfFlags, InterfaceError};

/// What stands where other interfaces have a device.
struct SubDevice;

impl Device for SubDevice {
    fn class(&self) -> &'static str {
        "802.1q"
    }
}

impl Interfaces {
    /// Creates an interface, `<port>.<number>`, that shares the device of another. It has the port's MAC address, MTU and
    /// link state, starts admin down, and has no nodes: what is to be sent by it is dropped. Who calls this keeps which
    /// frames are the interface's, deletes it with its port, and says how it is configured.
    ///
    /// # Errors
    /// There is no such port, the name is taken, or there are too many interfaces; nothing is left behind then.
    pub fn create_sub(&self, port: SwIfIndex, number: u32) -> Result<SwIfIndex, InterfaceError> {
        let of_port = self.data(port)?;
        let name = format!("{}.{number}", self.name(port)?);
        if self.by_name(&name).is_some() {
            return Err(InterfaceError::Exists(name));
        }
        let free = self.names.borrow().free_index();
        let index = free.ok_or_else(|| InterfaceError::Table("full".into()))?;
        let plain_rx_next = self.graph.node("drop")?;
        self.counters.zero(index);
        let shared = IfFlags::ETHERNET.set(IfFlags::LINK_UP, true).0;
        let mut data =
            IfData::zeroed().with_flags(IfFlags(of_port.flags().0 & shared)).with_mac(of_port.mac());
        (data.mtu, data.hardware) = (of_port.mtu, port.0);
        self.store(index, data)?;
        let kept = Kept { made_as: name.clone(), usual_mtu: data.mtu, follows: true, ..Kept::default() };
        let interface = Interface {
            name,
            tag: String::new(),
            device: Rc::new(SubDevice),
            output: None,
            tx: None,
            mtu: Mtu { l3: data.mtu, ip4: 0, ip6: 0, mpls: 0 },
            queues: Vec::new(),
            plain_rx_next,
            kept,
            all_frames_needs: 0,
        };
        self.enter(index, interface);
        self.tell(Event::Created(index));
        Ok(index)
    }
}
