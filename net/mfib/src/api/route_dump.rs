//! `ip_mroute_dump`: all multicast routes of a table.

use shoal_adj::Family;
use shoal_fib::Fib;
use shoal_fib::api::IpTable;
use shoal_message::{
    AddressUnion, Count, FibMplsLabel, FibPath, FibPathFlags, FibPathNh, FibPathNhProto, FibPathType,
    Message, Mprefix,
};
use shoal_module::api::{Call, Dump};

use super::route::{IpMroute, MfibEntryFlags, MfibItfFlags, MfibPath};
use crate::{Entry, EntryFlags, Itf, Member, Mfib};

/// Asks for all multicast routes of a table.
#[derive(Message)]
#[message(request, details = IpMrouteDetails)]
pub struct IpMrouteDump {
    /// The table.
    pub table: IpTable,
}

/// A multicast route.
#[derive(Message)]
#[message(reply)]
pub struct IpMrouteDetails {
    pub route: IpMroute,
}

fn path(family: Family, itf: &Itf) -> MfibPath {
    let (sw_if_index, kind) = match itf.member {
        Member::Local => (u32::MAX, FibPathType::Local),
        Member::Interface(index) => (index.0, FibPathType::Normal),
    };
    let proto = if family == Family::Ip4 { FibPathNhProto::Ip4 } else { FibPathNhProto::Ip6 };
    let address = AddressUnion::default();
    let path = FibPath {
        sw_if_index,
        table_id: 0,
        rpf_id: 0,
        weight: 1,
        preference: 0,
        r#type: kind,
        flags: FibPathFlags(0),
        proto,
        nh: FibPathNh { address, via_label: 0, obj_id: 0, classify_table_index: 0 },
        n_labels: 0,
        label_stack: [FibMplsLabel::default(); 16],
    };
    MfibPath { itf_flags: MfibItfFlags(itf.flags.0.into()), path }
}

/// What packets get that no entry is for.
fn default_route(table_id: u32, family: Family) -> IpMroute {
    IpMroute {
        table_id,
        entry_flags: MfibEntryFlags(EntryFlags::DROP.0.into()),
        rpf_id: 0,
        prefix: Mprefix {
            af: shoal_fib::api::af_of(family),
            grp_address_length: 0,
            grp_address: AddressUnion::default(),
            src_address: AddressUnion::default(),
        },
        n_paths: Count::default(),
        paths: Vec::new(),
    }
}

fn route(table_id: u32, entry: &Entry) -> IpMroute {
    let family = entry.prefix.family();
    IpMroute {
        table_id,
        entry_flags: MfibEntryFlags(entry.flags.0.into()),
        rpf_id: 0,
        prefix: super::told(entry.prefix),
        n_paths: Count::default(),
        paths: entry.interfaces.iter().map(|itf| path(family, itf)).collect(),
    }
}

impl Dump for IpMrouteDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpMrouteDetails> + 'static {
        let (table_id, family) = (self.table.table_id, self.table.family());
        let parts = call.get::<Fib>().ok().zip(call.get::<Mfib>().ok());
        let all = parts.and_then(|(fib, mfib)| Some((mfib, fib.index_of(family, table_id).ok()?)));
        let places = all.as_ref().map(|(mfib, index)| mfib.places(family, *index));
        let default = all.iter().map(|_| default_route(table_id, family)).collect::<Vec<_>>();
        let default = default.into_iter().map(|route| IpMrouteDetails { route });
        // Each is sent as it is when its turn comes, if it is still there.
        default.chain(places.into_iter().flatten().filter_map(move |place| {
            let (mfib, _) = all.as_ref()?;
            Some(IpMrouteDetails { route: route(table_id, &mfib.entry_at(place)?) })
        }))
    }
}
