//! The state machines of one port: IEEE 802.1AX, 6.4.11 to 6.4.16, with coupled multiplexing. They know nothing of interfaces
//! and clocks: what happens is told to them with the time, and what is to be done is asked of them.

use std::time::Duration;

use shoal_graph::clock::Time;

use crate::pdu::{End, Pdu, State};

/// Between PDUs that are expected each second.
const FAST: Duration = Duration::from_secs(1);
/// Between others.
const SLOW: Duration = Duration::from_secs(30);
/// After so many that were missed the other end is gone.
const MISSED: u32 = 3;
/// Until a port that was chosen is attached, so that others of the bond come along.
const AGGREGATE: Duration = Duration::from_secs(2);
/// PDUs in a second.
const MOST_SENT: usize = 3;

/// What is known of the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rx {
    /// The link is down.
    PortDisabled,
    /// It was heard once, and not for some time; or not yet.
    Expired,
    /// It is not there.
    Defaulted,
    /// It is heard.
    Current,
}

/// How far the link is part of the bond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mux {
    /// It is none.
    Detached,
    /// It was chosen and waits for others.
    Waiting,
    /// It is one, the other end does not say so yet.
    Attached,
    /// Both ends use it.
    CollectingDistributing,
}

/// How often PDUs are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Periodic {
    /// Never.
    No,
    /// Each second.
    Fast,
    /// Each half minute.
    Slow,
}

/// One port.
#[derive(Clone, Debug)]
pub struct Port {
    /// This end.
    pub actor: End,
    /// The other end.
    pub partner: End,
    /// What is known of it.
    pub rx: Rx,
    /// How far the link is part of the bond.
    pub mux: Mux,
    /// How often PDUs are sent.
    pub periodic: Periodic,
    /// Whether the link is up.
    pub enabled: bool,
    /// Whether the bond has room for it: the other end is the one of the others.
    pub fits: bool,
    /// Something is to be sent to the other end.
    need_to_transmit: bool,
    /// When the other end is given up.
    current_until: Option<Time>,
    /// When the next PDU is due.
    next_periodic: Option<Time>,
    /// When it has waited long enough.
    wait_until: Option<Time>,
    /// When the last PDUs were sent.
    sent: [Option<Time>; MOST_SENT],
}

impl Port {
    /// A port without known facts; the link is down.
    pub fn new(actor: End) -> Port {
        let mut port = Port {
            actor,
            partner: End::default(),
            rx: Rx::PortDisabled,
            mux: Mux::Detached,
            periodic: Periodic::No,
            enabled: false,
            fits: true,
            need_to_transmit: false,
            current_until: None,
            next_periodic: None,
            wait_until: None,
            sent: [None; MOST_SENT],
        };
        port.record_default();
        port
    }

    fn say(&mut self, bit: State, on: bool) {
        self.actor.state = self.actor.state.set(bit, on);
    }

    /// An end that is not there is taken for one that wants to hear as often as this one does: it is looked for that often.
    fn record_default(&mut self) {
        let short = self.actor.state.has(State::TIMEOUT);
        self.partner = End { state: State::default().set(State::TIMEOUT, short), ..End::default() };
        self.say(State::DEFAULTED, true);
    }

    /// The link comes up or goes down.
    pub fn set_enabled(&mut self, enabled: bool, now: Time) {
        if self.enabled == enabled {
            return;
        }
        self.enabled = enabled;
        if enabled {
            self.expire(now);
        } else {
            self.rx = Rx::PortDisabled;
            self.partner.state = self.partner.state.set(State::SYNC, false);
            self.say(State::EXPIRED, false);
            self.record_default();
            self.current_until = None;
        }
    }

    fn expire(&mut self, now: Time) {
        self.rx = Rx::Expired;
        self.say(State::EXPIRED, true);
        self.partner.state = self.partner.state.set(State::SYNC, false).set(State::TIMEOUT, true);
        self.current_until = Some(now.after(FAST * MISSED));
    }

    /// A PDU came.
    pub fn hear(&mut self, pdu: &Pdu, now: Time) {
        if !self.enabled {
            return;
        }
        // What the other end thinks of this one is not so: tell it.
        const TOLD: [State; 4] = [State::ACTIVITY, State::TIMEOUT, State::SYNC, State::AGGREGATION];
        let wrong = |bit: &State| pdu.partner.state.has(*bit) != self.actor.state.has(*bit);
        let knows_us = pdu.partner.is_same_port(&self.actor);
        self.need_to_transmit |= !knows_us || TOLD.iter().any(wrong);
        let moved = self.rx == Rx::Current && !pdu.actor.is_same_port(&self.partner);
        self.partner = pdu.actor;
        self.say(State::DEFAULTED, false);
        self.say(State::EXPIRED, false);
        // 6.4.9: it is in sync if it means this port, or is a link of its own; and somebody has to speak.
        let alone = !pdu.actor.state.has(State::AGGREGATION);
        let speaks = pdu.actor.state.has(State::ACTIVITY)
            || (self.actor.state.has(State::ACTIVITY) && pdu.partner.state.has(State::ACTIVITY));
        let in_sync = pdu.actor.state.has(State::SYNC) && (knows_us || alone) && speaks;
        self.partner.state = self.partner.state.set(State::SYNC, in_sync);
        self.rx = Rx::Current;
        let each = if self.actor.state.has(State::TIMEOUT) { FAST } else { SLOW };
        self.current_until = Some(now.after(each * MISSED));
        if moved {
            // Another port is at the other end: begin again.
            self.detach();
        }
    }

    /// The clock goes on, or something happened: what follows from it.
    pub fn run(&mut self, now: Time) {
        if self.current_until.is_some_and(|until| until <= now) {
            match self.rx {
                Rx::Current => self.expire(now),
                Rx::Expired => {
                    self.rx = Rx::Defaulted;
                    self.say(State::EXPIRED, false);
                    self.record_default();
                    self.current_until = None;
                }
                Rx::PortDisabled | Rx::Defaulted => self.current_until = None,
            }
        }
        self.choose_period(now);
        self.run_mux(now);
    }

    fn choose_period(&mut self, now: Time) {
        let speaks = self.actor.state.has(State::ACTIVITY) || self.partner.state.has(State::ACTIVITY);
        let wanted = match () {
            () if !self.enabled || !speaks => Periodic::No,
            () if self.partner.state.has(State::TIMEOUT) => Periodic::Fast,
            () => Periodic::Slow,
        };
        if wanted != self.periodic {
            // From slow to fast: the other end has waited long enough.
            self.need_to_transmit |= wanted == Periodic::Fast;
            self.periodic = wanted;
            self.next_periodic = None;
        }
        let each = match self.periodic {
            Periodic::No => return,
            Periodic::Fast => FAST,
            Periodic::Slow => SLOW,
        };
        if self.next_periodic.is_none_or(|due| due <= now) {
            self.need_to_transmit |= self.next_periodic.is_some();
            self.next_periodic = Some(now.after(each));
        }
    }

    fn is_selected(&self) -> bool {
        self.enabled && self.fits && matches!(self.rx, Rx::Current | Rx::Expired) && self.is_known()
    }

    /// Whether the other end is known.
    pub fn is_known(&self) -> bool {
        !self.actor.state.has(State::DEFAULTED)
    }

    fn detach(&mut self) {
        self.mux = Mux::Detached;
        self.wait_until = None;
        for bit in [State::SYNC, State::COLLECTING, State::DISTRIBUTING] {
            self.say(bit, false);
        }
        self.need_to_transmit = true;
    }

    fn use_link(&mut self, on: bool) {
        self.mux = if on { Mux::CollectingDistributing } else { Mux::Attached };
        self.say(State::COLLECTING, on);
        self.say(State::DISTRIBUTING, on);
        self.need_to_transmit = true;
    }

    fn run_mux(&mut self, now: Time) {
        // Each turn gets one step further; there are four states.
        for _ in 0..4 {
            let (selected, in_sync) = (self.is_selected(), self.partner.state.has(State::SYNC));
            match self.mux {
                Mux::Detached if selected => {
                    self.mux = Mux::Waiting;
                    self.wait_until = Some(now.after(AGGREGATE));
                }
                Mux::Detached => return,
                _ if !selected => self.detach(),
                Mux::Waiting if self.wait_until.is_some_and(|until| until <= now) => {
                    self.wait_until = None;
                    self.mux = Mux::Attached;
                    self.say(State::SYNC, true);
                    self.need_to_transmit = true;
                }
                Mux::Attached if in_sync => self.use_link(true),
                Mux::CollectingDistributing if !in_sync => self.use_link(false),
                Mux::Waiting | Mux::Attached | Mux::CollectingDistributing => return,
            }
        }
    }

    /// The PDU that is to be sent now, if one is and may be.
    pub fn transmit(&mut self, now: Time) -> Option<Pdu> {
        if !self.need_to_transmit || self.periodic == Periodic::No || self.next_chance() > Some(now) {
            return None;
        }
        self.need_to_transmit = false;
        self.sent.rotate_right(1);
        if let Some(last) = self.sent.first_mut() {
            *last = Some(now);
        }
        Some(Pdu { actor: self.actor, partner: self.partner })
    }

    /// When the next PDU may be sent; `None`: at any time.
    fn next_chance(&self) -> Option<Time> {
        self.sent.last().copied().flatten().map(|oldest| oldest.after(FAST))
    }

    /// When the clock is to be read again.
    pub fn deadline(&self) -> Option<Time> {
        let waits =
            if self.need_to_transmit && self.periodic != Periodic::No { self.next_chance() } else { None };
        [self.current_until, self.next_periodic, self.wait_until, waits].into_iter().flatten().min()
    }

    /// Whether both ends use the link.
    pub fn is_used(&self) -> bool {
        self.mux == Mux::CollectingDistributing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(system: u8, port: u16, state: State) -> End {
        End {
            system_priority: 0xffff,
            system: [2, 0, 0, 0, 0, system],
            key: 7,
            port_priority: 0xff,
            port,
            state,
        }
    }

    const ACTIVE: State = State(State::ACTIVITY.0 | State::TIMEOUT.0 | State::AGGREGATION.0);

    /// Two ports, a clock, and a link between them that may lose everything.
    struct Link {
        ports: [Port; 2],
        now: Time,
        broken: bool,
        sent: usize,
    }

    impl Link {
        fn new(states: [State; 2]) -> Link {
            let [a, b] = states;
            let ports = [Port::new(end(1, 1, a)), Port::new(end(2, 1, b))];
            let mut link = Link { ports, now: Time::default(), broken: false, sent: 0 };
            link.ports.iter_mut().for_each(|port| port.set_enabled(true, Time::default()));
            link.pass(0);
            link
        }

        fn exchange(&mut self) {
            for from in [0, 1] {
                self.ports[from].run(self.now);
                while let Some(pdu) = self.ports[from].transmit(self.now) {
                    self.sent += 1;
                    if !self.broken {
                        self.ports[1 - from].hear(&pdu, self.now);
                        self.ports[1 - from].run(self.now);
                    }
                }
            }
        }

        fn pass(&mut self, milliseconds: u64) {
            for _ in 0..=milliseconds / 100 {
                self.exchange();
                self.now = self.now.after(Duration::from_millis(100));
            }
        }

        fn used(&self) -> [bool; 2] {
            self.ports.each_ref().map(Port::is_used)
        }
    }

    #[test]
    fn two_ends_agree_and_part_when_nothing_is_heard() {
        let mut link = Link::new([ACTIVE, ACTIVE]);
        link.pass(1500);
        assert_eq!(link.used(), [false, false], "they wait for other links");
        link.pass(2500);
        assert_eq!(link.used(), [true, true]);
        assert_eq!(link.ports[0].rx, Rx::Current);
        link.broken = true;
        link.pass(1500);
        assert_eq!(link.used(), [true, true]);
        link.pass(2500);
        assert_eq!(link.used(), [false, false], "three seconds are over");
        link.pass(4000);
        assert_eq!(link.ports[0].rx, Rx::Defaulted);
        assert_eq!(link.ports[0].mux, Mux::Detached);
        link.broken = false;
        link.pass(5000);
        assert_eq!(link.used(), [true, true]);
    }

    #[test]
    fn a_passive_end_answers_and_two_of_them_are_silent() {
        let passive = State(ACTIVE.0 & !State::ACTIVITY.0);
        let mut link = Link::new([ACTIVE, passive]);
        link.pass(5000);
        assert_eq!(link.used(), [true, true]);
        let mut link = Link::new([passive, passive]);
        link.pass(20_000);
        assert_eq!((link.used(), link.sent), ([false, false], 0));
    }

    #[test]
    fn with_a_long_timeout_the_other_end_speaks_seldom() {
        let long = State(ACTIVE.0 & !State::TIMEOUT.0);
        let mut link = Link::new([long, long]);
        link.pass(10_000);
        assert_eq!(link.used(), [true, true]);
        let sent = link.sent;
        link.pass(60_000);
        assert!((3..=6).contains(&(link.sent - sent)), "{}", link.sent - sent);
        link.broken = true;
        link.pass(60_000);
        assert_eq!(link.used(), [true, true]);
        link.pass(31_000);
        assert_eq!(link.used(), [false, false]);
    }

    #[test]
    fn never_more_than_three_pdus_a_second() {
        let mut port = Port::new(end(1, 1, ACTIVE));
        let mut now = Time::default();
        port.set_enabled(true, now);
        let mut sent = 0;
        for n in 0..100 {
            // The other end changes its mind all the time.
            let partner = End { port: n % 7, ..end(1, 1, ACTIVE) };
            port.hear(&Pdu { actor: end(2, n, State(n as u8)), partner }, now);
            port.run(now);
            sent += usize::from(port.transmit(now).is_some());
            now = now.after(Duration::from_millis(10));
        }
        assert_eq!(sent, 3);
        assert!(port.deadline().is_some());
    }

    #[test]
    fn a_link_that_goes_down_is_left_at_once_and_one_that_does_not_fit_is_not_taken() {
        let mut link = Link::new([ACTIVE, ACTIVE]);
        link.pass(5000);
        let now = link.now;
        link.ports[0].set_enabled(false, now);
        link.ports[0].run(now);
        assert_eq!((link.ports[0].is_used(), link.ports[0].transmit(now)), (false, None));
        link.ports[0].set_enabled(true, now);
        link.ports[0].fits = false;
        link.pass(6000);
        assert_eq!(link.used(), [false, false]);
        link.ports[0].fits = true;
        link.pass(6000);
        assert_eq!(link.used(), [true, true]);
    }
}
