//! What becomes of a neighbour when a message speaks of it. RFC 4861 7.2.3, 7.2.5 and appendix C.

use std::net::Ipv6Addr;

use shoal_interface::SwIfIndex;
use shoal_neighbor::table::Proof;
use shoal_neighbor::{Role, State};
use shoal_wire::MacAddress;
use shoal_wire::ip6_address::ALL_NODES;
use shoal_wire::nd::NaFlags;

use super::Nd;
use crate::Key;
use crate::counters::Kind;
use crate::frame::{self, MessageRoute};

/// What is to be done with an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// Nothing.
    Ignore,
    /// Only the role may be new.
    Keep,
    /// It is no longer sure.
    Doubt,
    /// It is entered, or changed.
    Enter(MacAddress, State),
}

/// 7.2.3: a solicitation makes an entry or changes its address; it never confirms that we reach the sender.
fn by_solicitation(known: Option<(MacAddress, State)>, mac: MacAddress) -> Verdict {
    match known {
        Some((old, _)) if old == mac => Verdict::Ignore,
        _ => Verdict::Enter(mac, State::Stale),
    }
}

/// 7.2.5. Whether we have asked decides besides the flag whether an answer is one: no station can confirm itself.
fn by_advertisement(
    known: Option<(MacAddress, State)>,
    asked: Asked,
    mac: Option<MacAddress>,
    flags: NaFlags,
) -> Verdict {
    let solicited = flags.contains(NaFlags::SOLICITED) && asked == Asked::Yes;
    let sure = if solicited { State::Reachable } else { State::Stale };
    match (known, mac) {
        // We did not ask, so the answer is ignored; and an answer that lacks the address is none.
        (None, _) if asked == Asked::No => Verdict::Ignore,
        (None, None) => Verdict::Ignore,
        (None, Some(mac)) => Verdict::Enter(mac, sure),
        (Some((old, state)), Some(new)) if new != old && !flags.contains(NaFlags::OVERRIDE) => {
            if state == State::Reachable { Verdict::Doubt } else { Verdict::Ignore }
        }
        (Some((old, _)), new) if solicited => Verdict::Enter(new.unwrap_or(old), State::Reachable),
        (Some((old, _)), Some(new)) if new != old => Verdict::Enter(new, State::Stale),
        (Some(_), _) => Verdict::Keep,
    }
}

/// Whether the link is being asked for a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Yes,
    No,
}

impl Nd {
    /// Tells all nodes of a link that an address is this router's, without being asked (RFC 4861 7.2.6); false without
    /// a buffer or an interface.
    pub fn announce(&self, interface: SwIfIndex, address: Ipv6Addr) -> bool {
        let Ok(data) = self.interfaces.data(interface) else { return false };
        let way = MessageRoute::to_group(data.mac(), address, ALL_NODES);
        let frame = frame::advertisement(&way, address, NaFlags::ROUTER | NaFlags::OVERRIDE);
        let sent = frame.is_some_and(|bytes| self.send(interface, &bytes));
        if sent {
            self.counters.count_tx(Kind::UnsolicitedAdvertisement, 0, interface);
        }
        sent
    }

    fn known(&self, key: Key) -> Option<(MacAddress, State)> {
        let neighbour = self.neighbours.get(key)?;
        Some((neighbour.mac, self.neighbours.state(key).unwrap_or(State::Stale)))
    }

    /// A station that asks gave its link-layer address.
    pub(super) fn solicited(&self, key: Key, mac: MacAddress) {
        let role = self.neighbours.role(key);
        self.apply(key, by_solicitation(self.known(key), mac), role);
    }

    /// A station gave the link-layer address of an address.
    pub(super) fn advertised(&self, key: Key, mac: Option<MacAddress>, flags: NaFlags) {
        let asked = if self.neighbours.is_asked(key) { Asked::Yes } else { Asked::No };
        let role = if flags.contains(NaFlags::ROUTER) { Role::Router } else { Role::Host };
        self.apply(key, by_advertisement(self.known(key), asked, mac, flags), role);
    }

    /// A router gave its link-layer address (6.3.4).
    pub(super) fn advertised_router(&self, key: Key, mac: MacAddress) {
        match by_solicitation(self.known(key), mac) {
            Verdict::Ignore => self.neighbours.set_role(key, Role::Router),
            verdict => self.apply(key, verdict, Role::Router),
        }
    }

    fn apply(&self, key: Key, verdict: Verdict, role: Role) {
        if self.is_static(key) {
            return;
        }
        match verdict {
            Verdict::Ignore => {}
            Verdict::Keep => self.neighbours.set_role(key, role),
            Verdict::Doubt => self.neighbours.doubt(key, State::Stale),
            Verdict::Enter(mac, state) => {
                // A refusal is counted and logged already.
                let proof = if state == State::Reachable { Proof::Answered } else { Proof::Said };
                let _ = self.neighbours.learn(key, mac, (state, proof), role);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const NEW: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
    const NONE: NaFlags = NaFlags(0);
    const STATES: [State; 4] = [State::Reachable, State::Stale, State::Delay, State::Probe];

    #[test]
    fn solicitations_follow_appendix_c() {
        assert_eq!(by_solicitation(None, NEW), Verdict::Enter(NEW, State::Stale));
        for state in STATES {
            assert_eq!(by_solicitation(Some((OLD, state)), OLD), Verdict::Ignore);
            assert_eq!(by_solicitation(Some((OLD, state)), NEW), Verdict::Enter(NEW, State::Stale));
        }
    }

    #[test]
    fn unsolicited_advertisements_make_no_entry() {
        let flags = NaFlags::SOLICITED | NaFlags::OVERRIDE;
        assert_eq!(by_advertisement(None, Asked::No, Some(NEW), flags), Verdict::Ignore);
        assert_eq!(by_advertisement(None, Asked::Yes, None, flags), Verdict::Ignore);
        assert_eq!(
            by_advertisement(None, Asked::Yes, Some(NEW), flags),
            Verdict::Enter(NEW, State::Reachable)
        );
        assert_eq!(by_advertisement(None, Asked::Yes, Some(NEW), NONE), Verdict::Enter(NEW, State::Stale));
    }

    #[test]
    fn advertisements_follow_appendix_c() {
        for state in STATES {
            let known = Some((OLD, state));
            // Another address without override.
            let want = if state == State::Reachable { Verdict::Doubt } else { Verdict::Ignore };
            assert_eq!(by_advertisement(known, Asked::Yes, Some(NEW), NONE), want);
            assert_eq!(by_advertisement(known, Asked::Yes, Some(NEW), NaFlags::SOLICITED), want);
            // With override.
            let both = NaFlags::SOLICITED | NaFlags::OVERRIDE;
            assert_eq!(
                by_advertisement(known, Asked::Yes, Some(NEW), both),
                Verdict::Enter(NEW, State::Reachable)
            );
            assert_eq!(
                by_advertisement(known, Asked::No, Some(NEW), NaFlags::OVERRIDE),
                Verdict::Enter(NEW, State::Stale)
            );
            // The same address, or none.
            for mac in [Some(OLD), None] {
                let sure = Verdict::Enter(OLD, State::Reachable);
                assert_eq!(by_advertisement(known, Asked::Yes, mac, NaFlags::SOLICITED), sure);
                assert_eq!(by_advertisement(known, Asked::No, mac, NaFlags::SOLICITED), Verdict::Keep);
                assert_eq!(by_advertisement(known, Asked::Yes, mac, NaFlags::OVERRIDE), Verdict::Keep);
            }
        }
    }
}
