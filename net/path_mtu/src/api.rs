//! Messages of the binary API: how long packets to hosts may be.

use std::net::IpAddr;
use std::rc::Rc;

use shoal_message::{Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Get, Request};

use crate::{PathMtu, PathMtuError, PathMtus};

/// Messages that VPP has in `ip.api`.
pub static IP: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[
        ApiMessage::request::<IpPathMtuUpdate>(),
        ApiMessage::get::<IpPathMtuGet>(),
        ApiMessage::sent::<IpPathMtuGetReply>(),
        ApiMessage::sent::<IpPathMtuDetails>(),
        ApiMessage::request::<IpPathMtuReplaceBegin>(),
        ApiMessage::request::<IpPathMtuReplaceEnd>(),
    ],
};

/// Rows of one answer.
const AT_A_TIME: usize = 500;
/// Where there is no more.
const END: u32 = u32::MAX;

/// How long packets to a host may be.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
struct IpPathMtu {
    /// Nothing.
    client_index: u32,
    /// Nothing.
    context: u32,
    /// The number of the host's table.
    table_id: u32,
    /// The host.
    nh: IpAddr,
    /// Bytes; 0 takes away what is known.
    path_mtu: u16,
}

/// Says how long packets to a host may be.
#[derive(Message)]
#[message(request)]
struct IpPathMtuUpdate {
    pmtu: IpPathMtu,
}

/// Asks for all hosts of which it is known.
#[derive(Message)]
#[message(request, reply = IpPathMtuGetReply, details = IpPathMtuDetails)]
struct IpPathMtuGet {
    /// Where to go on; 0 at first.
    cursor: u32,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
struct IpPathMtuGetReply {
    /// -165 if there are.
    retval: i32,
    /// Where to go on.
    cursor: u32,
}

/// How long packets to a host may be: the configured or the learnt size, the lesser of both.
#[derive(Message)]
#[message(reply)]
struct IpPathMtuDetails {
    pmtu: IpPathMtu,
}

/// Announces that all path MTUs will be sent again. Those that are not go at `ip_path_mtu_replace_end`.
#[derive(Message)]
#[message(request)]
struct IpPathMtuReplaceBegin {}

/// Forgets the path MTUs that were not sent since `ip_path_mtu_replace_begin`.
#[derive(Message)]
#[message(request)]
struct IpPathMtuReplaceEnd {}

fn all(call: &Call) -> Result<Rc<PathMtus>, Retval> {
    call.get::<PathMtus>().map_err(|_| Retval::UNSPECIFIED)
}

fn retval(error: &PathMtuError) -> Retval {
    match error {
        PathMtuError::Range { .. }
        | PathMtuError::NotAHost(_)
        | PathMtuError::Lifetime { .. }
        | PathMtuError::Least { .. } => Retval::INVALID_VALUE,
        PathMtuError::None { .. } => Retval::NO_SUCH_ENTRY,
        PathMtuError::TooMany(_) => Retval::LIMIT_EXCEEDED,
        PathMtuError::Fib(e) => shoal_fib::api::retval(e),
    }
}

impl Request for IpPathMtuUpdate {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let IpPathMtu { table_id, nh, path_mtu, .. } = self.pmtu;
        let all = all(call)?;
        let done = match path_mtu {
            0 => all.delete(table_id, nh),
            mtu => all.update(table_id, nh, mtu),
        };
        done.map_err(|e| retval(&e))
    }
}

impl Get for IpPathMtuGet {
    fn get(self, call: &Call) -> Result<(Vec<IpPathMtuDetails>, IpPathMtuGetReply), Retval> {
        let list = all(call)?.list();
        let from = self.cursor as usize;
        if from >= list.len() && !list.is_empty() {
            return Err(Retval::INVALID_VALUE);
        }
        let told = |p: &PathMtu| {
            let PathMtu { table, peer, mtu, .. } = *p;
            let pmtu = IpPathMtu { client_index: 0, context: 0, table_id: table, nh: peer, path_mtu: mtu };
            IpPathMtuDetails { pmtu }
        };
        let some: Vec<IpPathMtuDetails> = list.iter().skip(from).take(AT_A_TIME).map(told).collect();
        let next = from + some.len();
        let (retval, cursor) = if next < list.len() { (Retval::EAGAIN.0, next as u32) } else { (0, END) };
        Ok((some, IpPathMtuGetReply { retval, cursor }))
    }
}

impl Request for IpPathMtuReplaceBegin {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        all(call)?.replace_begin();
        Ok(())
    }
}

impl Request for IpPathMtuReplaceEnd {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        all(call)?.replace_end().map_err(|e| retval(&e))
    }
}
