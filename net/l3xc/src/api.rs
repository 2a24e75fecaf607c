//! Messages: `l3xc.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::rc::Rc;

use shoal_adj::Family;
use shoal_fib::Fib;
use shoal_fib::api::{from_path, path_of, retval};
use shoal_interface::SwIfIndex;
use shoal_message::{Count, FibPath, InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::{L3xcError, L3xcInfo};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "l3xc",
    folder: Folder::Plugins,
    version: "1.0.1",
    messages: &[
        ApiMessage::request::<L3xcPluginGetVersion>(),
        ApiMessage::sent::<L3xcPluginGetVersionReply>(),
        ApiMessage::request::<L3xcUpdate>(),
        ApiMessage::sent::<L3xcUpdateReply>(),
        ApiMessage::request::<L3xcDel>(),
        ApiMessage::dump::<L3xcDump>(),
        ApiMessage::sent::<L3xcDetails>(),
    ],
};

impl From<L3xcError> for Retval {
    fn from(error: L3xcError) -> Self {
        match error {
            L3xcError::NoPaths => Retval::NO_PATHS_IN_ROUTE,
            L3xcError::None(..) => Retval::INVALID_VALUE,
            L3xcError::Fib(error) => retval(&error),
            L3xcError::Interface(error) => error.into(),
        }
    }
}

fn l3xc(call: &Call) -> Result<Rc<crate::L3xc>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

fn family(is_ip6: bool) -> Family {
    if is_ip6 { Family::Ip6 } else { Family::Ip4 }
}

/// Asks for the version of these messages.
#[derive(Message)]
#[message(request, reply = L3xcPluginGetVersionReply)]
pub struct L3xcPluginGetVersion {}

/// The version of these messages.
#[derive(Message)]
#[message(reply)]
pub struct L3xcPluginGetVersionReply {
    pub major: u32,
    pub minor: u32,
}

impl Request for L3xcPluginGetVersion {
    fn handle(self, _: &Call) -> Result<L3xcPluginGetVersionReply, Retval> {
        Ok(L3xcPluginGetVersionReply { major: 1, minor: 0 })
    }
}

/// A cross-connect.
#[derive(Value, Clone, Debug, PartialEq)]
pub struct L3xc {
    pub sw_if_index: InterfaceIndex,
    pub is_ip6: bool,
    pub n_paths: Count<u8>,
    #[counted_by(n_paths)]
    pub paths: Vec<FibPath>,
}

/// Gives all packets of an interface these paths.
#[derive(Message)]
#[message(request, reply = L3xcUpdateReply)]
pub struct L3xcUpdate {
    pub l3xc: L3xc,
}

/// The number under which its packets are counted.
#[derive(Message)]
#[message(reply)]
pub struct L3xcUpdateReply {
    pub retval: i32,
    pub stats_index: u32,
}

impl Request for L3xcUpdate {
    fn handle(self, call: &Call) -> Result<L3xcUpdateReply, Retval> {
        let (l3xc, fib) = (l3xc(call)?, call.get::<Fib>().map_err(|_| Retval::UNSPECIFIED)?);
        let L3xc { sw_if_index, is_ip6, paths, .. } = self.l3xc;
        let (interface, family) = (SwIfIndex(sw_if_index.0), family(is_ip6));
        let paths: Result<Vec<_>, Retval> = paths.iter().map(|path| path_of(&fib, family, path)).collect();
        l3xc.set(interface, family, &paths?)?;
        let adj = l3xc.list().into_iter().find(|x| (x.interface, x.family) == (interface, family));
        Ok(L3xcUpdateReply { retval: 0, stats_index: adj.map_or(u32::MAX, |x| x.adj) })
    }
}

/// Routes all packets of an interface again.
#[derive(Message)]
#[message(request)]
pub struct L3xcDel {
    pub sw_if_index: InterfaceIndex,
    pub is_ip6: bool,
}

impl Request for L3xcDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(l3xc(call)?.remove(SwIfIndex(self.sw_if_index.0), family(self.is_ip6))?)
    }
}

/// Asks for cross-connects.
#[derive(Message)]
#[message(request, details = L3xcDetails)]
pub struct L3xcDump {
    /// All bits set for all.
    pub sw_if_index: InterfaceIndex,
}

/// A cross-connect.
#[derive(Message)]
#[message(reply)]
pub struct L3xcDetails {
    pub l3xc: L3xc,
}

impl Dump for L3xcDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = L3xcDetails> + 'static {
        let fib = call.get::<Fib>().ok();
        let all = l3xc(call).map(|l3xc| l3xc.list()).unwrap_or_default();
        let only = self.sw_if_index;
        let wanted = all.into_iter().filter(move |x| only == InterfaceIndex::NONE || only.0 == x.interface.0);
        wanted.filter_map(move |L3xcInfo { interface, family, paths, .. }| {
            let fib = fib.as_ref()?;
            let paths = paths.iter().map(|path| from_path(fib, family, None, path)).collect();
            let is_ip6 = family == Family::Ip6;
            let sw_if_index = InterfaceIndex(interface.0);
            Some(L3xcDetails { l3xc: L3xc { sw_if_index, is_ip6, n_paths: Count::default(), paths } })
        })
    }
}
