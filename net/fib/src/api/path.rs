//! Paths as messages have them, and as tables do.

use std::net::IpAddr;

use shoal_adj::Family;
use shoal_buffer::SwIfIndex;
use shoal_message::{
    AddressUnion, FibMplsLabel, FibPath, FibPathFlags, FibPathNh, FibPathNhProto, FibPathType, Retval,
};
use shoal_wire::IpPrefix;

use super::{af_of, retval};
use crate::{Fib, FibIndex, Path, Via};

/// What stands where there is no interface, table or object.
const NONE: u32 = u32::MAX;

/// The path that a client wants packets of a family to take.
///
/// # Errors
/// A table or interface is not there, or this router has no such path.
pub fn path_of(fib: &Fib, family: Family, given: &FibPath) -> Result<Path, Retval> {
    if given.n_labels > 0 || given.flags.0 != 0 {
        return Err(Retval::UNSUPPORTED);
    }
    let via = match given.r#type {
        FibPathType::Normal => return normal(fib, family, given).map(|via| weighted(via, given)),
        FibPathType::Local => {
            let interface = (given.sw_if_index != NONE).then_some(SwIfIndex(given.sw_if_index));
            let proto = proto(given).unwrap_or(family);
            Via::Local { interface, address: given.nh.address.of(af_of(proto)) }
        }
        FibPathType::Drop => Via::Drop,
        FibPathType::IcmpUnreach => Via::Unreachable,
        FibPathType::IcmpProhibit => Via::Prohibit,
        FibPathType::InterfaceRx => Via::InterfaceRx { interface: SwIfIndex(given.sw_if_index) },
        FibPathType::Dvr => Via::Dvr { interface: SwIfIndex(given.sw_if_index) },
        FibPathType::SourceLookup => Via::SourceLookup(table_of(fib, family, given)?),
        FibPathType::UdpEncap | FibPathType::BierImp | FibPathType::Classify => {
            return Err(Retval::UNSUPPORTED);
        }
    };
    Ok(weighted(via, given))
}

fn proto(given: &FibPath) -> Option<Family> {
    match given.proto {
        FibPathNhProto::Ip4 => Some(Family::Ip4),
        FibPathNhProto::Ip6 => Some(Family::Ip6),
        FibPathNhProto::Mpls | FibPathNhProto::Ethernet | FibPathNhProto::Bier => None,
    }
}

/// A weight of 0 is a client's way to say nothing of it, as with VPP.
fn weighted(via: Via, given: &FibPath) -> Path {
    Path::from(via).weight(given.weight.max(1)).preference(given.preference)
}

fn table_of(fib: &Fib, family: Family, given: &FibPath) -> Result<FibIndex, Retval> {
    if given.table_id == 0 {
        return Ok(FibIndex::DEFAULT);
    }
    fib.index_of(family, given.table_id).map_err(|e| retval(&e))
}

fn normal(fib: &Fib, family: Family, given: &FibPath) -> Result<Via, Retval> {
    let proto = proto(given).ok_or(Retval::FIB_PATH_UNSUPPORTED_NH_PROTO)?;
    let table = || table_of(fib, proto, given);
    let next_hop = given.nh.address.of(af_of(proto));
    let interface = SwIfIndex(given.sw_if_index);
    Ok(match (next_hop.is_unspecified(), given.sw_if_index == NONE) {
        (false, false) => Via::NextHop { interface, next_hop },
        (false, true) => Via::Recursive { next_hop, fib: table()? },
        (true, false) => Via::Attached { interface, source: next_hop },
        (true, true) if proto == family => Via::Lookup(table()?),
        (true, true) => return Err(Retval::FIB_PATH_UNSUPPORTED_NH_PROTO),
    })
}

/// A path of an entry as clients receive it.
pub fn from_path(fib: &Fib, family: Family, prefix: Option<&IpPrefix>, path: &Path) -> FibPath {
    let mut told = FibPath {
        sw_if_index: path.via.interface().map_or(NONE, |i| i.0),
        table_id: 0,
        rpf_id: NONE,
        weight: path.weight,
        preference: path.preference,
        r#type: FibPathType::Normal,
        flags: FibPathFlags(0),
        proto: proto_of(family),
        nh: FibPathNh { address: AddressUnion::default(), via_label: 0, obj_id: 0, classify_table_index: 0 },
        n_labels: 0,
        label_stack: [FibMplsLabel::default(); 16],
    };
    let next_hop = |told: &mut FibPath, address: IpAddr| {
        told.proto = proto_of(Family::of(address));
        told.nh.address = address.into();
    };
    let id =
        |family, index| if index == FibIndex::DEFAULT { 0 } else { fib.id_of(family, index).unwrap_or(0) };
    match path.via {
        Via::Attached { .. } | Via::Broadcast { .. } | Via::Node(_) => {}
        Via::NextHop { next_hop: address, .. } => next_hop(&mut told, address),
        Via::Recursive { next_hop: address, fib } | Via::PathMtu { peer: address, fib, .. } => {
            next_hop(&mut told, address);
            told.table_id = id(Family::of(address), fib);
        }
        Via::InterfaceRx { .. } => told.r#type = FibPathType::InterfaceRx,
        Via::Dvr { .. } => told.r#type = FibPathType::Dvr,
        Via::Local { address, .. } => {
            told.r#type = FibPathType::Local;
            let address = if address.is_unspecified() { prefix.map(IpPrefix::addr) } else { Some(address) };
            if let Some(address) = address {
                next_hop(&mut told, address);
            }
        }
        Via::Lookup(table) => told.table_id = id(family, table),
        Via::SourceLookup(table) => {
            told.r#type = FibPathType::SourceLookup;
            told.table_id = id(family, table);
        }
        // To the host this router runs on.
        Via::Punt => told.r#type = FibPathType::Local,
        Via::NoRoute | Via::Drop => told.r#type = FibPathType::Drop,
        Via::Unreachable => told.r#type = FibPathType::IcmpUnreach,
        Via::Prohibit => told.r#type = FibPathType::IcmpProhibit,
    }
    told
}

const fn proto_of(family: Family) -> FibPathNhProto {
    match family {
        Family::Ip4 => FibPathNhProto::Ip4,
        Family::Ip6 => FibPathNhProto::Ip6,
    }
}
