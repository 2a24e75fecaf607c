//! Messages: `igmp.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_fib::Fib;
use shoal_interface::SwIfIndex;
use shoal_message::{Count, InterfaceIndex, Message, Prefix, Retval, Value};
use shoal_module::Control;
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request, Subscribers};
use shoal_wire::{Ip4Prefix, IpPrefix};

use crate::{Filter, GroupInfo, GroupKind, Igmp, IgmpError, Listeners};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "igmp",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<IgmpListen>(),
        ApiMessage::request::<IgmpEnableDisable>(),
        ApiMessage::dump::<IgmpDump>(),
        ApiMessage::sent::<IgmpDetails>(),
        ApiMessage::request::<IgmpClearInterface>(),
        ApiMessage::request::<IgmpProxyDeviceAddDel>(),
        ApiMessage::request::<IgmpProxyDeviceAddDelInterface>(),
        ApiMessage::request::<WantIgmpEvents>(),
        ApiMessage::sent::<IgmpEvent>(),
        ApiMessage::request::<IgmpGroupPrefixSet>(),
        ApiMessage::dump::<IgmpGroupPrefixDump>(),
        ApiMessage::sent::<IgmpGroupPrefixDetails>(),
    ],
};

impl From<IgmpError> for Retval {
    fn from(error: IgmpError) -> Self {
        match error {
            IgmpError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            IgmpError::NotEnabled(_)
            | IgmpError::NotHost(_)
            | IgmpError::NotRouter(_)
            | IgmpError::NotInTable(..) => Retval::INVALID_INTERFACE,
            IgmpError::OtherMode(..)
            | IgmpError::ProxyThere(_)
            | IgmpError::NoProxy(_)
            | IgmpError::Downstream(..)
            | IgmpError::NotDownstream(..)
            | IgmpError::Mfib(_) => Retval::UNSPECIFIED,
            IgmpError::NotAGroup(_) | IgmpError::NotASource(_) => Retval::INVALID_VALUE,
            IgmpError::Enabled(_) => Retval::FEATURE_ALREADY_ENABLED,
            IgmpError::Listening(..) => Retval::ENTRY_ALREADY_EXISTS,
            IgmpError::NotListening(..) => Retval::NO_SUCH_ENTRY,
            IgmpError::Full(..) => Retval::LIMIT_EXCEEDED,
        }
    }
}

fn igmp(call: &Call) -> Result<Rc<Igmp>, Retval> {
    call.get::<Igmp>().map_err(|_| Retval::UNSPECIFIED)
}

/// Whether sources are wanted or not.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterMode {
    /// All but these.
    #[entry("EXCLUDE")]
    Exclude = 0,
    /// These only.
    #[entry("INCLUDE")]
    Include = 1,
}

/// Which sources of a group are listened to on a link (RFC 3376, 2).
#[derive(Value, Clone, Debug, PartialEq)]
pub struct IgmpGroup {
    pub filter: FilterMode,
    pub n_srcs: Count<u8>,
    pub sw_if_index: InterfaceIndex,
    /// The group.
    pub gaddr: Ipv4Addr,
    /// The sources.
    #[counted_by(n_srcs)]
    pub saddrs: Vec<Ipv4Addr>,
}

/// Says to which sources of a group this router listens on a link: these and no others. All but none are any; none at
/// all end it.
#[derive(Message)]
#[message(request)]
pub struct IgmpListen {
    pub group: IgmpGroup,
}

impl Request for IgmpListen {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let IgmpGroup { filter, sw_if_index, gaddr, saddrs, .. } = self.group;
        let sources = match filter {
            FilterMode::Include => saddrs,
            FilterMode::Exclude if saddrs.is_empty() => vec![Ipv4Addr::UNSPECIFIED],
            // Sources that are not wanted are nothing this router keeps.
            FilterMode::Exclude => return Err(Retval::UNIMPLEMENTED),
        };
        Ok(igmp(call)?.set_group(SwIfIndex(sw_if_index.0), gaddr, &sources)?)
    }
}

/// Speaks IGMP on a link, or no longer.
#[derive(Message)]
#[message(request)]
pub struct IgmpEnableDisable {
    pub enable: bool,
    /// 1 as a host; 0 as a router.
    pub mode: u8,
    pub sw_if_index: InterfaceIndex,
}

impl Request for IgmpEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        /// The mode of a host.
        const HOST: u8 = 1;
        let (igmp, interface) = (igmp(call)?, SwIfIndex(self.sw_if_index.0));
        let done = match (self.enable, self.mode) {
            (true, HOST) => igmp.enable(interface),
            (true, _) => igmp.enable_router(interface),
            (false, _) => igmp.disable(interface),
        };
        match done {
            // As in VPP, what is so already is no mistake.
            Ok(()) | Err(IgmpError::Enabled(_) | IgmpError::NotEnabled(_)) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

/// Asks which groups are listened to, on one link or all.
#[derive(Message)]
#[message(request, details = IgmpDetails)]
pub struct IgmpDump {
    /// The link; all bits set for all.
    pub sw_if_index: InterfaceIndex,
}

/// A source of a group that is listened to.
#[derive(Message)]
#[message(reply)]
pub struct IgmpDetails {
    pub sw_if_index: InterfaceIndex,
    /// The source; 0.0.0.0 for any.
    pub saddr: Ipv4Addr,
    /// The group.
    pub gaddr: Ipv4Addr,
}

impl Dump for IgmpDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IgmpDetails> + 'static {
        let igmp = call.get::<Igmp>().ok();
        let all = igmp.iter().flat_map(|igmp| igmp.interfaces()).collect::<Vec<_>>();
        let routers = igmp.iter().flat_map(|igmp| igmp.router_interfaces()).collect::<Vec<_>>();
        let only = (self.sw_if_index != InterfaceIndex::NONE).then_some(SwIfIndex(self.sw_if_index.0));
        let wanted = all.into_iter().filter(move |i| only.is_none_or(|only| only == *i));
        let of_routers = routers.into_iter().filter(move |i| only.is_none_or(|only| only == *i));
        let igmp_of = igmp.clone();
        let listeners = of_routers.flat_map(move |interface| {
            let all = igmp_of.as_ref().map(|igmp| igmp.listeners(interface)).unwrap_or_default();
            let sw_if_index = InterfaceIndex(interface.0);
            all.into_iter().flat_map(move |Listeners { group, sources }| {
                sources.into_iter().map(move |(saddr, _)| IgmpDetails { sw_if_index, saddr, gaddr: group })
            })
        });
        let hosts = wanted.flat_map(move |interface| {
            let (igmp, mut after) = (igmp.clone(), None);
            let groups = std::iter::from_fn(move || {
                let group = igmp.as_ref()?.group_after(interface, after)?;
                after = Some(group.group);
                Some(group)
            });
            groups.flat_map(move |GroupInfo { group, any, sources }| {
                let any = any.then_some(Ipv4Addr::UNSPECIFIED);
                let sw_if_index = InterfaceIndex(interface.0);
                let details = move |saddr| IgmpDetails { sw_if_index, saddr, gaddr: group };
                any.into_iter().chain(sources).map(details)
            })
        });
        hosts.chain(listeners)
    }
}

/// Leaves all groups of a link.
#[derive(Message)]
#[message(request)]
pub struct IgmpClearInterface {
    pub sw_if_index: InterfaceIndex,
}

impl Request for IgmpClearInterface {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        match igmp(call)?.leave_all(SwIfIndex(self.sw_if_index.0)) {
            // As VPP: there is nothing to leave where IGMP does not run.
            Err(IgmpError::NotEnabled(_)) => Ok(()),
            done => Ok(done?),
        }
    }
}

/// Makes a proxy of a table, or takes it away.
#[derive(Message)]
#[message(request)]
pub struct IgmpProxyDeviceAddDel {
    pub add: u8,
    /// The number of the table.
    pub vrf_id: u32,
    /// The link where this router listens, as a host.
    pub sw_if_index: InterfaceIndex,
}

/// Has a proxy listen for another link, or no longer.
#[derive(Message)]
#[message(request)]
pub struct IgmpProxyDeviceAddDelInterface {
    pub add: bool,
    /// The number of the table.
    pub vrf_id: u32,
    /// The link whose listeners it listens for; this router is a router there.
    pub sw_if_index: InterfaceIndex,
}

/// Wants to know when listeners come and go on links where this router is a router, or no longer.
#[derive(Message)]
#[message(request, events = IgmpEvent)]
pub struct WantIgmpEvents {
    pub enable: u32,
    /// What is put into events that have a place for it.
    pub pid: u32,
}

/// A listener came, or the last one went.
#[derive(Message)]
#[message(bare)]
pub struct IgmpEvent {
    pub sw_if_index: InterfaceIndex,
    /// Include: the source is wanted; exclude: it is no longer.
    pub filter: FilterMode,
    /// The source; 0.0.0.0 for any.
    pub saddr: Ipv4Addr,
    /// The group.
    pub gaddr: Ipv4Addr,
}

/// What groups are for.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupPrefixType {
    /// Any source.
    #[entry("ASM")]
    Asm = 0,
    /// Sources that listeners name.
    #[entry("SSM")]
    Ssm = 1,
}

/// What the groups of a prefix are for.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct GroupPrefix {
    pub r#type: GroupPrefixType,
    pub prefix: Prefix,
}

/// Says what the groups of a prefix are for.
#[derive(Message)]
#[message(request)]
pub struct IgmpGroupPrefixSet {
    pub gp: GroupPrefix,
}

/// Asks for the prefixes of groups of which listeners name their sources.
#[derive(Message)]
#[message(request, details = IgmpGroupPrefixDetails)]
pub struct IgmpGroupPrefixDump {}

/// A prefix.
#[derive(Message)]
#[message(reply)]
pub struct IgmpGroupPrefixDetails {
    pub gp: GroupPrefix,
}

/// The clients that want events.
#[derive(Default)]
struct Watchers(Subscribers);

pub(crate) fn follow(control: &Rc<Control>, igmp: &Igmp) {
    let watchers = control.put(Watchers::default());
    let control = Rc::downgrade(control);
    igmp.observe(move |event| {
        let Some(control) = control.upgrade() else { return };
        let message = IgmpEvent {
            sw_if_index: InterfaceIndex(event.interface.0),
            filter: match event.filter {
                Filter::Include => FilterMode::Include,
                Filter::Exclude => FilterMode::Exclude,
            },
            saddr: event.source,
            gaddr: event.group,
        };
        watchers.0.publish(&control, |()| true, &message);
    });
}

impl Request for WantIgmpEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let watchers = call.get::<Watchers>().map_err(|_| Retval::UNSPECIFIED)?;
        watchers.0.set(call, self.pid, (), self.enable != 0)
    }
}

impl Request for IgmpProxyDeviceAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (igmp, fib) = (igmp(call)?, call.get::<Fib>().map_err(|_| Retval::UNSPECIFIED)?);
        let upstream = SwIfIndex(self.sw_if_index.0);
        igmp.interfaces.data(upstream).map_err(|_| Retval::INVALID_SW_IF_INDEX)?;
        if self.add == 0 {
            return Ok(igmp.remove_proxy(self.vrf_id, upstream)?);
        }
        Ok(igmp.add_proxy(&fib, self.vrf_id, upstream)?)
    }
}

impl Request for IgmpProxyDeviceAddDelInterface {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (igmp, fib) = (igmp(call)?, call.get::<Fib>().map_err(|_| Retval::UNSPECIFIED)?);
        let interface = SwIfIndex(self.sw_if_index.0);
        igmp.interfaces.data(interface).map_err(|_| Retval::INVALID_SW_IF_INDEX)?;
        if !self.add {
            return Ok(igmp.remove_downstream(self.vrf_id, interface)?);
        }
        Ok(igmp.add_downstream(&fib, self.vrf_id, interface)?)
    }
}

impl Request for IgmpGroupPrefixSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let Prefix { address, len } = self.gp.prefix;
        let prefix = IpPrefix::new(address, len).map_err(|_| Retval::INVALID_PREFIX_LENGTH)?;
        let prefix = prefix.ip4().ok_or(Retval::INVALID_ADDRESS_FAMILY)?;
        let kind = match self.gp.r#type {
            GroupPrefixType::Asm => GroupKind::Asm,
            GroupPrefixType::Ssm => GroupKind::Ssm,
        };
        igmp(call)?.set_range(prefix, kind);
        Ok(())
    }
}

impl Dump for IgmpGroupPrefixDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IgmpGroupPrefixDetails> + 'static {
        let all = igmp(call).map(|igmp| igmp.ranges()).unwrap_or_default();
        all.into_iter().map(|prefix: Ip4Prefix| {
            let prefix = Prefix { address: prefix.addr().into(), len: prefix.len() };
            IgmpGroupPrefixDetails { gp: GroupPrefix { r#type: GroupPrefixType::Ssm, prefix } }
        })
    }
}
