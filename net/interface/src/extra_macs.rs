//! MAC addresses that ports take frames for besides their own: those of virtual routers, and those that clients give.

use std::collections::HashMap;
use std::sync::Arc;

use shoal_infra::{Guard, Published};
use shoal_wire::MacAddress;

use crate::{Event, IfFlags, InterfaceError, Interfaces, Need, SwIfIndex};

/// As packets see them: users of each port and address.
#[derive(Clone)]
pub(crate) struct ExtraMacs(Arc<Published<HashMap<(SwIfIndex, MacAddress), u32>>>);

impl ExtraMacs {
    pub(crate) fn new() -> Self {
        ExtraMacs(Arc::new(Published::new(HashMap::new())))
    }

    /// Whether a port takes frames for an address.
    pub(crate) fn has(&self, port: SwIfIndex, mac: MacAddress, guard: Guard<'_>) -> bool {
        self.0.load(guard).contains_key(&(port, mac))
    }
}

impl Interfaces {
    fn extra_macs(&self) -> ExtraMacs {
        self.table().extra_macs
    }

    /// Has the port of an interface take frames for another MAC address besides its own. Those who ask for the same one are counted.
    ///
    /// # Errors
    /// There is no such interface, the address is a group's, or the device cannot take frames for others.
    pub fn add_mac(&self, index: SwIfIndex, mac: MacAddress) -> Result<(), InterfaceError> {
        let port = self.port_of(index);
        let name = self.name(port)?;
        if mac.is_multicast() || mac.is_zero() {
            let why = format!("{mac} is not the address of one station");
            return Err(InterfaceError::NotPossible(name, why));
        }
        let mut all = HashMap::clone(&self.extra_macs().0.get());
        let is_first = !all.keys().any(|(of, _)| *of == port);
        if is_first {
            self.need_all_frames(port, Need::Begins)?;
        }
        let users = all.entry((port, mac)).or_default();
        *users += 1;
        let is_new = *users == 1;
        self.extra_macs().0.replace(all);
        if is_new {
            self.renew_macs(port)?;
        }
        Ok(())
    }

    /// Undoes one [`add_mac`](Self::add_mac).
    ///
    /// # Errors
    /// There is no such interface, or it does not take frames for the address.
    pub fn del_mac(&self, index: SwIfIndex, mac: MacAddress) -> Result<(), InterfaceError> {
        let port = self.port_of(index);
        let name = self.name(port)?;
        let mut all = HashMap::clone(&self.extra_macs().0.get());
        let Some(users) = all.get_mut(&(port, mac)) else {
            return Err(InterfaceError::NoMac(mac, name));
        };
        *users -= 1;
        let has_gone = *users == 0;
        if has_gone {
            all.remove(&(port, mac));
        }
        let is_last = !all.keys().any(|(of, _)| *of == port);
        self.extra_macs().0.replace(all);
        if has_gone {
            self.renew_macs(port)?;
        }
        if is_last { self.need_all_frames(port, Need::Ends) } else { Ok(()) }
    }

    /// What packets read of a port's addresses.
    fn renew_macs(&self, port: SwIfIndex) -> Result<(), InterfaceError> {
        let macs = self.macs(port);
        let number = |family: u8| {
            let id = |mac: &MacAddress| match mac.0 {
                [0, 0, 0x5e, 0, of, id] if of == family => Some(id),
                _ => None,
            };
            macs.iter().find_map(id).unwrap_or(0)
        };
        let numbers = [number(1), number(2)];
        self.modify(port, |data| {
            let flags = data.flags().set(IfFlags::EXTRA_MACS, !macs.is_empty());
            data.with_flags(flags).with_virtual_routers(numbers)
        })?;
        self.tell(Event::ExtraMacs(port));
        Ok(())
    }

    /// MAC addresses that the port of an interface takes frames for besides its own.
    pub fn macs(&self, index: SwIfIndex) -> Vec<MacAddress> {
        let port = self.port_of(index);
        let all = self.extra_macs().0.get();
        let mut macs: Vec<MacAddress> =
            all.keys().filter(|(of, _)| *of == port).map(|(_, mac)| *mac).collect();
        macs.sort_unstable();
        macs
    }

    /// The port goes.
    pub(crate) fn forget_macs(&self, port: SwIfIndex) {
        let mut all = HashMap::clone(&self.extra_macs().0.get());
        let before = all.len();
        all.retain(|(of, _), _| *of != port);
        if all.len() != before {
            self.extra_macs().0.replace(all);
        }
    }
}
