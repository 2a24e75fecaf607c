//! `set_punt`: which packets for the router are the host's.

use shoal_fib::api::family_of;
use shoal_message::{
    AddressFamily, Definition, Field, Input, IpProto, Kind, Malformed, Message, Retval, Shape, Type, Value,
};
use shoal_module::api::{Call, Request};

use crate::{L4, Punt as Control, Registered, RegistrationState};

/// What punted packets are known by.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PuntType {
    /// A port.
    #[entry("PUNT_API_TYPE_L4")]
    L4 = 0,
    /// A protocol.
    #[entry("PUNT_API_TYPE_IP_PROTO")]
    IpProto = 1,
    /// A reason for which a feature punts.
    #[entry("PUNT_API_TYPE_EXCEPTION")]
    Exception = 2,
}

/// Packets to a port.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct PuntL4 {
    pub af: AddressFamily,
    /// UDP or TCP.
    pub protocol: IpProto,
    /// The port; 65535 for all of them.
    pub port: u16,
}

/// Packets of a protocol.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct PuntIpProto {
    pub af: AddressFamily,
    pub protocol: IpProto,
}

/// Packets with a reason.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct PuntException {
    /// The reason's number.
    pub id: u32,
}

/// What packets are known by, as its kind says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PuntUnion([u8; 4]);

const fn arm(name: &'static str, of: Type) -> Field {
    Field { name, doc: "", of, shape: Shape::One, default: None }
}

impl Value for PuntUnion {
    const TYPE: Type = Type::User(&Definition {
        name: "punt_union",
        doc: "What packets are known by, as its kind says",
        kind: Kind::Union(&[
            arm("exception", PuntException::TYPE),
            arm("l4", PuntL4::TYPE),
            arm("ip_proto", PuntIpProto::TYPE),
        ]),
    });
    const LEAST: usize = 4;

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(PuntUnion(input.array()?))
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.0);
    }
}

impl PuntUnion {
    /// The bytes of one of its kinds, and zeros.
    pub(super) fn of(value: &impl Value) -> PuntUnion {
        let mut bytes = Vec::with_capacity(4);
        value.encode(&mut bytes);
        let mut all = [0; 4];
        all.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        PuntUnion(all)
    }

    pub(super) fn read<T: Value>(self) -> Result<T, Retval> {
        T::decode(&mut Input::new(&self.0)).map_err(|_| Retval::INVALID_VALUE)
    }
}

/// Packets for the router that are the host's.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct Punt {
    /// What they are known by.
    pub r#type: PuntType,
    pub punt: PuntUnion,
}

/// Hands packets for the router to the host, or no more.
#[derive(Message)]
#[message(request)]
pub struct SetPunt {
    /// Whether they are the host's.
    pub is_add: bool,
    /// Which packets.
    pub punt: Punt,
}

/// The number of all ports.
const ALL: u16 = u16::MAX;

impl Punt {
    fn registered(self) -> Result<Registered, Retval> {
        let (af, l4) = match self.r#type {
            PuntType::L4 => {
                let PuntL4 { af, protocol, port } = self.punt.read()?;
                let l4 = match (protocol, port) {
                    (IpProto(17), ALL) => L4::AllUdp,
                    (IpProto(17), port) => L4::Udp(port),
                    (IpProto(6), ALL) => L4::AllTcp,
                    (IpProto(6), port) => L4::Tcp(port),
                    _ => return Err(Retval::UNSPECIFIED),
                };
                (af, l4)
            }
            PuntType::IpProto => {
                let PuntIpProto { af, protocol } = self.punt.read()?;
                (af, L4::Protocol(protocol.0))
            }
            PuntType::Exception => return Err(Retval::UNSPECIFIED),
        };
        Ok(Registered { family: family_of(af), l4 })
    }
}

impl Request for SetPunt {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let punt = call.get::<Control>().map_err(|_| Retval::UNSPECIFIED)?;
        let standing = if self.is_add { RegistrationState::Punted } else { RegistrationState::NotPunted };
        punt.set(self.punt.registered()?, standing).map_err(|e| super::retval(&e))
    }
}
