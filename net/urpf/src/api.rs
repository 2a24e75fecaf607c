//! Messages: `urpf.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use shoal_fib::{Family, Fib, FibIndex};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_message::{AddressFamily, InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::{Direction, Mode, Setting, Urpf, UrpfError};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "urpf",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<UrpfUpdate>(),
        ApiMessage::request::<UrpfUpdateV2>(),
        ApiMessage::dump::<UrpfInterfaceDump>(),
        ApiMessage::sent::<UrpfInterfaceDetails>(),
    ],
};

/// How much is asked of a source.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(width = u8)]
pub enum UrpfMode {
    /// Nothing.
    #[entry("URPF_API_MODE_OFF")]
    Off = 0,
    /// That it is reached at all.
    #[entry("URPF_API_MODE_LOOSE")]
    Loose = 1,
    /// That it is reached by the packet's interface.
    #[entry("URPF_API_MODE_STRICT")]
    Strict = 2,
}

impl From<UrpfError> for Retval {
    fn from(error: UrpfError) -> Self {
        match error {
            UrpfError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            UrpfError::Fib(_) => Retval::NO_SUCH_FIB,
        }
    }
}

/// Says how sources of an interface's packets are checked, in the interface's own table.
#[derive(Message)]
#[message(request)]
pub struct UrpfUpdate {
    /// Of packets that come in, else of those that go out.
    #[preset("true")]
    pub is_input: bool,
    pub mode: UrpfMode,
    pub af: AddressFamily,
    pub sw_if_index: InterfaceIndex,
}

impl Request for UrpfUpdate {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let UrpfUpdate { is_input, mode, af, sw_if_index } = self;
        UrpfUpdateV2 { is_input, mode, af, sw_if_index, table_id: u32::MAX }.handle(call)
    }
}

/// Says how sources of an interface's packets are checked.
#[derive(Message)]
#[message(request)]
pub struct UrpfUpdateV2 {
    /// Of packets that come in, else of those that go out.
    #[preset("true")]
    pub is_input: bool,
    pub mode: UrpfMode,
    pub af: AddressFamily,
    pub sw_if_index: InterfaceIndex,
    /// Where sources are looked up; all bits set for the interface's own table.
    #[preset(4294967295)]
    pub table_id: u32,
}

impl Request for UrpfUpdateV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let urpf = call.get::<Urpf>().map_err(|_| Retval::UNSPECIFIED)?;
        let fib = call.get::<Fib>().map_err(|_| Retval::UNSPECIFIED)?;
        let family = match self.af {
            AddressFamily::Ip4 => Family::Ip4,
            AddressFamily::Ip6 => Family::Ip6,
        };
        let table = match self.table_id {
            u32::MAX => None,
            id => Some(fib.index_of(family, id).map_err(|_| Retval::NO_SUCH_FIB)?),
        };
        Ok(urpf.set(Setting {
            interface: SwIfIndex(self.sw_if_index.0),
            family,
            direction: if self.is_input { Direction::Rx } else { Direction::Tx },
            mode: match self.mode {
                UrpfMode::Off => Mode::Off,
                UrpfMode::Loose => Mode::Loose,
                UrpfMode::Strict => Mode::Strict,
            },
            table,
        })?)
    }
}

/// Asks where sources are checked, on one interface or all.
#[derive(Message)]
#[message(request, details = UrpfInterfaceDetails)]
pub struct UrpfInterfaceDump {
    /// The interface; all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// How sources of an interface's packets are checked.
#[derive(Message)]
#[message(reply)]
pub struct UrpfInterfaceDetails {
    pub sw_if_index: InterfaceIndex,
    /// Of packets that come in, else of those that go out.
    pub is_input: bool,
    pub mode: UrpfMode,
    pub af: AddressFamily,
    /// Where sources are looked up.
    pub table_id: u32,
}

impl Dump for UrpfInterfaceDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = UrpfInterfaceDetails> + 'static {
        let (fib, interfaces) = (call.get::<Fib>().ok(), call.get::<Interfaces>().ok());
        // There are no more than four of each interface.
        let all = call.get::<Urpf>().map(|urpf| urpf.settings()).unwrap_or_default();
        let only = (self.sw_if_index != InterfaceIndex::NONE).then_some(SwIfIndex(self.sw_if_index.0));
        let wanted = all.into_iter().filter(move |s| only.is_none_or(|only| only == s.interface));
        wanted.filter_map(move |setting| {
            let data = interfaces.as_ref()?.data(setting.interface).ok()?;
            let (af, own) = match setting.family {
                Family::Ip4 => (AddressFamily::Ip4, data.fib_ip4),
                Family::Ip6 => (AddressFamily::Ip6, data.fib_ip6),
            };
            let table = setting.table.unwrap_or(FibIndex(own));
            Some(UrpfInterfaceDetails {
                sw_if_index: InterfaceIndex(setting.interface.0),
                is_input: setting.direction == Direction::Rx,
                mode: match setting.mode {
                    Mode::Off => UrpfMode::Off,
                    Mode::Loose => UrpfMode::Loose,
                    Mode::Strict => UrpfMode::Strict,
                },
                af,
                table_id: fib.as_ref()?.id_of(setting.family, table).unwrap_or(table.0),
            })
        })
    }
}
