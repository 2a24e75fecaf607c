//! The entries that every table has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Change, How, Member, Mfib, Prefix, Source};
use crate::MfibError;
use crate::flags::{EntryFlags, ItfFlags};
use crate::table::EVERY_TABLE;

/// The groups that every table has an entry for, as in VPP: all hosts and all routers of a link; for IPv6 also those who ask
/// for neighbours and MLDv2's.
const EVERY_TABLES: [(IpAddr, u8); 6] = [
    (IpAddr::V4(Ipv4Addr::new(224, 0, 0, 1)), 32),
    (IpAddr::V4(Ipv4Addr::new(224, 0, 0, 2)), 32),
    (IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)), 128),
    (IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2)), 128),
    (IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16)), 128),
    (IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0)), 104),
];

impl Mfib {
    pub(super) fn say_what_every_table_has(&self) -> Result<(), MfibError> {
        let say = Change { flags: EntryFlags::ACCEPT_ALL, members: vec![(Member::Local, ItfFlags::FORWARD)] };
        EVERY_TABLES.into_iter().try_for_each(|(group, len)| {
            let prefix = Prefix::group(group, len)?;
            self.update(EVERY_TABLE, prefix, Source::Special, &say, How::More)
        })
    }
}
