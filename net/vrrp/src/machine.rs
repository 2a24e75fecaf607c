//! One router's part of a virtual router: states and times, without any packet or clock. RFC 9568, 6.

use std::fmt;

/// Nanoseconds on the router's clock.
pub type Nanos = u64;

/// Nanoseconds of a hundredth of a second.
const CENTISECOND: u64 = 10_000_000;
/// The priority of the router that has the addresses as its own.
pub const OWNER: u8 = 255;

/// What this router is to the virtual router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not started.
    Initialize,
    /// Another one has the addresses.
    Backup,
    /// This one has them.
    Master,
    /// Started, but its interface carries nothing.
    InterfaceDown,
}

impl State {
    /// VPP's number.
    pub const fn number(self) -> u32 {
        match self {
            State::Initialize => 0,
            State::Backup => 1,
            State::Master => 2,
            State::InterfaceDown => 3,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Initialize => "Initialize",
            State::Backup => "Backup",
            State::Master => "Master",
            State::InterfaceDown => "Interface Down",
        })
    }
}

/// What follows from an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Todo {
    /// An advertisement of this priority is sent.
    pub send: Option<u8>,
    /// The state was another one before.
    pub was: Option<State>,
}

/// Another router's advertisement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerAdvertisement {
    /// Its priority.
    pub priority: u8,
    /// Its interval.
    pub interval: u16,
    /// Its address is higher than this router's.
    pub is_higher: bool,
}

/// States and times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// As configured.
    pub priority: u8,
    /// By how much what is tracked lowers it.
    pub lowered: u32,
    /// How often this router would tell, in hundredths of a second.
    pub interval: u16,
    /// Takes the addresses from a router of lower priority.
    pub preempt: bool,
    /// The state.
    pub state: State,
    /// How often the one that has the addresses tells.
    pub master_interval: u16,
    /// When it is looked at next.
    pub due: Option<Nanos>,
}

impl Machine {
    /// Not started.
    pub const fn new(priority: u8, interval: u16, preempt: bool) -> Self {
        Machine {
            priority,
            lowered: 0,
            interval,
            preempt,
            state: State::Initialize,
            master_interval: interval,
            due: None,
        }
    }

    /// The priority that counts: at least 1, and that of an owner whatever is tracked.
    pub fn adjusted(&self) -> u8 {
        if self.priority == OWNER {
            return OWNER;
        }
        u32::from(self.priority).saturating_sub(self.lowered).max(1) as u8
    }

    /// By how much routers of lower priority wait longer, in hundredths of a second.
    pub fn skew(&self) -> u16 {
        ((256 - u32::from(self.adjusted())) * u32::from(self.master_interval) / 256) as u16
    }

    /// After how long without an advertisement the one that had the addresses is gone, in hundredths of a second.
    pub fn master_down(&self) -> u16 {
        (3 * self.master_interval).saturating_add(self.skew())
    }

    fn skew_nanos(&self) -> u64 {
        (256 - u64::from(self.adjusted())) * u64::from(self.master_interval) * CENTISECOND / 256
    }

    fn down_nanos(&self) -> u64 {
        3 * u64::from(self.master_interval) * CENTISECOND + self.skew_nanos()
    }

    fn enter(&mut self, state: State, todo: Todo) -> Todo {
        let was = std::mem::replace(&mut self.state, state);
        Todo { was: (was != state).then_some(was), ..todo }
    }

    fn become_master(&mut self, now: Nanos) -> Todo {
        self.master_interval = self.interval;
        self.due = Some(now + u64::from(self.interval) * CENTISECOND);
        let send = Some(self.adjusted());
        self.enter(State::Master, Todo { send, was: None })
    }

    fn become_backup(&mut self, interval: u16, now: Nanos) -> Todo {
        self.master_interval = interval;
        self.due = Some(now + self.down_nanos());
        self.enter(State::Backup, Todo::default())
    }

    /// It is started, or its interface carries packets again.
    pub fn start(&mut self, is_up: bool, now: Nanos) -> Todo {
        if !is_up {
            self.due = None;
            return self.enter(State::InterfaceDown, Todo::default());
        }
        if self.priority == OWNER { self.become_master(now) } else { self.become_backup(self.interval, now) }
    }

    /// It is stopped.
    pub fn stop(&mut self) -> Todo {
        self.due = None;
        let send = (self.state == State::Master).then_some(0);
        self.enter(State::Initialize, Todo { send, was: None })
    }

    /// Its interface carries packets, or does so no more.
    pub fn interface(&mut self, is_up: bool, now: Nanos) -> Todo {
        match (self.state, is_up) {
            (State::InterfaceDown, true) => self.start(true, now),
            (State::Backup | State::Master, false) => self.start(false, now),
            _ => Todo::default(),
        }
    }

    /// Another router sent an advertisement.
    pub fn hear(&mut self, said: PeerAdvertisement, now: Nanos) -> Todo {
        let own = self.adjusted();
        match self.state {
            State::Backup if said.priority == 0 => {
                self.due = Some(now + self.skew_nanos());
                Todo::default()
            }
            State::Backup if !self.preempt || said.priority >= own => self.become_backup(said.interval, now),
            State::Master if said.priority == 0 => {
                self.due = Some(now + u64::from(self.interval) * CENTISECOND);
                Todo { send: Some(own), was: None }
            }
            State::Master if said.priority > own || (said.priority == own && said.is_higher) => {
                self.become_backup(said.interval, now)
            }
            // A router that wants the addresses less hears this one's next advertisement, as VPP has it.
            _ => Todo::default(),
        }
    }

    /// Its time has come.
    pub fn due(&mut self, now: Nanos) -> Todo {
        if self.due.is_none_or(|due| due > now) {
            return Todo::default();
        }
        match self.state {
            State::Backup | State::Master => self.become_master(now),
            State::Initialize | State::InterfaceDown => {
                self.due = None;
                Todo::default()
            }
        }
    }

    /// What is tracked lowers the priority by so much now. One that waits waits as long as its priority says from now on.
    pub fn lower(&mut self, by: u32, now: Nanos) {
        let before = self.down_nanos();
        self.lowered = by;
        if let (State::Backup, Some(due)) = (self.state, self.due) {
            let heard = due.saturating_sub(before);
            self.due = Some((heard + self.down_nanos()).max(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn said(priority: u8) -> PeerAdvertisement {
        PeerAdvertisement { priority, interval: 100, is_higher: false }
    }

    fn sends(priority: u8) -> Todo {
        Todo { send: Some(priority), was: None }
    }

    #[test]
    fn times_are_vpps() {
        let machine = Machine::new(100, 100, true);
        assert_eq!((machine.skew(), machine.master_down()), (60, 360));
        let mut owner = Machine::new(255, 100, true);
        assert_eq!(owner.skew(), 0);
        owner.lower(20, 0);
        assert_eq!(owner.adjusted(), 255);
        let mut low = Machine::new(10, 100, true);
        low.lower(20, 0);
        assert_eq!(low.adjusted(), 1);
        assert_eq!(Machine::new(1, 4095, true).master_down(), 3 * 4095 + 4079);
    }

    #[test]
    fn a_backup_takes_over_when_nothing_is_heard() {
        let mut machine = Machine::new(100, 100, true);
        let began = machine.start(true, 0);
        assert_eq!(began, Todo { send: None, was: Some(State::Initialize) });
        let down = 3 * SECOND + 156 * SECOND / 256;
        assert_eq!(machine.due, Some(down));
        assert_eq!(machine.due(down - 1), Todo::default());
        assert_eq!(machine.due(down), Todo { send: Some(100), was: Some(State::Backup) });
        assert_eq!(machine.due(down + SECOND), sends(100));
        // It goes: the others hear so.
        assert_eq!(machine.stop(), Todo { send: Some(0), was: Some(State::Master) });
        assert_eq!((machine.state, machine.due), (State::Initialize, None));
        assert_eq!(machine.hear(said(0), 0), Todo::default());
    }

    #[test]
    fn a_backup_waits_while_it_hears_and_hurries_when_the_other_goes() {
        let mut machine = Machine::new(100, 100, true);
        machine.start(true, 0);
        machine.hear(PeerAdvertisement { interval: 300, ..said(200) }, SECOND);
        assert_eq!((machine.master_interval, machine.skew(), machine.master_down()), (300, 182, 1082));
        assert_eq!(machine.due, Some(SECOND + 9 * SECOND + 3 * 156 * SECOND / 256));
        machine.hear(said(0), 2 * SECOND);
        assert_eq!(machine.due, Some(2 * SECOND + 3 * 156 * SECOND / 256));
        // A lower one does not make it wait, unless it does not preempt.
        machine.hear(said(50), 3 * SECOND);
        assert_eq!(machine.due, Some(2 * SECOND + 3 * 156 * SECOND / 256));
        machine.preempt = false;
        machine.hear(said(50), 3 * SECOND);
        assert_eq!(machine.due, Some(6 * SECOND + 156 * SECOND / 256));
    }

    #[test]
    fn a_master_yields_to_a_higher_one_only() {
        let mut machine = Machine::new(100, 100, true);
        machine.start(true, 0);
        machine.due(10 * SECOND);
        assert_eq!(machine.hear(said(0), 11 * SECOND), sends(100));
        assert_eq!(machine.hear(said(99), 11 * SECOND), Todo::default());
        assert_eq!(machine.hear(said(100), 11 * SECOND), Todo::default());
        let higher = PeerAdvertisement { is_higher: true, ..said(100) };
        assert_eq!(machine.hear(higher, 11 * SECOND).was, Some(State::Master));
        machine.due(20 * SECOND);
        assert_eq!(machine.hear(said(101), 21 * SECOND).was, Some(State::Master));
        assert_eq!(machine.state, State::Backup);
    }

    #[test]
    fn an_owner_begins_at_once_and_an_interface_that_is_down_waits() {
        let mut machine = Machine::new(255, 100, true);
        assert_eq!(machine.start(false, 0).was, Some(State::Initialize));
        assert_eq!((machine.state, machine.due), (State::InterfaceDown, None));
        assert_eq!(
            machine.interface(true, SECOND),
            Todo { send: Some(255), was: Some(State::InterfaceDown) }
        );
        assert_eq!(machine.interface(true, SECOND), Todo::default());
        assert_eq!(machine.interface(false, SECOND).was, Some(State::Master));
        assert_eq!(machine.stop(), Todo { send: None, was: Some(State::InterfaceDown) });
        assert_eq!(machine.interface(true, SECOND), Todo::default());
    }

    #[test]
    fn a_lower_priority_waits_longer() {
        let mut machine = Machine::new(100, 100, true);
        machine.start(true, 0);
        machine.lower(50, SECOND);
        assert_eq!(machine.due, Some(3 * SECOND + 206 * SECOND / 256));
        machine.lower(0, SECOND);
        assert_eq!(machine.due, Some(3 * SECOND + 156 * SECOND / 256));
    }
}
