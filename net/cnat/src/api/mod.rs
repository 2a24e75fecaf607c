//! Messages: `cnat.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

pub mod snat;

use std::net::IpAddr;
use std::rc::Rc;

use shoal_fib::FlowFields;
use shoal_fib::api::IpFlowHashConfigV2;
use shoal_interface::SwIfIndex;
use shoal_message::{
    AddressFamily, Count, Input, InterfaceIndex, IpProto, Malformed, Message, Retval, Type, Value,
};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::session_direction::Tuple;
use crate::sessions::Record;
use crate::translation::{Flags, LbType, address};
use crate::{AddressSource, Cnat, CnatError, Endpoint, PathSpec, Slice, Spec};
use shoal_adj::Family;

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "cnat",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<CnatTranslationUpdate>(),
        ApiMessage::sent::<CnatTranslationUpdateReply>(),
        ApiMessage::request::<CnatTranslationDel>(),
        ApiMessage::dump::<CnatTranslationDump>(),
        ApiMessage::sent::<CnatTranslationDetails>(),
        ApiMessage::request::<CnatSessionPurge>(),
        ApiMessage::dump::<CnatSessionDump>(),
        ApiMessage::sent::<CnatSessionDetails>(),
        ApiMessage::request::<FeatureCnatEnableDisable>(),
        ApiMessage::request::<snat::CnatSetSnatAddresses>(),
        ApiMessage::request::<snat::CnatSetSnatAddressesV2>(),
        ApiMessage::request::<snat::CnatGetSnatAddresses>(),
        ApiMessage::sent::<snat::CnatGetSnatAddressesReply>(),
        ApiMessage::dump::<snat::CnatSnatAddressesDump>(),
        ApiMessage::sent::<snat::CnatSnatAddressesDetails>(),
        ApiMessage::request::<snat::CnatSnatPolicyAddDelExcludePfx>(),
        ApiMessage::request::<snat::CnatSnatPolicyAddDelIf>(),
        ApiMessage::request::<snat::CnatSetSnatPolicy>(),
    ],
};

/// No interface, no translation.
pub(crate) const NONE: u32 = u32::MAX;

impl From<CnatError> for Retval {
    fn from(error: CnatError) -> Self {
        match error {
            CnatError::NoTranslation { .. } | CnatError::NoSnat => Retval::NO_SUCH_ENTRY,
            // As VPP, which has no name for it.
            CnatError::NoPrefix(_) => Retval(1),
            CnatError::Protocol(_) => Retval::INVALID_PROTOCOL,
            CnatError::Port(_) | CnatError::Value { .. } => Retval::INVALID_VALUE,
            CnatError::Family { .. } => Retval::INVALID_ADDRESS_FAMILY,
            CnatError::Itself(_) | CnatError::Own { .. } | CnatError::NotOneHost(_) => {
                Retval::INVALID_ARGUMENT
            }
            CnatError::NoTable(_) => Retval::NO_SUCH_TABLE,
            CnatError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
            CnatError::Fib(error) => shoal_fib::api::retval(&error),
            CnatError::TooMany(_) | CnatError::Reassembly(_) | CnatError::Memory(_) | CnatError::Graph(_) => {
                Retval::UNSPECIFIED
            }
        }
    }
}

pub(crate) fn cnat(call: &Call) -> Result<Rc<Cnat>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// What is special about a translation.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("CNAT_LB_TYPE_DEFAULT", 0)]
#[entry("CNAT_LB_TYPE_MAGLEV", 1)]
pub struct CnatLbType(pub u8);

/// An address and a port. The address is an interface's if there is one.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnatEndpoint {
    pub addr: IpAddr,
    pub sw_if_index: InterfaceIndex,
    pub if_af: AddressFamily,
    pub port: u16,
}

impl CnatEndpoint {
    /// Interface 0 is never one that has an address: clients that leave the field out send it.
    fn read(self) -> Endpoint {
        let CnatEndpoint { addr, sw_if_index: InterfaceIndex(interface), if_af, port } = self;
        if matches!(interface, 0 | NONE) {
            return Endpoint::new(addr, port);
        }
        let family = if if_af == AddressFamily::Ip6 { Family::Ip6 } else { Family::Ip4 };
        Endpoint { from: AddressSource::Interface(SwIfIndex(interface), family), port }
    }

    fn new(cnat: &Cnat, endpoint: Endpoint) -> Self {
        let Endpoint { from, port } = endpoint;
        let (interface, family) = match from {
            AddressSource::Given(address) => (NONE, Family::of(address)),
            AddressSource::Interface(interface, family) => (interface.0, family),
        };
        let if_af = if family == Family::Ip6 { AddressFamily::Ip6 } else { AddressFamily::Ip4 };
        let addr = cnat.address_of(from).unwrap_or(Endpoint::UNSPECIFIED);
        CnatEndpoint { addr, sw_if_index: InterfaceIndex(interface), if_af, port }
    }
}

/// A back end: the new destination, and optionally the new source.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnatEndpointTuple {
    pub dst_ep: CnatEndpoint,
    pub src_ep: CnatEndpoint,
    pub flags: u8,
}

/// A translation.
#[derive(Value, Clone, Debug, PartialEq)]
pub struct CnatTranslation {
    pub vip: CnatEndpoint,
    pub id: u32,
    pub ip_proto: IpProto,
    pub is_real_ip: u8,
    pub flags: u8,
    pub lb_type: CnatLbType,
    pub n_paths: Count<u32>,
    pub flow_hash_config: IpFlowHashConfigV2,
    #[counted_by(n_paths)]
    pub paths: Vec<CnatEndpointTuple>,
}

/// Makes a translation, or changes the one of the same virtual address, port and protocol; its number.
#[derive(Message)]
#[message(request, reply = CnatTranslationUpdateReply)]
pub struct CnatTranslationUpdate {
    pub translation: CnatTranslation,
}

/// The translation's number.
#[derive(Message)]
#[message(reply)]
pub struct CnatTranslationUpdateReply {
    pub retval: i32,
    pub id: u32,
}

impl Request for CnatTranslationUpdate {
    fn handle(self, call: &Call) -> Result<CnatTranslationUpdateReply, Retval> {
        let CnatTranslation { vip, ip_proto, is_real_ip, flags, lb_type, flow_hash_config, paths, .. } =
            self.translation;
        let lb = match lb_type {
            CnatLbType(0) => LbType::Default,
            CnatLbType(1) => LbType::Maglev,
            _ => return Err(Retval::INVALID_VALUE),
        };
        let path = |tuple: CnatEndpointTuple| PathSpec {
            source: tuple.src_ep.read(),
            destination: tuple.dst_ep.read(),
            flags: tuple.flags,
        };
        let spec = Spec {
            vip: vip.read(),
            protocol: ip_proto.0,
            is_real: is_real_ip != 0,
            flags: Flags(flags),
            lb,
            fields: FlowFields::from_bits(flow_hash_config.0 & 0xff),
            paths: paths.into_iter().map(path).collect(),
        };
        let id = cnat(call)?.update(spec)?;
        Ok(CnatTranslationUpdateReply { retval: 0, id })
    }
}

/// Deletes a translation.
#[derive(Message)]
#[message(request)]
pub struct CnatTranslationDel {
    pub id: u32,
}

impl Request for CnatTranslationDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(cnat(call)?.del(self.id)?)
    }
}

/// Asks for all translations.
#[derive(Message)]
#[message(request, details = CnatTranslationDetails)]
pub struct CnatTranslationDump {}

/// A translation.
#[derive(Message)]
#[message(reply)]
pub struct CnatTranslationDetails {
    pub translation: CnatTranslation,
}

impl Dump for CnatTranslationDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = CnatTranslationDetails> + 'static {
        let cnat = cnat(call).ok();
        let all = cnat.as_ref().map(|cnat| cnat.translations()).unwrap_or_default();
        all.into_iter().filter_map(move |(id, spec)| {
            let cnat = cnat.as_ref()?;
            let endpoint = |of| CnatEndpoint::new(cnat, of);
            let tuple = |path: &PathSpec| CnatEndpointTuple {
                dst_ep: endpoint(path.destination),
                src_ep: endpoint(path.source),
                flags: path.flags,
            };
            let translation = CnatTranslation {
                vip: endpoint(spec.vip),
                id,
                ip_proto: IpProto(spec.protocol),
                is_real_ip: spec.is_real.into(),
                flags: spec.flags.0,
                lb_type: CnatLbType(u8::from(spec.lb == LbType::Maglev)),
                n_paths: Count::default(),
                flow_hash_config: IpFlowHashConfigV2(spec.fields.bits()),
                paths: spec.paths.iter().map(tuple).collect(),
            };
            Some(CnatTranslationDetails { translation })
        })
    }
}

/// Ends all sessions and deletes all translations, as VPP does.
#[derive(Message)]
#[message(request)]
pub struct CnatSessionPurge {}

impl Request for CnatSessionPurge {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let cnat = cnat(call)?;
        cnat.purge()?;
        for (id, _) in cnat.translations() {
            cnat.del(id)?;
        }
        Ok(())
    }
}

/// An address as an element of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub IpAddr);

impl Default for Address {
    fn default() -> Self {
        Address(Endpoint::UNSPECIFIED)
    }
}

impl Value for Address {
    const TYPE: Type = <IpAddr as Value>::TYPE;
    const LEAST: usize = <IpAddr as Value>::LEAST;

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        IpAddr::decode(input).map(Address)
    }

    fn encode(&self, to: &mut Vec<u8>) {
        self.0.encode(to);
    }
}

/// What packets of a session come with: source and destination.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(name = "cnat_5tuple")]
pub struct Cnat5tuple {
    pub addr: [Address; 2],
    pub port: [u16; 2],
    pub ip_proto: IpProto,
}

/// One direction of a session.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnatSession {
    pub tuple: Cnat5tuple,
    /// The session's number.
    pub ts_index: u32,
    /// 1: the direction of answers.
    pub flags: u32,
}

/// Asks for all sessions.
#[derive(Message)]
#[message(request, details = CnatSessionDetails)]
pub struct CnatSessionDump {}

/// One direction of a session.
#[derive(Message)]
#[message(reply)]
pub struct CnatSessionDetails {
    pub session: CnatSession,
}

fn both_directions(record: &Record) -> impl Iterator<Item = CnatSessionDetails> + use<> {
    let (session, index) = (record.session, record.index);
    let is_alone = session.marks & crate::session_direction::Marks::ALONE != 0;
    let back = (!is_alone).then(|| (session.to.reversed(), 1));
    [Some((session.from, 0)), back].into_iter().flatten().map(move |(tuple, flags)| {
        let Tuple { src, dst, sport, dport } = tuple;
        let addr = [src, dst].map(|bits| Address(address(session.is_ip6, bits)));
        let tuple = Cnat5tuple { addr, port: [sport, dport], ip_proto: IpProto(session.protocol) };
        CnatSessionDetails { session: CnatSession { tuple, ts_index: index, flags } }
    })
}

impl Dump for CnatSessionDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = CnatSessionDetails> + 'static {
        let cnat = cnat(call).ok();
        let mut next: Option<Slice> = cnat.as_ref().and_then(|cnat| cnat.first_slice());
        let slices = std::iter::from_fn(move || {
            let (records, after) = cnat.as_ref()?.slice(next?).ok()?;
            next = after;
            Some(records)
        });
        slices.flatten().flat_map(|record| both_directions(&record))
    }
}

/// Translates packets of an interface, or does so no more.
#[derive(Message)]
#[message(request)]
pub struct FeatureCnatEnableDisable {
    pub sw_if_index: InterfaceIndex,
    pub enable_disable: bool,
}

impl Request for FeatureCnatEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(cnat(call)?.set_feature(SwIfIndex(self.sw_if_index.0), self.enable_disable)?)
    }
}
