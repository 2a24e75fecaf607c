//! Packets that belong to no session yet: one is made for them, or they pass, or they are dropped.

use std::net::IpAddr;

use shoal_buffer::Packet;
use shoal_flow::Handle;
use shoal_graph::Cx;
use shoal_nat::{Flow, Kind};

use super::Error;
use super::place::Place;
use super::trace::LookupOutcome;
use super::translate::{Disposition, Translate};
use crate::config::{self, Config};
use crate::packet::tuple;
use crate::policy::{PolicyKind, Question};
use crate::ports::{PortChoice, Ports};
use crate::session_direction::{Marks, Tuple};
use crate::sessions::{NO_TRANSLATION, Session, Sessions, key};
use crate::translation::{Backend, Flags, Translation, address};

/// What is known of a packet on its way out by a session of another place.
pub(super) enum Before {
    /// Nothing.
    Nothing,
    /// It stays as it is.
    Passes,
    /// It goes to a back end.
    Translated,
    /// It is an answer, or its source is translated already.
    Settled,
}

/// Whether packets go to one host somewhere else: not to a group, not to all on the link.
fn is_one_host(is_ip6: bool, dst: u128) -> bool {
    match address(is_ip6, dst) {
        IpAddr::V4(dst) => !dst.is_multicast() && !dst.is_broadcast() && !dst.is_link_local(),
        IpAddr::V6(dst) => !dst.is_multicast() && !dst.is_unicast_link_local(),
    }
}

impl<const NODE: usize> Translate<NODE> {
    /// A packet without a session.
    #[inline(never)]
    pub(super) fn begin(
        &self,
        config: &Config,
        sessions: &mut Sessions,
        (flow, table): (Flow, u32),
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Disposition<NODE> {
        if !sessions.is_open() {
            return Self::leave(pkt, cx);
        }
        let before = match Self::PLACE {
            Place::Output => self.before(sessions, (tuple(&flow), flow.protocol.0), table, pkt),
            _ => Before::Nothing,
        };
        // What is translated here already stays here: its session is here.
        let owner = match before {
            Before::Nothing => config.owner(Self::IS_IP6, flow.protocol.0, tuple(&flow)),
            _ => cx.thread(),
        };
        if owner != cx.thread() {
            Self::trace((&flow, LookupOutcome::Elsewhere(owner), None), table, pkt, cx);
            return Self::hand_over(owner, pkt);
        }
        let made = match (flow.kind, before) {
            (Kind::Error, _) | (_, Before::Passes | Before::Settled) => Ok(None),
            (_, before) if Self::PLACE == Place::Output => {
                self.outbound(config, sessions, (&flow, table, before), pkt, cx)
            }
            _ if Self::PLACE == Place::Shared => Ok(None),
            _ => self.inbound(config, sessions, (&flow, table), pkt, cx),
        };
        let Some(handle) = made? else {
            Self::trace((&flow, LookupOutcome::Nothing, None), table, pkt, cx);
            return Self::leave(pkt, cx);
        };
        self.shared.set_sessions(cx.thread(), sessions.len());
        self.follow(config, sessions, (flow, handle, LookupOutcome::New), pkt, cx)
    }

    /// The other direction's session of a packet on its way out: by the table it came by, or that of the interface it goes to.
    #[inline(always)]
    pub(super) fn before(
        &self,
        sessions: &Sessions,
        (tuple, protocol): (Tuple, u8),
        table: u32,
        pkt: &Packet<'_>,
    ) -> Before {
        let all = &self.shared.interfaces;
        let out = if Self::IS_IP6 { all.ip6_table(pkt.tx()) } else { all.ip4_table(pkt.tx()) };
        let back = tuple.reversed();
        let find =
            |table| sessions.find(key(back, protocol, Self::IS_IP6, table)).and_then(|h| sessions.way(h));
        let way = find(table).or_else(|| if out == table { None } else { find(out) });
        match way {
            None => Before::Nothing,
            Some(way) if way.marks.has(Marks::BYPASS) => Before::Passes,
            Some(way) if way.marks.has(Marks::RETURN) && way.marks.has(Marks::DESTINATION) => {
                Before::Translated
            }
            Some(_) => Before::Settled,
        }
    }

    fn ports<'a>(config: &'a Config, cx: &Cx<'_, Self>) -> Ports<'a> {
        Ports { config, thread: cx.thread(), now: cx.now(), retries: 0 }
    }

    fn session(flow: &Flow, table: u32, to: Tuple, marks: u8) -> Session {
        Session {
            from: tuple(flow),
            to,
            is_ip6: Self::IS_IP6,
            protocol: flow.protocol.0,
            table,
            back_table: table,
            translation: NO_TRANSLATION,
            marks,
        }
    }

    fn make(
        config: &Config,
        sessions: &mut Sessions,
        (session, wish): (Session, PortChoice),
        cx: &Cx<'_, Self>,
    ) -> Result<Option<Handle>, Error> {
        let mut ports = Self::ports(config, cx);
        let made = ports.make(sessions, session, wish);
        if ports.retries > 0 {
            cx.count(Error::Retries, ports.retries.into());
        }
        Ok(Some(made?))
    }

    /// A session that says that packets and their answers pass. Without one, an answer would look like the begin of a connection.
    fn pass(
        config: &Config,
        sessions: &mut Sessions,
        (flow, table): (&Flow, u32),
        cx: &Cx<'_, Self>,
    ) -> Option<Handle> {
        let is_asked = config.policy.kind != PolicyKind::None && is_one_host(Self::IS_IP6, flow.dst);
        if !is_asked || !sessions.has_room_to_pass() {
            return None;
        }
        let session = Self::session(flow, table, tuple(flow), Marks::BYPASS);
        // It passes without one, too.
        sessions.create(session, cx.now()).ok()
    }

    /// A packet that comes in, or was routed to a virtual address.
    fn inbound(
        &self,
        config: &Config,
        sessions: &mut Sessions,
        (flow, table): (&Flow, u32),
        pkt: &Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Result<Option<Handle>, Error> {
        let (is_ip6, protocol) = (Self::IS_IP6, flow.protocol.0);
        let place = config::Place { is_ip6, address: flow.dst, port: flow.dport, protocol };
        let found = if flow.kind == Kind::Query { None } else { config.find(&place) };
        let Some(translation) = found else {
            // Where it goes out may decide otherwise.
            let waits = config.policy.includes(is_ip6, pkt.rx());
            let passes = Self::PLACE == Place::Input && !waits;
            return Ok(if passes { Self::pass(config, sessions, (flow, table), cx) } else { None });
        };
        let hash = if is_ip6 {
            translation.fields.hash_ip6(pkt.data(), 0)
        } else {
            translation.fields.hash_ip4(pkt.data(), 0)
        };
        let guard = cx.guard();
        let is_ready = |backend: &Backend| self.shared.leads_on(is_ip6, table, backend.destination, guard);
        let backend = translation.pick(hash, is_ready).ok_or(Error::NoBackend)?;
        let wanted = Self::to_backend(flow, table, translation, backend);
        Self::make(config, sessions, wanted, cx)
    }

    fn to_backend(
        flow: &Flow,
        table: u32,
        translation: &Translation,
        backend: &Backend,
    ) -> (Session, PortChoice) {
        let flags = translation.flags;
        let sport = if backend.source_port == 0 { flow.sport } else { backend.source_port };
        let src = backend.source.unwrap_or(flow.src);
        let to = Tuple { src, dst: backend.destination, sport, dport: backend.port };
        let mut marks = Marks::DESTINATION;
        if backend.no_nat {
            marks |= Marks::NO_NAT;
        }
        // Answers to packets that stay as they are need nothing, either.
        if backend.no_nat || flags.has(Flags::NO_RETURN_SESSION) {
            marks |= Marks::ALONE;
        }
        let wish = match backend {
            Backend { source_port: 1.., .. } => PortChoice::Fixed,
            Backend { source: Some(_), .. } if flags.has(Flags::ALLOC_PORT) => PortChoice::Any,
            _ => PortChoice::Kept,
        };
        let session = Self::session(flow, table, to, marks);
        (Session { translation: (translation.id, translation.serial), ..session }, wish)
    }

    /// A packet that goes out.
    fn outbound(
        &self,
        config: &Config,
        sessions: &mut Sessions,
        (flow, table, before): (&Flow, u32, Before),
        pkt: &Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Result<Option<Handle>, Error> {
        let is_ip6 = Self::IS_IP6;
        let translated = matches!(before, Before::Translated);
        let (rx, tx) = (pkt.rx(), pkt.tx());
        let asked = Question { is_ip6, rx, tx, src: flow.src, dst: flow.dst, translated };
        let is_shared = config.snat_addresses.get(&(is_ip6, flow.src)).is_some();
        let wants = !is_shared && is_one_host(is_ip6, flow.dst) && config.policy.wants(&asked);
        let shared = if wants { config.snat(is_ip6, table) } else { None };
        let Some((src, back_table)) = shared else {
            let passes = !translated;
            return Ok(if passes { Self::pass(config, sessions, (flow, table), cx) } else { None });
        };
        let all = &self.shared.interfaces;
        let out = if is_ip6 { all.ip6_table(tx) } else { all.ip4_table(tx) };
        let to = Tuple { src, ..tuple(flow) };
        let session = Self::session(flow, table, to, Marks::SOURCE);
        let session = Session { back_table: back_table.unwrap_or(out), ..session };
        Self::make(config, sessions, (session, PortChoice::Kept), cx)
    }
}
