//! Sessions as collectors of logs and of flow records hear of them.

use std::rc::Rc;

use shoal_nat44::export::Translation6;
use shoal_syslog::{Facility, Message, Severity};

use super::Nat64;
use crate::config::{Inside, Outside};
use crate::sessions::Record;
use crate::shared::ThreadEvent;

impl Nat64 {
    /// Tells what threads say.
    pub(crate) async fn log(self: Rc<Self>) {
        let pace = shoal_module::cli::Pace::default();
        while let Ok(told) = self.told.recv().await {
            match told {
                ThreadEvent::Session(begins, record) => {
                    self.syslog.send(message(begins, self.vrf(record.inside.table), &record));
                    self.export_session(begins, &record);
                }
                ThreadEvent::Binding(begins, inside, outside) => {
                    self.export_binding(begins, &inside, outside);
                }
                ThreadEvent::Exhausted(what) => self.export.exhausted(what),
            }
            pace.give_way().await;
        }
    }

    fn translation(&self, inside: &Inside, outside: Outside) -> Translation6 {
        Translation6 {
            inside: (inside.address, inside.port),
            outside: (outside.address.to_bits(), outside.port),
            protocol: inside.protocol,
            vrf: self.vrf(inside.table),
        }
    }

    pub(super) fn export_binding(&self, begins: bool, inside: &Inside, outside: Outside) {
        self.export.binding6(begins, &self.translation(inside, outside));
    }

    fn export_session(&self, begins: bool, record: &Record) {
        let Record { inside, outside, remote: (remote, port), .. } = record;
        let seen = self.of_internet(inside.table, *remote);
        let of = self.translation(inside, *outside);
        self.export.session6(begins, &of, (seen, remote.to_bits()), *port);
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
