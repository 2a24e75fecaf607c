//! `punt_socket_register` and its like: packets to sockets of programs. `punt_reason_dump`.

use std::path::Path;

use shoal_adj::Family;
use shoal_fib::api::{af_of, family_of};
use shoal_message::{IpProto, Message, Retval, Text, Value};
use shoal_module::api::{Call, Dump, Request};

use super::retval;
use super::set::{Punt, PuntException, PuntIpProto, PuntL4, PuntType, PuntUnion};
use crate::{Punt as Control, PuntClass, PuntError, PuntReason, ReasonInfo};

/// The form of descriptors in front of packets.
const VERSION: u32 = 1;
const UDP: u8 = 17;

/// Hands packets to a program's socket.
#[derive(Message)]
#[message(request, reply = PuntSocketRegisterReply)]
pub struct PuntSocketRegister {
    /// The form of descriptors that the program understands: 1.
    pub header_version: u32,
    /// Which packets.
    pub punt: Punt,
    /// The program's socket.
    pub pathname: Text<108>,
}

/// Where the program sends packets to.
#[derive(Message)]
#[message(reply)]
pub struct PuntSocketRegisterReply {
    /// 0, or what was wrong.
    pub retval: i32,
    /// The router's socket.
    pub pathname: Text<108>,
}

/// Hands them over no longer.
#[derive(Message)]
#[message(request)]
pub struct PuntSocketDeregister {
    /// Which packets.
    pub punt: Punt,
}

/// Asks which packets go to which sockets.
#[derive(Message)]
#[message(request, details = PuntSocketDetails)]
pub struct PuntSocketDump {
    /// Of which kind.
    pub r#type: PuntType,
}

/// Which packets go to a socket.
#[derive(Message)]
#[message(reply)]
pub struct PuntSocketDetails {
    /// Which packets.
    pub punt: Punt,
    /// The program's socket.
    pub pathname: Text<108>,
}

/// Why packets are punted.
#[derive(Value, Clone, Debug, PartialEq)]
#[value(name = "punt_reason")]
pub struct Reason {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
}

fn what(punt: Punt) -> Result<PuntClass, PuntError> {
    let wrong = |_| PuntError::NoPort;
    Ok(match punt.r#type {
        PuntType::L4 => {
            let PuntL4 { af, protocol, port } = punt.punt.read().map_err(wrong)?;
            if protocol.0 != UDP {
                return Err(PuntError::NotUdp(protocol.0));
            }
            PuntClass::Udp(family_of(af), port)
        }
        PuntType::IpProto => {
            let PuntIpProto { af, protocol } = punt.punt.read().map_err(wrong)?;
            PuntClass::Protocol(family_of(af), protocol.0)
        }
        PuntType::Exception => {
            let PuntException { id } = punt.punt.read().map_err(wrong)?;
            PuntClass::Exception(id)
        }
    })
}

fn of(what: PuntClass) -> Punt {
    let af = |family: Family| af_of(family);
    let (r#type, punt) = match what {
        PuntClass::Udp(family, port) => {
            let l4 = PuntL4 { af: af(family), protocol: IpProto(UDP), port };
            (PuntType::L4, PuntUnion::of(&l4))
        }
        PuntClass::Protocol(family, protocol) => {
            let protocol = PuntIpProto { af: af(family), protocol: IpProto(protocol) };
            (PuntType::IpProto, PuntUnion::of(&protocol))
        }
        PuntClass::Exception(id) => (PuntType::Exception, PuntUnion::of(&PuntException { id })),
    };
    Punt { r#type, punt }
}

impl Request for PuntSocketRegister {
    fn handle(self, call: &Call) -> Result<PuntSocketRegisterReply, Retval> {
        let punt = call.get::<Control>().map_err(|_| Retval::UNSPECIFIED)?;
        let done = if self.header_version == VERSION {
            what(self.punt).and_then(|what| punt.register(what, Path::new(self.pathname.as_str())))
        } else {
            Err(PuntError::Version(self.header_version))
        };
        let ours = punt.sockets().path().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(PuntSocketRegisterReply {
            retval: done.err().map_or(0, |e| retval(&e).0),
            pathname: ours.as_str().into(),
        })
    }
}

impl Request for PuntSocketDeregister {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let punt = call.get::<Control>().map_err(|_| Retval::UNSPECIFIED)?;
        what(self.punt).and_then(|what| punt.deregister(what)).map_err(|e| retval(&e))
    }
}

impl Dump for PuntSocketDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = PuntSocketDetails> + 'static {
        let all = call.get::<Control>().map(|punt| punt.sockets().list()).unwrap_or_default();
        all.into_iter().filter_map(move |registration| {
            let punt = of(registration.what);
            let pathname = registration.path.to_string_lossy().as_ref().into();
            (punt.r#type == self.r#type).then_some(PuntSocketDetails { punt, pathname })
        })
    }
}

/// Asks why packets are punted.
#[derive(Message)]
#[message(request, details = PuntReasonDetails)]
pub struct PuntReasonDump {
    /// The one of this name; without one, all.
    pub reason: Reason,
}

/// Why packets are punted.
#[derive(Message)]
#[message(reply)]
pub struct PuntReasonDetails {
    /// The reason.
    pub reason: Reason,
}

impl Dump for PuntReasonDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = PuntReasonDetails> + 'static {
        let all = call.get::<Control>().map(|punt| punt.reasons().list()).unwrap_or_default();
        let name = self.reason.name.trim_end_matches('\0').to_owned();
        let wanted = all.into_iter().filter(move |info| name.is_empty() || info.name == name);
        wanted.map(|ReasonInfo { reason: PuntReason(id), name, .. }| PuntReasonDetails {
            reason: Reason { id, name: name.to_owned() },
        })
    }
}
