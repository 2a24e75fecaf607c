//! What happens to sessions, told to log collectors and flow collectors.

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_nat44::export::Translation;
use shoal_syslog::{Facility, Message, Severity};

use super::Nat44;
use crate::session_direction::Marks;
use crate::sessions::{Event, Session};
use crate::shared::ThreadEvent;

impl Nat44 {
    /// Tells what threads say.
    pub(crate) async fn listen(self: Rc<Self>) {
        let pace = shoal_module::cli::Pace::default();
        while let Ok(told) = self.told.recv().await {
            match told {
                ThreadEvent::Session(event, session) => self.log(event, &session),
                ThreadEvent::Exhausted(what) => self.export.exhausted(what),
                ThreadEvent::Ended => {
                    // A command may end millions.
                    while let Some((event, session)) = self.next_ended() {
                        self.log(event, &session);
                        pace.give_way().await;
                    }
                }
            }
            pace.give_way().await;
        }
    }

    fn next_ended(&self) -> Option<(Event, Session)> {
        self.ended.borrow_mut().pop_front()
    }

    /// Logs sessions that a command has ended, after the events of threads.
    pub(super) fn log_later(&self, events: Vec<(Event, Session)>) {
        if events.is_empty() {
            return;
        }
        self.ended.borrow_mut().extend(events);
        if !self.shared.news.send(ThreadEvent::Ended) {
            while let Some((event, session)) = self.next_ended() {
                self.log(event, &session);
            }
        }
    }

    /// Tells what happened to a session.
    fn log(&self, event: Event, session: &Session) {
        let vrf = self.vrf_of_table(session.inside_table);
        self.syslog.send(message(event, vrf, session));
        let Session { inside, outside, protocol, .. } = *session;
        let (inside, outside) = ((inside.src, inside.sport), (outside.src, outside.sport));
        self.export.session(event == Event::Begins, &Translation { inside, outside, protocol, vrf });
    }

    /// The observation domain and port of records, if there are any.
    pub fn ipfix(&self) -> Option<(u32, u16)> {
        self.export.stream()
    }

    /// Tells collectors of sessions, in a domain and from a port (0: as usual); `None`: does so no more.
    /// It is so of all kinds of NAT, whether they are on or off. Nothing changes if it is so already.
    pub fn set_ipfix(&self, stream: Option<(u32, u16)>) {
        self.export.set(stream);
    }
}

/// As VPP says it: host and port, what stands for them, and the far end as the world sees it. Of twice-NAT, the far end as the host
/// sees it, too.
fn message(event: Event, vrf: u32, session: &Session) -> Message {
    let id = if event == Event::Begins { "SADD" } else { "SDEL" };
    let (inside, outside) = (session.inside, session.outside);
    let message = Message::new(Facility::Local0, Severity::Informational, "NAT", id)
        .element("nsess")
        .param("SSUBIX", 0)
        .param("SVLAN", vrf)
        .param("IATYP", "IPv4")
        .param("ISADDR", Ipv4Addr::from_bits(inside.src))
        .param("ISPORT", inside.sport)
        .param("XATYP", "IPv4")
        .param("XSADDR", Ipv4Addr::from_bits(outside.src))
        .param("XSPORT", outside.sport)
        .param("PROTO", session.protocol)
        .param("XDADDR", Ipv4Addr::from_bits(outside.dst))
        .param("XDPORT", outside.dport);
    if session.marks & Marks::TWICE == 0 {
        return message;
    }
    message.param("IDADDR", Ipv4Addr::from_bits(inside.dst)).param("IDPORT", inside.dport)
}
