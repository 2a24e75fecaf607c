//! Sessions as a syslog collector hears of them.

use std::rc::Rc;

use shoal_syslog::{Facility, Message, Severity};

use super::Nat64;
use crate::sessions::Record;

impl Nat64 {
    /// Logs sessions as they begin and end.
    pub(crate) async fn log(self: Rc<Self>) {
        let pace = shoal_module::cli::Pace::default();
        while let Ok((begins, record)) = self.told.recv().await {
            self.syslog.send(message(begins, self.vrf(record.inside.table), &record));
            pace.give_way().await;
        }
    }
}

/// As VPP says it.
fn message(begins: bool, vrf: u32, record: &Record) -> Message {
    let Record { inside, outside, remote, .. } = record;
    let id = if begins { "SADD" } else { "SDEL" };
    Message::new(Facility::Local0, Severity::Informational, "NAT", id)
        .element("nsess")
        .param("SVLAN", vrf)
        .param("IATYP", "IPv6")
        .param("ISADDR", inside.address)
        .param("ISPORT", inside.port)
        .param("XATYP", "IPv4")
        .param("XSADDR", outside.address)
        .param("XSPORT", outside.port)
        .param("PROTO", inside.protocol)
        .param("XDADDR", remote.0)
        .param("XDPORT", remote.1)
}
