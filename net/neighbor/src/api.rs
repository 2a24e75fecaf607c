//! Messages: `ip_neighbor.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use shoal_adj::Family;
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_message::{AddressFamily, InterfaceIndex, MacAddress, Message, Retval, Value};
use shoal_module::Control;
use shoal_module::api::{ApiMessage, ApiPart, Call, ClientIndex, Dump, Folder, Request, Subscribers};

use crate::table::{FibEntry, Neighbour, Origin, WhenFull};
use crate::{AnyNeighbours, Change, Changes, Event, Families, Flush, Info, NeighbourError, NewLimits};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "ip_neighbor",
    folder: Folder::Core,
    version: "1.0.1",
    messages: &[
        ApiMessage::request::<IpNeighborAddDel>(),
        ApiMessage::sent::<IpNeighborAddDelReply>(),
        ApiMessage::dump::<IpNeighborDump>(),
        ApiMessage::sent::<IpNeighborDetails>(),
        ApiMessage::request::<IpNeighborConfig>(),
        ApiMessage::request::<IpNeighborConfigGet>(),
        ApiMessage::sent::<IpNeighborConfigGetReply>(),
        ApiMessage::request::<IpNeighborReplaceBegin>(),
        ApiMessage::request::<IpNeighborReplaceEnd>(),
        ApiMessage::request::<IpNeighborFlush>(),
        ApiMessage::request::<WantIpNeighborEvents>(),
        ApiMessage::sent::<IpNeighborEvent>(),
        ApiMessage::request::<WantIpNeighborEventsV2>(),
        ApiMessage::sent::<IpNeighborEventV2>(),
    ],
};

/// Flags of a neighbour besides its addresses: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("IP_API_NEIGHBOR_FLAG_NONE", 0)]
#[entry("IP_API_NEIGHBOR_FLAG_STATIC", 1)]
#[entry("IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY", 2)]
pub struct IpNeighborFlags(pub u8);

impl IpNeighborFlags {
    /// The network does not change it.
    pub const STATIC: u8 = 1;
    /// It has no host route.
    pub const NO_FIB_ENTRY: u8 = 2;

    fn origin(self) -> Origin {
        if self.0 & Self::STATIC == 0 { Origin::Dynamic } else { Origin::Static }
    }

    fn fib_entry(self) -> FibEntry {
        if self.0 & Self::NO_FIB_ENTRY == 0 { FibEntry::Wanted } else { FibEntry::Unwanted }
    }
}

/// A neighbour: which station has an address on a link.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct IpNeighbor {
    /// The link.
    pub sw_if_index: InterfaceIndex,
    /// Whether it is static, and has no host route.
    pub flags: IpNeighborFlags,
    /// The station.
    pub mac_address: MacAddress,
    /// The address.
    pub ip_address: IpAddr,
}

impl IpNeighbor {
    fn new(interface: SwIfIndex, address: IpAddr, known: &Neighbour) -> Self {
        let mut flags = 0;
        if known.origin == Origin::Static {
            flags |= IpNeighborFlags::STATIC;
        }
        if known.fib_entry == FibEntry::Unwanted {
            flags |= IpNeighborFlags::NO_FIB_ENTRY;
        }
        IpNeighbor {
            sw_if_index: InterfaceIndex(interface.0),
            flags: IpNeighborFlags(flags),
            mac_address: MacAddress(known.mac.0),
            ip_address: address,
        }
    }
}

impl From<NeighbourError> for Retval {
    fn from(error: NeighbourError) -> Self {
        match error {
            NeighbourError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            NeighbourError::Full(..) | NeighbourError::Backlog(_) => Retval::LIMIT_EXCEEDED,
            NeighbourError::Static(..) => Retval::ENTRY_ALREADY_EXISTS,
            NeighbourError::NoNeighbour(..) => Retval::NO_SUCH_ENTRY,
            NeighbourError::NoProtocol(_) => Retval::INVALID_ADDRESS_FAMILY,
            NeighbourError::NoHost(_) | NeighbourError::NoStation(_) | NeighbourError::TooMany { .. } => {
                Retval::INVALID_VALUE
            }
            NeighbourError::NotEthernet(_) => Retval::NON_ETHERNET,
            NeighbourError::Adj(_) | NeighbourError::Fib(_) | NeighbourError::Graph(_) => Retval::UNSPECIFIED,
        }
    }
}

fn family(of: AddressFamily) -> Family {
    match of {
        AddressFamily::Ip4 => Family::Ip4,
        AddressFamily::Ip6 => Family::Ip6,
    }
}

/// One interface that is there, or all.
fn one_or_all(call: &Call, which: InterfaceIndex) -> Result<Option<SwIfIndex>, Retval> {
    if which == InterfaceIndex::NONE {
        return Ok(None);
    }
    let interfaces = call.get::<Interfaces>().map_err(|_| Retval::UNSPECIFIED)?;
    let interface = SwIfIndex(which.0);
    interfaces.data(interface).map_err(|_| Retval::INVALID_SW_IF_INDEX)?;
    Ok(Some(interface))
}

/// Enters a neighbour, or forgets one.
#[derive(Message)]
#[message(request, reply = IpNeighborAddDelReply)]
pub struct IpNeighborAddDel {
    /// Whether it is entered.
    pub is_add: bool,
    /// The neighbour; only its link and address matter where it is forgotten.
    pub neighbor: IpNeighbor,
}

/// The number under which its packets are counted.
#[derive(Message)]
#[message(reply)]
pub struct IpNeighborAddDelReply {
    pub retval: i32,
    /// The number of its adjacency; all bits set for one that was forgotten.
    pub stats_index: u32,
}

impl Request for IpNeighborAddDel {
    fn handle(self, call: &Call) -> Result<IpNeighborAddDelReply, Retval> {
        let IpNeighbor { sw_if_index, flags, mac_address, ip_address } = self.neighbor;
        let key = (SwIfIndex(sw_if_index.0), ip_address);
        let neighbours = Families::of(&call.control).get(Family::of(ip_address))?;
        if self.is_add {
            let mac = shoal_wire::MacAddress(mac_address.0);
            neighbours.set_many(key, mac, 1, flags.origin(), flags.fib_entry())?;
        } else {
            neighbours.remove_many(key, 1)?;
        }
        let stats_index = neighbours.adjacency(key).map_or(u32::MAX, |adj| adj.0);
        Ok(IpNeighborAddDelReply { retval: 0, stats_index })
    }
}

/// Asks for the neighbours of a family, on one link or all.
#[derive(Message)]
#[message(request, details = IpNeighborDetails)]
pub struct IpNeighborDump {
    /// The link; all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
    /// The family.
    pub af: AddressFamily,
}

/// A neighbour.
#[derive(Message)]
#[message(reply)]
pub struct IpNeighborDetails {
    /// Seconds since it was last confirmed.
    pub age: f64,
    pub neighbor: IpNeighbor,
}

impl Dump for IpNeighborDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpNeighborDetails> + 'static {
        let all = Families::of(&call.control).get(family(self.af)).ok();
        let only = (self.sw_if_index != InterfaceIndex::NONE).then_some(SwIfIndex(self.sw_if_index.0));
        let details = |info: Info<IpAddr>| IpNeighborDetails {
            age: info.age.as_secs_f64(),
            neighbor: IpNeighbor::new(info.interface, info.address, &info.neighbour),
        };
        all.into_iter().flat_map(move |all| Walk::new(all, self.af, only)).map(details)
    }
}

/// A table, some entries at a time: it may be large, and change in between.
pub(crate) struct Walk {
    all: Rc<dyn AnyNeighbours>,
    only: Option<SwIfIndex>,
    after: Option<(SwIfIndex, IpAddr)>,
    some: std::vec::IntoIter<Info<IpAddr>>,
}

impl Walk {
    pub(crate) fn new(all: Rc<dyn AnyNeighbours>, af: AddressFamily, only: Option<SwIfIndex>) -> Self {
        // No neighbour has the first address of a family, so the walk of one link may begin behind it.
        let first = match af {
            AddressFamily::Ip4 => IpAddr::from([0; 4]),
            AddressFamily::Ip6 => IpAddr::from([0; 16]),
        };
        Walk { all, only, after: only.map(|interface| (interface, first)), some: Vec::new().into_iter() }
    }
}

impl Iterator for Walk {
    type Item = Info<IpAddr>;

    fn next(&mut self) -> Option<Info<IpAddr>> {
        /// So many at a time.
        const SOME: usize = 64;
        let next = if let Some(next) = self.some.next() {
            next
        } else {
            self.some = self.all.list_after(self.after, SOME).into_iter();
            self.some.next()?
        };
        self.after = Some((next.interface, next.address));
        Some(next).filter(|next| self.only.is_none_or(|only| only == next.interface))
    }
}

/// Sets how many neighbours of a family are kept, and how long.
#[derive(Message)]
#[message(request)]
pub struct IpNeighborConfig {
    pub af: AddressFamily,
    /// Most of them; 0 for no limit.
    pub max_number: u32,
    /// Seconds after which one that is not confirmed is asked for; 0 for never.
    pub max_age: u32,
    /// Whether an old one makes room for a new one.
    pub recycle: bool,
}

impl Request for IpNeighborConfig {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Families::of(&call.control).get(family(self.af))?.set_limits(NewLimits {
            entries: Some(self.max_number as usize),
            interface_entries: None,
            age: Some(Duration::from_secs(self.max_age.into())),
            when_full: Some(if self.recycle { WhenFull::Recycle } else { WhenFull::Refuse }),
        });
        Ok(())
    }
}

/// Asks how many neighbours of a family are kept, and how long.
#[derive(Message)]
#[message(request, reply = IpNeighborConfigGetReply)]
pub struct IpNeighborConfigGet {
    pub af: AddressFamily,
}

/// How many neighbours of a family are kept, and how long.
#[derive(Message)]
#[message(reply)]
pub struct IpNeighborConfigGetReply {
    pub retval: i32,
    pub af: AddressFamily,
    /// Most of them; 0 for no limit.
    pub max_number: u32,
    /// Seconds after which one that is not confirmed is asked for; 0 for never.
    pub max_age: u32,
    /// Whether an old one makes room for a new one.
    pub recycle: bool,
}

impl Request for IpNeighborConfigGet {
    fn handle(self, call: &Call) -> Result<IpNeighborConfigGetReply, Retval> {
        let limits = Families::of(&call.control).get(family(self.af))?.limits();
        Ok(IpNeighborConfigGetReply {
            retval: 0,
            af: self.af,
            max_number: u32::try_from(limits.entries).unwrap_or(u32::MAX),
            max_age: u32::try_from(limits.age.as_secs()).unwrap_or(u32::MAX),
            recycle: limits.when_full == WhenFull::Recycle,
        })
    }
}

/// Marks all neighbours of both families: those that are not entered again go when the replacement ends.
#[derive(Message)]
#[message(request)]
pub struct IpNeighborReplaceBegin {}

impl Request for IpNeighborReplaceBegin {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Families::of(&call.control).all().iter().for_each(|(_, all)| all.begin_replacement());
        Ok(())
    }
}

/// Forgets the neighbours that are still marked.
#[derive(Message)]
#[message(request)]
pub struct IpNeighborReplaceEnd {}

impl Request for IpNeighborReplaceEnd {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Families::of(&call.control).all().iter().for_each(|(_, all)| all.end_replacement());
        Ok(())
    }
}

/// Forgets the neighbours of a family, on one link or all, static ones too.
#[derive(Message)]
#[message(request)]
pub struct IpNeighborFlush {
    pub af: AddressFamily,
    /// The link; all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
}

impl Request for IpNeighborFlush {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let only = one_or_all(call, self.sw_if_index)?;
        Families::of(&call.control).get(family(self.af))?.flush(only, Flush::All);
        Ok(())
    }
}

/// Which neighbours a client wants to know of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NeighbourFilter {
    interface: Option<SwIfIndex>,
    address: Option<IpAddr>,
}

impl NeighbourFilter {
    fn new(call: &Call, interface: InterfaceIndex, address: IpAddr) -> Result<Self, Retval> {
        let address = (!address.is_unspecified()).then_some(address);
        Ok(NeighbourFilter { interface: one_or_all(call, interface)?, address })
    }

    fn has(self, change: &Change) -> bool {
        self.interface.is_none_or(|only| only == change.interface)
            && self.address.is_none_or(|only| only == change.address)
    }
}

/// Clients that want events of neighbours, by event.
#[derive(Default)]
struct Watchers {
    v1: Subscribers<NeighbourFilter>,
    v2: Subscribers<NeighbourFilter>,
}

/// What a client wants to know of, for display.
pub(crate) struct Watched {
    pub(crate) interface: Option<SwIfIndex>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) pid: u32,
    pub(crate) client: u32,
}

/// What all clients want to know of.
pub(crate) fn watched(control: &Control) -> Vec<Watched> {
    let Ok(watchers) = control.get::<Watchers>() else { return Vec::new() };
    let row = |(client, pid, which): (ClientIndex, u32, NeighbourFilter)| Watched {
        interface: which.interface,
        address: which.address,
        pid,
        client: client.0,
    };
    watchers.v1.list().into_iter().chain(watchers.v2.list()).map(row).collect()
}

/// Tells clients from now on.
pub(crate) fn follow(control: &Rc<Control>) {
    let watchers = control.put(Watchers::default());
    let control_of = Rc::downgrade(control);
    Changes::of(control).subscribe(move |change| {
        let Some(control) = control_of.upgrade() else { return };
        let neighbor = IpNeighbor::new(change.interface, change.address, &change.neighbour);
        let flags = match change.event {
            Event::Added => IpNeighborEventFlags::ADDED,
            Event::Removed => IpNeighborEventFlags::REMOVED,
        };
        // The older event cannot say that one is gone.
        if change.event == Event::Added {
            watchers.v1.publish(&control, |which| which.has(change), &IpNeighborEvent { neighbor });
        }
        let event = IpNeighborEventV2 { flags: IpNeighborEventFlags(flags), neighbor };
        watchers.v2.publish(&control, |which| which.has(change), &event);
    });
}

/// Wants to know of neighbours that come, or no longer. The newer form tells of those that go, too.
#[derive(Message)]
#[message(request, events = IpNeighborEvent)]
pub struct WantIpNeighborEvents {
    pub enable: bool,
    /// What is put into the events.
    pub pid: u32,
    /// The only address of interest; 0 for all of both families.
    pub ip: IpAddr,
    /// The only link of interest; all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
}

impl Request for WantIpNeighborEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let which = NeighbourFilter::new(call, self.sw_if_index, self.ip)?;
        let watchers = call.get::<Watchers>().map_err(|_| Retval::UNSPECIFIED)?;
        watchers.v1.set(call, self.pid, which, self.enable)
    }
}

/// A neighbour came, or has another station.
#[derive(Message)]
#[message(event)]
pub struct IpNeighborEvent {
    pub neighbor: IpNeighbor,
}

/// Wants to know of neighbours that come and go, or no longer.
#[derive(Message)]
#[message(request, events = IpNeighborEventV2)]
pub struct WantIpNeighborEventsV2 {
    pub enable: bool,
    /// What is put into the events.
    pub pid: u32,
    /// The only address of interest; 0 for all of both families.
    pub ip: IpAddr,
    /// The only link of interest; all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
}

impl Request for WantIpNeighborEventsV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let which = NeighbourFilter::new(call, self.sw_if_index, self.ip)?;
        let watchers = call.get::<Watchers>().map_err(|_| Retval::UNSPECIFIED)?;
        watchers.v2.set(call, self.pid, which, self.enable)
    }
}

/// What became of a neighbour.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("IP_NEIGHBOR_API_EVENT_FLAG_ADDED", 1)]
#[entry("IP_NEIGHBOR_API_EVENT_FLAG_REMOVED", 2)]
pub struct IpNeighborEventFlags(pub u32);

impl IpNeighborEventFlags {
    /// It came, or has another station.
    pub const ADDED: u32 = 1;
    /// It went.
    pub const REMOVED: u32 = 2;
}

/// A neighbour came or went.
#[derive(Message)]
#[message(event)]
pub struct IpNeighborEventV2 {
    pub flags: IpNeighborEventFlags,
    pub neighbor: IpNeighbor,
}
