//! `ip_punt_redirect`: one way of punted packets.

use std::net::IpAddr;
use std::rc::Rc;

use shoal_adj::Family;
use shoal_fib::api::{af_of, family_if, path_of};
use shoal_fib::{Fib, Path, Via};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_message::{
    AddressUnion, FibMplsLabel, FibPath, FibPathFlags, FibPathNh, FibPathNhProto, FibPathType,
    InterfaceIndex, Message, Retval, Value,
};
use shoal_module::api::{Call, Dump, Request};

use super::retval;
use crate::{Punt, PuntError, Redirect, Rx};

/// A way of punted packets.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct PuntRedirect {
    /// The interface they came in by; all bits set for those without an entry of their own.
    pub rx_sw_if_index: InterfaceIndex,
    /// The interface they go out by; all bits set if the next hop says which.
    pub tx_sw_if_index: InterfaceIndex,
    /// Where they go.
    pub nh: IpAddr,
}

/// Sends punted packets elsewhere than to the host, or no more.
#[derive(Message)]
#[message(request)]
pub struct IpPuntRedirect {
    pub punt: PuntRedirect,
    /// Whether they are sent elsewhere.
    #[preset("true")]
    pub is_add: bool,
}

/// Asks where punted packets are sent.
#[derive(Message)]
#[message(request, details = IpPuntRedirectDetails)]
pub struct IpPuntRedirectDump {
    /// The interface they came in by; all bits set for all.
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: bool,
}

/// Where punted packets are sent: the first way if there are several.
#[derive(Message)]
#[message(reply)]
pub struct IpPuntRedirectDetails {
    pub punt: PuntRedirect,
}

/// By which interface packets came in.
pub(super) fn rx_of(call: &Call, index: InterfaceIndex) -> Result<Rx, Retval> {
    if index == InterfaceIndex::NONE {
        return Ok(Rx::All);
    }
    Ok(Rx::Interface(known(call, index)?))
}

fn known(call: &Call, index: InterfaceIndex) -> Result<SwIfIndex, Retval> {
    let interfaces = call.get::<Interfaces>().map_err(|_| Retval::UNSPECIFIED)?;
    interfaces.data(SwIfIndex(index.0)).map_err(|_| Retval::INVALID_SW_IF_INDEX)?;
    Ok(SwIfIndex(index.0))
}

/// The number of that.
pub(super) fn number(rx: Rx) -> InterfaceIndex {
    match rx {
        Rx::All => InterfaceIndex::NONE,
        Rx::Interface(index) => InterfaceIndex(index.0),
    }
}

pub(super) fn set(call: &Call, family: Family, rx: Rx, paths: Option<&[FibPath]>) -> Result<(), Retval> {
    let punt = call.get::<Punt>().map_err(|_| Retval::UNSPECIFIED)?;
    let Some(paths) = paths else {
        return match punt.end_redirect(family, rx) {
            // VPP has nothing to say of what is not there.
            Ok(()) | Err(PuntError::NotRedirected { .. }) => Ok(()),
            Err(e) => Err(retval(&e)),
        };
    };
    let fib = call.get::<Fib>().map_err(|_| Retval::UNSPECIFIED)?;
    let paths: Result<Vec<Path>, Retval> = paths.iter().map(|path| path_of(&fib, family, path)).collect();
    let mut paths = paths?;
    if paths.is_empty() {
        // As with VPP a redirect without ways leads nowhere.
        paths.push(Via::Drop.into());
    }
    punt.redirect(family, rx, &paths).map_err(|e| retval(&e))
}

/// What is redirected of a family: of one interface, or all.
pub(super) fn redirects(call: &Call, family: Family, of: InterfaceIndex) -> Vec<Redirect> {
    let Ok(punt) = call.get::<Punt>() else { return Vec::new() };
    let mut all = punt.redirects(family);
    all.retain(|one| of == InterfaceIndex::NONE || number(one.rx) == of);
    all
}

/// Where a redirect's first way leads.
fn first(fib: &Rc<Fib>, family: Family, redirect: &Redirect) -> Option<PuntRedirect> {
    let path = shoal_fib::api::from_path(fib, family, None, redirect.paths.first()?);
    Some(PuntRedirect {
        rx_sw_if_index: number(redirect.rx),
        tx_sw_if_index: InterfaceIndex(path.sw_if_index),
        nh: path.nh.address.of(af_of(family)),
    })
}

impl Request for IpPuntRedirect {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let PuntRedirect { rx_sw_if_index, tx_sw_if_index, nh } = self.punt;
        let (family, rx) = (Family::of(nh), rx_of(call, rx_sw_if_index)?);
        if !self.is_add {
            return set(call, family, rx, None);
        }
        if tx_sw_if_index != InterfaceIndex::NONE {
            known(call, tx_sw_if_index)?;
        } else if nh.is_unspecified() {
            return Err(Retval::NO_PATHS_IN_ROUTE);
        }
        let path = FibPath {
            sw_if_index: tx_sw_if_index.0,
            table_id: 0,
            rpf_id: 0,
            weight: 1,
            preference: 0,
            r#type: FibPathType::Normal,
            flags: FibPathFlags(0),
            proto: if family == Family::Ip4 { FibPathNhProto::Ip4 } else { FibPathNhProto::Ip6 },
            nh: FibPathNh {
                address: AddressUnion::from(nh),
                via_label: 0,
                obj_id: 0,
                classify_table_index: 0,
            },
            n_labels: 0,
            label_stack: [FibMplsLabel::default(); 16],
        };
        set(call, family, rx, Some(&[path]))
    }
}

impl Dump for IpPuntRedirectDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpPuntRedirectDetails> + 'static {
        let family = family_if(self.is_ipv6);
        let all = redirects(call, family, self.sw_if_index);
        let fib = call.get::<Fib>().ok();
        all.into_iter()
            .filter_map(move |one| Some(IpPuntRedirectDetails { punt: first(fib.as_ref()?, family, &one)? }))
    }
}
