//! One session: the state machine and the times of RFC 5880, 6.8. Nothing here sends: what is to be done is returned.

use crate::auth::{AuthType, Key};
use crate::packet::{Bits, Control, Diag, Section, State};

mod steady;

pub use steady::Vital;

/// Nanoseconds.
pub type Nanos = u64;

const USEC: Nanos = 1_000;
/// Microseconds between packets of a session that is not up (RFC 5880, 6.8.3), and what is required of control packets while the
/// echo function watches the path.
const SLOW: u32 = 1_000_000;

/// Nanoseconds until the other end receives a change that it need not know at once.
const SOON: Nanos = 50_000_000;

/// What a session is to do, as its operator says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Microseconds between packets that it would like to send.
    pub desired_min_tx: u32,
    /// Microseconds between packets that it can receive.
    pub required_min_rx: u32,
    /// How many packets may be lost.
    pub detect_mult: u8,
}

/// Where a poll sequence is (RFC 5880, 6.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Poll {
    /// None is needed.
    #[default]
    Idle,
    /// Packets ask for an answer since then.
    Asking(Nanos),
    /// They do, and another sequence is to follow.
    Queued(Nanos),
    /// The next sequence begins then: an answer that comes before is one to the sequence before it.
    Waiting(Nanos),
}

/// How packets of a session are signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Auth {
    /// The number of the key in this router.
    pub conf_key: u32,
    /// The key.
    pub key: Key,
    /// Its number on the wire.
    pub key_id: u8,
}

/// The other end's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remote {
    /// Its state.
    pub state: State,
    /// Its number of the session; 0 if it is not known.
    pub discr: u32,
    /// Why its session went down last.
    pub diag: Diag,
    /// How many packets may be lost.
    pub detect_mult: u8,
    /// Microseconds between packets it would like to send.
    pub desired_min_tx: u32,
    /// Microseconds between packets that it can receive; 0: none.
    pub min_rx: u32,
    /// Microseconds between echo packets that it sends back; 0: none.
    pub min_echo_rx: u32,
    /// It does not want periodic packets.
    pub demand: bool,
    /// The sequence number it used last, if any.
    pub sequence: Option<u32>,
}

impl Default for Remote {
    fn default() -> Self {
        Remote {
            state: State::Down,
            discr: 0,
            diag: Diag::NONE,
            detect_mult: 0,
            desired_min_tx: 0,
            // RFC 5880, 6.8.1.
            min_rx: 1,
            min_echo_rx: 0,
            demand: false,
            sequence: None,
        }
    }
}

impl Remote {
    /// What a packet says.
    fn of(control: &Control, sequence: Option<u32>) -> Remote {
        Remote {
            state: control.state,
            discr: control.my_discr,
            diag: control.diag,
            detect_mult: control.detect_mult,
            desired_min_tx: control.desired_min_tx,
            min_rx: control.required_min_rx,
            min_echo_rx: control.required_min_echo_rx,
            demand: control.bits.has(Bits::DEMAND),
            sequence,
        }
    }
}

/// What is to be done for a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Todo {
    /// A control packet is to be sent, with these bits beside those of the session.
    pub send: Option<u8>,
    /// An echo packet is to be sent that proves something until then.
    pub echo: Option<Nanos>,
    /// The state has changed.
    pub changed: bool,
}

/// The sequence number of the packet that was taken last, if it had one.
struct Last(Option<u32>);

/// That echo packets are to watch the path of a session, whether the router has an echo source for all sessions or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EchoWish {
    /// Microseconds between those that are sent, if the other end takes them so often.
    pub min_tx: u32,
    /// Microseconds between those that the other end may send.
    pub min_rx: u32,
}

/// Why a packet for a session is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The session is switched off.
    AdminDown,
    /// It is not signed as it should be.
    Verification,
}

/// A session.
#[derive(Clone, PartialEq, Debug)]
pub struct Session {
    /// Our number of it, never 0.
    pub discr: u32,
    /// Our state.
    pub state: State,
    /// Why it went down last.
    pub diag: Diag,
    /// What its operator says.
    pub parameters: Parameters,
    /// The other end's state.
    pub remote: Remote,
    /// How its packets are signed.
    pub auth: Option<Auth>,
    /// How they are signed as soon as the other end does so, too.
    pub next_auth: Option<Option<Auth>>,
    /// Where a poll sequence is.
    pub poll: Poll,
    /// Whether the echo function watches the path.
    pub echoing: bool,
    /// Whether there is an address from which echo packets can be sent.
    pub can_echo: bool,
    /// The echo function's times, if the session is to have it by itself.
    pub echo_wish: Option<EchoWish>,
    /// It sends nothing until the other end has (RFC 5880, 6.1).
    pub is_passive: bool,
    /// What counts for the detection time until the other end knows of a smaller value.
    effective_min_rx: u32,
    /// What counts for sending until it knows of a larger value.
    effective_min_tx: u32,
    sequence: u32,
    /// Length of the last poll sequence.
    poll_took: Nanos,
    /// When the last control packet was sent and received.
    pub last_tx: Option<Nanos>,
    /// The same.
    pub last_rx: Option<Nanos>,
    next_tx: Nanos,
    /// When the last echo packet came back, or the function began.
    pub last_echo_rx: Nanos,
    next_echo: Nanos,
}

impl Session {
    /// A session that is down. `sequence` is the first number of signed packets.
    pub fn new(discr: u32, parameters: Parameters, auth: Option<Auth>, sequence: u32, now: Nanos) -> Session {
        Session {
            discr,
            state: State::Down,
            diag: Diag::NONE,
            parameters,
            remote: Remote::default(),
            auth,
            next_auth: None,
            poll: Poll::Idle,
            echoing: false,
            can_echo: false,
            echo_wish: None,
            is_passive: false,
            effective_min_rx: parameters.required_min_rx,
            effective_min_tx: parameters.desired_min_tx.max(SLOW),
            sequence,
            poll_took: 0,
            last_tx: None,
            last_rx: None,
            next_tx: now + Nanos::from(SLOW) * USEC * 7 / 8,
            last_echo_rx: 0,
            next_echo: 0,
        }
    }

    /// Microseconds between packets that we announce to receive.
    pub fn required_min_rx(&self) -> u32 {
        if self.echoing { self.parameters.required_min_rx.max(SLOW) } else { self.parameters.required_min_rx }
    }

    /// Microseconds between packets that we announce to send.
    pub fn desired_min_tx(&self) -> u32 {
        if self.state == State::Up {
            self.parameters.desired_min_tx
        } else {
            self.parameters.desired_min_tx.max(SLOW)
        }
    }

    /// Nanoseconds between packets that are sent, before they are made irregular.
    pub fn interval(&self) -> Nanos {
        Nanos::from(self.effective_min_tx.max(self.remote.min_rx)) * USEC
    }

    /// Nanoseconds without a packet after which the session is down; `None` if nothing is known of the other end.
    pub fn detection(&self) -> Option<Nanos> {
        let between = self.effective_min_rx.max(self.remote.desired_min_tx);
        let times = Nanos::from(self.remote.detect_mult);
        (times > 0).then(|| times * Nanos::from(between) * USEC)
    }

    /// Nanoseconds between echo packets.
    pub fn echo_interval(&self) -> Nanos {
        let own = self.echo_wish.map_or(self.parameters.desired_min_tx, |wish| wish.min_tx);
        Nanos::from(self.remote.min_echo_rx.max(own)) * USEC
    }

    /// Nanoseconds without an echo after which the session is down.
    pub fn echo_detection(&self) -> Nanos {
        Nanos::from(self.parameters.detect_mult) * self.echo_interval()
    }

    /// The packet that says what is so now.
    pub fn control(&self, bits: u8) -> Control {
        let asking = matches!(self.poll, Poll::Asking(_) | Poll::Queued(_)) && bits & Bits::FINAL == 0;
        Control {
            diag: self.diag,
            state: self.state,
            bits: Bits(bits | if asking { Bits::POLL } else { 0 }),
            detect_mult: self.parameters.detect_mult,
            my_discr: self.discr,
            your_discr: self.remote.discr,
            desired_min_tx: self.desired_min_tx(),
            required_min_rx: self.required_min_rx(),
            required_min_echo_rx: self.echo_wish.map_or(1, |wish| wish.min_rx),
        }
    }

    /// A packet is being sent: its bytes. `jitter` is between 0 and 1.
    pub fn sent(&mut self, bits: u8, now: Nanos, jitter: f64) -> Vec<u8> {
        let control = self.control(bits);
        let auth = self.auth.map(|auth| (auth, self.sequence));
        let bytes = control.write(auth.as_ref().map(|(auth, sequence)| (&auth.key, auth.key_id, *sequence)));
        // RFC 5880, 6.7.4: the number may change with each packet, and must with the meticulous kind.
        self.sequence = self.sequence.wrapping_add(u32::from(self.auth.is_some()));
        self.last_tx = Some(now);
        self.next_tx = now + self.irregular(jitter);
        bytes
    }

    /// The interval made irregular: 75 to 100 percent of it, at most 90 if no packet may be lost (RFC 5880, 6.8.7).
    fn irregular(&self, jitter: f64) -> Nanos {
        let most = if self.parameters.detect_mult == 1 { 0.90 } else { 1.0 };
        (self.interval() as f64 * (0.75 + (most - 0.75) * jitter.clamp(0.0, 1.0))) as Nanos
    }

    /// Whether packets are sent at intervals.
    fn is_periodic(&self) -> bool {
        let asking = matches!(self.poll, Poll::Asking(_) | Poll::Queued(_));
        let quiet = self.remote.demand && self.state == State::Up && self.remote.state == State::Up;
        // RFC 5880, 6.8.7.
        let waits = self.is_passive && self.remote.discr == 0;
        self.remote.min_rx != 0 && (!quiet || asking) && !waits
    }

    /// When [`due`](Session::due) has something to do, if nothing happens before.
    pub fn deadline(&self) -> Option<Nanos> {
        let tx = self.is_periodic().then_some(self.next_tx);
        let rx = self.expires();
        let echo = self.echoing.then(|| self.next_echo.min(self.last_echo_rx + self.echo_detection()));
        let poll = if let Poll::Waiting(until) = self.poll { Some(until) } else { None };
        [tx, rx, echo, poll].into_iter().flatten().min()
    }

    /// When the session is down if no packet comes.
    fn expires(&self) -> Option<Nanos> {
        let watched = matches!(self.state, State::Init | State::Up);
        self.last_rx.filter(|_| watched).zip(self.detection()).map(|(last, time)| last + time)
    }

    /// Time has come: what is to be done.
    pub fn due(&mut self, now: Nanos, jitter: f64) -> Todo {
        let mut todo = Todo::default();
        if self.expires().is_some_and(|at| now >= at) {
            self.go_down(Diag::EXPIRED, now);
            // RFC 5880, 6.8.1 and 6.8.4: nothing is known of the other end any more.
            self.remote = Remote::default();
            todo.changed = true;
            // Clients get the event first, the other end right after.
            self.next_tx = now + SOON;
        } else if self.echoing && now >= self.last_echo_rx + self.echo_detection() {
            self.go_down(Diag::ECHO_FAILED, now);
            todo.changed = true;
            self.next_tx = now + SOON;
        }
        if let Poll::Waiting(until) = self.poll
            && now >= until
        {
            self.poll = Poll::Asking(now);
            self.next_tx = self.next_tx.min(now);
        }
        if self.echoing && now >= self.next_echo {
            todo.echo = Some(now + self.echo_detection());
            self.next_echo = now + (self.echo_interval() as f64 * (0.75 + 0.25 * jitter)) as Nanos;
        }
        if self.is_to_send(now) {
            todo.send = Some(0);
        }
        todo
    }

    fn go_down(&mut self, diag: Diag, now: Nanos) {
        self.diag = diag;
        self.set_state(State::Down, now);
    }

    fn set_state(&mut self, state: State, now: Nanos) {
        self.state = state;
        self.effective_min_tx = self.desired_min_tx();
        if state == State::Up {
            self.diag = Diag::NONE;
        } else {
            self.poll = Poll::Idle;
            self.effective_min_rx = self.parameters.required_min_rx;
        }
        self.review_echo(now);
    }

    /// The echo function runs while the session is up, the other end sends echo packets back and there is an address for them.
    fn review_echo(&mut self, now: Nanos) {
        let wanted = self.state == State::Up && self.remote.min_echo_rx > 0 && self.can_echo;
        if wanted == self.echoing {
            return;
        }
        self.echoing = wanted;
        if wanted {
            (self.last_echo_rx, self.next_echo) = (now, now);
        }
        if self.state == State::Up {
            self.effective_min_rx = self.effective_min_rx.max(self.required_min_rx());
            self.ask(now);
        }
    }

    /// There is an address from which echo packets can be sent, or not.
    pub fn set_can_echo(&mut self, can: bool, now: Nanos) {
        self.can_echo = can;
        self.review_echo(now);
    }

    /// What the other end has to know has changed: it is asked whether it does.
    fn ask(&mut self, now: Nanos) {
        self.poll = match self.poll {
            Poll::Idle => Poll::Asking(now),
            Poll::Asking(since) | Poll::Queued(since) => Poll::Queued(since),
            waiting @ Poll::Waiting(_) => waiting,
        };
        self.next_tx = self.next_tx.min(now);
    }

    /// The operator says something else.
    pub fn modify(&mut self, parameters: Parameters, now: Nanos) {
        let old = std::mem::replace(&mut self.parameters, parameters);
        if self.state != State::Up {
            self.effective_min_tx = self.desired_min_tx();
            self.effective_min_rx = parameters.required_min_rx;
            return;
        }
        let (rx, tx) = (self.required_min_rx(), parameters.desired_min_tx);
        // RFC 5880, 6.8.3: what makes the other end late counts when it knows, what does not counts at once.
        self.effective_min_rx = self.effective_min_rx.max(rx);
        self.effective_min_tx = self.effective_min_tx.min(tx);
        if (old.desired_min_tx, old.required_min_rx) != (tx, parameters.required_min_rx) {
            self.ask(now);
        }
        self.next_tx = self.next_tx.min(now + self.interval());
    }

    /// The operator switches it off or on.
    pub fn set_admin(&mut self, up: bool, now: Nanos) -> Todo {
        let state = match (self.state, up) {
            (State::AdminDown, true) => State::Down,
            (state, false) if state != State::AdminDown => State::AdminDown,
            _ => return Todo::default(),
        };
        self.diag = if up { Diag::NONE } else { Diag::ADMIN_DOWN };
        self.set_state(state, now);
        // The other end hears soon that this one is off, and in its turn that it is on.
        if !up {
            self.next_tx = self.next_tx.min(now + SOON);
        }
        Todo { changed: true, ..Todo::default() }
    }

    /// Packets are signed with this key, or not, from now on.
    pub fn set_auth(&mut self, auth: Option<Auth>) {
        self.auth = auth;
        self.next_auth = None;
        self.remote.sequence = None;
    }

    /// Whether a packet is signed as it should be; a change that waits for the other end is made.
    fn verify(&mut self, control: &Control, bytes: &[u8], now: Nanos) -> bool {
        if let Some(Last(sequence)) = self.verified(control, bytes, self.auth.as_ref(), now) {
            self.remote.sequence = sequence;
            return true;
        }
        let Some(next) = self.next_auth else { return false };
        let Some(Last(sequence)) = self.verified(control, bytes, next.as_ref(), now) else { return false };
        self.set_auth(next);
        self.remote.sequence = sequence;
        true
    }

    /// Whether a packet is signed so; the sequence number to remember.
    fn verified(&self, control: &Control, bytes: &[u8], auth: Option<&Auth>, now: Nanos) -> Option<Last> {
        let Some(auth) = auth else { return (!control.bits.has(Bits::AUTH)).then_some(Last(None)) };
        if !control.bits.has(Bits::AUTH) {
            return None;
        }
        let section = Section::read(bytes)?;
        if section.kind != auth.key.kind as u8 || section.key_id != auth.key_id {
            return None;
        }
        let meticulous = auth.key.kind == AuthType::MeticulousKeyedSha1;
        // RFC 5880, 6.7.4: within a window of three times the detection multiplier; forgotten after twice the detection time.
        let silent = self.last_rx.zip(self.detection()).is_none_or(|(last, time)| now >= last + 2 * time);
        if let Some(last) = self.remote.sequence.filter(|_| !silent) {
            let ahead = section.sequence.wrapping_sub(last);
            let window = 3 * u32::from(self.remote.detect_mult.max(1));
            if ahead > window || (meticulous && ahead == 0) {
                return None;
            }
        }
        Section::is_of(bytes, &auth.key).then_some(Last(Some(section.sequence)))
    }

    /// A packet came for this session (RFC 5880, 6.8.6, from where the session is known).
    ///
    /// # Errors
    /// It is not taken.
    pub fn receive(&mut self, control: &Control, bytes: &[u8], now: Nanos) -> Result<Todo, Refused> {
        if self.state == State::AdminDown {
            return Err(Refused::AdminDown);
        }
        if !self.verify(control, bytes, now) {
            return Err(Refused::Verification);
        }
        let mut todo = Todo::default();
        self.last_rx = Some(now);
        let interval = self.interval();
        self.remote = Remote::of(control, self.remote.sequence);
        if control.bits.has(Bits::FINAL) {
            self.answered(now);
        }
        let state = match (self.state, control.state) {
            (State::Init | State::Up, State::AdminDown) | (State::Up, State::Down) => {
                self.diag = Diag::NEIGHBOR_DOWN;
                State::Down
            }
            (State::Down, State::Down) => State::Init,
            (State::Down, State::Init) | (State::Init, State::Init | State::Up) => State::Up,
            (state, _) => state,
        };
        if state != self.state {
            self.set_state(state, now);
            todo.changed = true;
            // RFC 5880, 6.8.7: the other end hears of it before the next packet is due.
            if state == State::Init {
                self.next_tx = self.next_tx.min(now + SOON);
            } else {
                todo.send = self.is_periodic().then_some(0);
            }
        }
        self.review_echo(now);
        if control.bits.has(Bits::POLL) {
            todo.send = Some(Bits::FINAL);
        }
        // RFC 5880, 6.8.3: a smaller interval counts at once.
        if self.interval() != interval {
            let last = self.last_tx.unwrap_or(now);
            self.next_tx = last + self.irregular(0.5);
        }
        Ok(todo)
    }

    /// The other end knows what it was asked about.
    fn answered(&mut self, now: Nanos) {
        let (since, queued) = match self.poll {
            Poll::Asking(since) => (since, false),
            Poll::Queued(since) => (since, true),
            Poll::Idle | Poll::Waiting(_) => return,
        };
        self.poll_took = now.saturating_sub(since);
        self.effective_min_rx = self.required_min_rx();
        self.effective_min_tx = self.desired_min_tx();
        self.poll = if queued { Poll::Waiting(now + self.poll_took) } else { Poll::Idle };
    }

    /// An echo packet of this session came back.
    pub fn echo_came(&mut self, now: Nanos) {
        self.last_echo_rx = now;
    }
}
