//! `want_interface_events`: the clients that want to know when interfaces go up and down or away.

use std::rc::Rc;

use shoal_message::{IfStatusFlags, InterfaceIndex, Message, Retval};
use shoal_module::Control;
use shoal_module::api::{Call, Request, Subscribers};

use crate::{Event, IfFlags, Interfaces};

/// The clients that want events, on the shelf.
#[derive(Default)]
struct Watchers(Subscribers);

/// Tells those who want to know from now on.
pub(crate) fn watch(control: &Rc<Control>, interfaces: &Interfaces) {
    let watchers = control.put(Watchers::default());
    interfaces.subscribe(move |control, event| {
        let deleted = matches!(event, Event::Deleted(_));
        if watchers.0.is_empty() || !(deleted || matches!(event, Event::Admin(..) | Event::Link(..))) {
            return;
        }
        let (index, interfaces) = (event.interface(), control.get::<Interfaces>().ok());
        // As in VPP: the link is the port's, whose event tells of it.
        if matches!(event, Event::Link(..)) && interfaces.as_ref().is_some_and(|i| i.sub(index).is_some()) {
            return;
        }
        let data = interfaces.and_then(|i| i.data(index).ok());
        let flags = data.map(|d| d.flags()).unwrap_or_default();
        let bit = |flag: IfFlags, bit: u32| if flags.has(flag) { bit } else { 0 };
        let flags =
            bit(IfFlags::ADMIN_UP, IfStatusFlags::ADMIN_UP) | bit(IfFlags::LINK_UP, IfStatusFlags::LINK_UP);
        let event =
            SwInterfaceEvent { sw_if_index: InterfaceIndex(index.0), flags: IfStatusFlags(flags), deleted };
        watchers.0.publish(control, |()| true, &event);
    });
}

/// An interface went up, down or away.
#[derive(Message)]
#[message(event)]
pub struct SwInterfaceEvent {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Whether it is admin up, and whether there is a link, now.
    pub flags: IfStatusFlags,
    /// Whether it is gone.
    pub deleted: bool,
}

/// Asks to be told when interfaces go up, down or away, or no longer.
#[derive(Message)]
#[message(request, events = SwInterfaceEvent)]
pub struct WantInterfaceEvents {
    /// 0: no longer.
    pub enable_disable: u32,
    /// A number of the client's that comes back in each event.
    pub pid: u32,
}

impl Request for WantInterfaceEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let watchers = call.get::<Watchers>().map_err(|_| Retval::UNSPECIFIED)?;
        watchers.0.set(call, self.pid, (), self.enable_disable != 0)
    }
}
