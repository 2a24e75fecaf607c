//! `ip_mroute_add_del`: one multicast route.

use shoal_buffer::SwIfIndex;
use shoal_fib::Fib;
use shoal_fib::api::{family_of, retval as fib_retval};
use shoal_message::{Count, FibPath, FibPathType, Message, Mprefix, Retval, Value};
use shoal_module::api::{Call, Request};

use super::retval;
use crate::{Change, EntryFlags, ItfFlags, Member, Mfib, Prefix, Source};

/// Flags of an entry: any of the bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("MFIB_API_ENTRY_FLAG_NONE", 0)]
#[entry("MFIB_API_ENTRY_FLAG_SIGNAL", 1)]
#[entry("MFIB_API_ENTRY_FLAG_DROP", 2)]
#[entry("MFIB_API_ENTRY_FLAG_CONNECTED", 4)]
#[entry("MFIB_API_ENTRY_FLAG_ACCEPT_ALL_ITF", 8)]
pub struct MfibEntryFlags(pub u32);

/// Flags of an interface of an entry: any of the bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("MFIB_API_ITF_FLAG_NONE", 0)]
#[entry("MFIB_API_ITF_FLAG_NEGATE_SIGNAL", 1)]
#[entry("MFIB_API_ITF_FLAG_ACCEPT", 2)]
#[entry("MFIB_API_ITF_FLAG_FORWARD", 4)]
#[entry("MFIB_API_ITF_FLAG_SIGNAL_PRESENT", 8)]
#[entry("MFIB_API_ITF_FLAG_DONT_PRESERVE", 16)]
pub struct MfibItfFlags(pub u32);

/// An interface of an entry, or the router itself.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct MfibPath {
    /// Its flags.
    pub itf_flags: MfibItfFlags,
    /// Which; of the kind `LOCAL` it is the router itself.
    pub path: FibPath,
}

/// A multicast route.
#[derive(Value, Clone, Debug, PartialEq)]
pub struct IpMroute {
    /// The number of its table.
    pub table_id: u32,
    /// Its flags.
    pub entry_flags: MfibEntryFlags,
    /// Nothing: 0.
    pub rpf_id: u32,
    /// Which packets it is for.
    pub prefix: Mprefix,
    pub n_paths: Count<u8>,
    /// Its interfaces.
    #[counted_by(n_paths)]
    pub paths: Vec<MfibPath>,
}

/// Adds a multicast route or takes it away, or some of its interfaces.
#[derive(Message)]
#[message(request, reply = IpMrouteAddDelReply)]
pub struct IpMrouteAddDel {
    /// Whether it is added.
    #[preset("true")]
    pub is_add: bool,
    /// When it is taken away: whether interfaces that are not named stay. When it is added they stay anyway.
    pub is_multipath: bool,
    /// Which.
    pub route: IpMroute,
}

/// Whether it was done.
#[derive(Message)]
#[message(reply)]
pub struct IpMrouteAddDelReply {
    pub retval: i32,
    /// All bits set: packets of multicast routes are not counted by route.
    pub stats_index: u32,
}

fn prefix_of(prefix: &Mprefix) -> Result<Prefix, Retval> {
    let most = u16::from(family_of(prefix.af).max_len());
    let (group, source) = (prefix.grp_address.of(prefix.af), prefix.src_address.of(prefix.af));
    let prefix = match u8::try_from(prefix.grp_address_length) {
        Ok(len) if u16::from(len) <= most => Prefix::group(group, len),
        _ if prefix.grp_address_length == most * 2 => Prefix::source_group(source, group),
        _ => return Err(Retval::INVALID_PREFIX_LENGTH),
    };
    prefix.map_err(|e| retval(&e))
}

fn member_of(path: &MfibPath) -> Result<(Member, ItfFlags), Retval> {
    let flags = u8::try_from(path.itf_flags.0).ok().filter(|bits| *bits < 16);
    let flags = ItfFlags(flags.ok_or(Retval::UNSUPPORTED)?).without(ItfFlags::SIGNAL_PRESENT);
    let member = match path.path.r#type {
        FibPathType::Local => Member::Local,
        FibPathType::Normal if path.path.nh.address.0 == [0; 16] => {
            Member::Interface(SwIfIndex(path.path.sw_if_index))
        }
        _ => return Err(Retval::UNSUPPORTED),
    };
    if path.path.n_labels > 0 {
        return Err(Retval::UNSUPPORTED);
    }
    Ok((member, flags))
}

impl Request for IpMrouteAddDel {
    fn handle(self, call: &Call) -> Result<IpMrouteAddDelReply, Retval> {
        let IpMrouteAddDel { is_add, is_multipath, route } = self;
        let mfib = call.get::<Mfib>().map_err(|_| Retval::UNSPECIFIED)?;
        let fib = call.get::<Fib>().map_err(|_| Retval::UNSPECIFIED)?;
        let prefix = prefix_of(&route.prefix)?;
        let index = fib.index_of(prefix.family(), route.table_id).map_err(|e| fib_retval(&e))?;
        if ![0, u32::MAX].contains(&route.rpf_id) {
            return Err(Retval::UNSUPPORTED);
        }
        let flags = u8::try_from(route.entry_flags.0).ok().filter(|bits| *bits < 16);
        let flags = EntryFlags(flags.ok_or(Retval::UNSUPPORTED)?);
        let members = route.paths.iter().map(member_of).collect::<Result<Vec<_>, _>>()?;
        let done = if is_add {
            mfib.set(index, prefix, Source::Api, &Change { flags, members })
        } else {
            let named: Vec<Member> = members.iter().map(|(member, _)| *member).collect();
            let named = if is_multipath { named } else { Vec::new() };
            mfib.take_members(index, prefix, Source::Api, &named)
        };
        done.map_err(|e| retval(&e))?;
        Ok(IpMrouteAddDelReply { retval: 0, stats_index: u32::MAX })
    }
}
