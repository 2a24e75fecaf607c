//! Messages: `igmp.api`, those of a host. A router's groups and proxies are not there, so neither are their messages.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{Count, InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::{GroupInfo, Igmp, IgmpError};

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
    ],
};

impl From<IgmpError> for Retval {
    fn from(error: IgmpError) -> Self {
        match error {
            IgmpError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            IgmpError::NotEnabled(_) => Retval::INVALID_INTERFACE,
            IgmpError::NotAGroup(_) | IgmpError::NotASource(_) => Retval::INVALID_VALUE,
            IgmpError::Enabled(_) => Retval::FEATURE_ALREADY_ENABLED,
            IgmpError::Listening(..) => Retval::ENTRY_ALREADY_EXISTS,
            IgmpError::NotListening(..) => Retval::NO_SUCH_ENTRY,
            IgmpError::Full(..) => Retval::LIMIT_EXCEEDED,
            IgmpError::Mfib(_) => Retval::UNSPECIFIED,
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
    /// 1 as a host; 0 as a router, which is not there.
    pub mode: u8,
    pub sw_if_index: InterfaceIndex,
}

impl Request for IgmpEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        /// The mode of a host.
        const HOST: u8 = 1;
        let (igmp, interface) = (igmp(call)?, SwIfIndex(self.sw_if_index.0));
        if self.enable && self.mode != HOST {
            return Err(Retval::UNIMPLEMENTED);
        }
        let done = if self.enable { igmp.enable(interface) } else { igmp.disable(interface) };
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
        let only = (self.sw_if_index != InterfaceIndex::NONE).then_some(SwIfIndex(self.sw_if_index.0));
        let wanted = all.into_iter().filter(move |i| only.is_none_or(|only| only == *i));
        wanted.flat_map(move |interface| {
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
        })
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
        Ok(igmp(call)?.leave_all(SwIfIndex(self.sw_if_index.0))?)
    }
}
