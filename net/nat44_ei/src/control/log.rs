//! What happens to sessions, told to collectors and to another router.

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_syslog::{Facility, Message, Severity};

use super::Nat44Ei;
use crate::blocks::BlockEvent;
use crate::config::Algorithm;
use crate::sessions::{Event, Record};
use crate::shared::ThreadEvent;

impl Nat44Ei {
    /// Tells what threads say.
    pub(crate) async fn listen(self: Rc<Self>) {
        let pace = shoal_module::cli::Pace::default();
        while let Ok(told) = self.told.recv().await {
            if matches!(told, ThreadEvent::Changed) {
                // A command may end millions.
                while let Some(told) = self.next_changed() {
                    self.pass(&told);
                    pace.give_way().await;
                }
            }
            self.pass(&told);
            pace.give_way().await;
        }
    }

    /// Passes what a thread told to everything that listens.
    pub(super) fn pass(&self, told: &ThreadEvent) {
        match told {
            ThreadEvent::Session { thread, event, record } => {
                self.replicate(*thread, *event, record);
                // Its block has been logged.
                let has_block =
                    matches!(self.algorithm(), Algorithm::Blocks { .. }) && !record.session.is_static;
                if *event != Event::Used && !has_block {
                    let vrf = self.vrf_of_table(record.session.inside_table);
                    self.syslog.send(message(*event, vrf, record));
                    self.export_session(*event, record);
                }
            }
            ThreadEvent::Block(block) => {
                self.syslog.send(block_message(self.vrf_of_table(block.host.1), block));
                self.export_block(block);
            }
            ThreadEvent::Exhausted(what) => self.export.exhausted(*what),
            ThreadEvent::Changed => {
                while let Some(told) = self.next_changed() {
                    self.pass(&told);
                }
            }
        }
    }

    fn next_changed(&self) -> Option<ThreadEvent> {
        self.changed.borrow_mut().pop_front()
    }

    /// Passes on what a command has done to sessions, after what threads have told before.
    pub(super) fn pass_later(&self, all: impl Iterator<Item = ThreadEvent>) {
        if !self.shared.news.are_wanted() {
            return;
        }
        self.changed.borrow_mut().extend(all);
        if !self.changed.borrow().is_empty() && !self.shared.news.send(ThreadEvent::Changed) {
            self.pass(&ThreadEvent::Changed);
        }
    }

    /// Whether threads tell what happens.
    pub(super) fn renew_listening(&self) {
        self.shared.news.set_listens(self.replicates());
    }
}

/// As VPP says it: which port stands for which. Destinations are not logged (RFC 6888, REQ-12).
fn message(event: Event, vrf: u32, record: &Record) -> Message {
    let session = &record.session;
    let id = if event == Event::Begins { "APMADD" } else { "APMDEL" };
    Message::new(Facility::Local0, Severity::Informational, "NAT", id)
        .element("napmap")
        .param("SSUBIX", record.user)
        .param("SVLAN", vrf)
        .param("IATYP", "IPv4")
        .param("ISADDR", Ipv4Addr::from_bits(session.inside.0))
        .param("ISPORT", session.inside.1)
        .param("XATYP", "IPv4")
        .param("XSADDR", Ipv4Addr::from_bits(session.outside.0))
        .param("XSPORT", session.outside.1)
        .param("PROTO", session.protocol)
}

/// VPP has no blocks; these are named as its messages are.
fn block_message(vrf: u32, block: &BlockEvent) -> Message {
    let id = if block.begins { "PBADD" } else { "PBDEL" };
    Message::new(Facility::Local0, Severity::Informational, "NAT", id)
        .element("npblock")
        .param("SVLAN", vrf)
        .param("IATYP", "IPv4")
        .param("ISADDR", Ipv4Addr::from_bits(block.host.0))
        .param("XATYP", "IPv4")
        .param("XSADDR", Ipv4Addr::from_bits(block.address))
        .param("XPFIRST", block.first)
        .param("XPLAST", block.last)
}
