//! The control plane: where zebra may connect, and its routes in the forwarding table.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};
use std::time::Duration;

use shoal_fib::{Family, Fib, FibIndex, Source};
use shoal_graph::clock::Time;
use shoal_graph::counter::Simple;
use shoal_graph::process::{Receiver, Sender, channel};
use shoal_lcp::{DaemonAddress as Listen, Lcp, ListenError as FpmError, accept};
use shoal_module::{Control, InitError};
use shoal_wire::IpPrefix;

use crate::batch::Batch;
use crate::netlink::{FpmMessage, Route, answer, read};
use crate::server::Zebra;
use crate::table::{AnnouncedRoutes, Key};
use crate::{sweep, wrap};

/// Where zebra connects to by default.
pub const USUAL: &str = "127.0.0.1:2620";
/// Seconds that zebra has to tell its routes again when it comes back.
const SWEEP_AFTER: Duration = Duration::from_mins(1);
/// How long to wait until a place to listen at is tried again at the start.
const AGAIN: Duration = Duration::from_secs(5);
/// Routes that are held at most, and next hops.
const MOST_ROUTES: usize = 8 << 20;
const MOST_NEXT_HOPS: usize = 1 << 20;

/// `RTPROT_KERNEL`: follows from addresses, which the router has, too.
const KERNEL: u8 = 2;
/// The kernel's table of its own addresses.
const LOCAL: u32 = 255;

/// What there is, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Where zebra may connect.
    pub listen: Option<Listen>,
    /// The connection's number, if there is one, and since when.
    pub connected: Option<(u64, Duration)>,
    /// Routes that are held.
    pub routes: usize,
    /// Of these, how many the forwarding table has.
    pub installed: usize,
    /// Next hops and groups.
    pub next_hops: usize,
}

/// What came and what became of it.
pub(crate) struct Counts {
    pub connections: Simple,
    pub turned_away: Simple,
    pub frames: Simple,
    pub routes: Simple,
    pub removals: Simple,
    pub next_hops: Simple,
    pub answers: Simple,
    pub not_installed: Simple,
    pub malformed: Simple,
    pub swept: Simple,
}

impl Counts {
    pub(crate) fn one(counter: &Simple) {
        counter.add(0, 0, 1);
    }
}

/// The part of the connection that others see.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    pub generation: u64,
    pub since: Time,
}

/// What of a route is in the forwarding table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The route.
    Installed,
    /// Nothing, until an interface or a next hop comes.
    Waits,
    /// Nothing.
    Failed,
}

/// Zebra's routes.
pub struct Fpm {
    control: Weak<Control>,
    fib: Rc<Fib>,
    lcp: Rc<Lcp>,
    pub(crate) told: RefCell<AnnouncedRoutes>,
    listening: RefCell<Option<(Listen, Sender<()>)>>,
    at_start: RefCell<Option<Listen>>,
    pub(crate) peer: Cell<Option<Peer>>,
    pub(crate) generation: Cell<u64>,
    sweep_after: Cell<Duration>,
    installed: Cell<usize>,
    /// Takes answers about routes that waited to the connection there is.
    late: RefCell<Option<Sender<Vec<u8>>>>,
    /// Rings when routes need another look.
    bell: (Sender<()>, Receiver<()>),
    pub(crate) counts: Counts,
}

impl Fpm {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let counter = |name: &str| {
            let counter = graph.counters().simple(&format!("/fpm/{name}"), 1)?;
            counter.ensure(1);
            Ok::<_, InitError>(counter)
        };
        let counts = Counts {
            connections: counter("connections")?,
            turned_away: counter("connections-turned-away")?,
            frames: counter("frames")?,
            routes: counter("routes")?,
            removals: counter("removals")?,
            next_hops: counter("next-hops")?,
            answers: counter("answers")?,
            not_installed: counter("not-installed")?,
            malformed: counter("malformed")?,
            swept: counter("swept")?,
        };
        Ok(Rc::new(Fpm {
            control: Rc::downgrade(control),
            fib: control.get::<Fib>()?,
            lcp: control.get::<Lcp>()?,
            told: RefCell::default(),
            listening: RefCell::default(),
            at_start: RefCell::default(),
            peer: Cell::new(None),
            generation: Cell::new(0),
            sweep_after: Cell::new(SWEEP_AFTER),
            installed: Cell::new(0),
            late: RefCell::default(),
            bell: channel(1),
            counts,
        }))
    }

    /// Begins to look again at routes whose interfaces or next hops change.
    pub(crate) fn begin(self: &Rc<Self>, control: &Rc<Control>) -> Result<(), InitError> {
        let weak = Rc::downgrade(self);
        self.lcp.subscribe(move |netns| {
            if let Some(fpm) = weak.upgrade()
                && fpm.netns().as_deref() == netns
            {
                fpm.told.borrow_mut().mark_all();
                fpm.look_again();
            }
        });
        control.processes()?.spawn("fpm-routes", sweep::look_again(Rc::clone(self), self.bell.1.clone()));
        Ok(())
    }

    pub(crate) fn look_again(&self) {
        // A full channel has rung already.
        let _ = self.bell.0.try_send(());
    }

    /// Answers about routes that waited go there, or nowhere.
    pub(crate) fn answer_by(&self, late: Option<Sender<Vec<u8>>>) {
        *self.late.borrow_mut() = late;
    }

    /// Sends answers about routes that waited, as soon as zebra reads them.
    pub(crate) async fn send_late(&self, out: &mut Vec<u8>) {
        let late = self.late.borrow().clone();
        let answers = std::mem::take(out);
        if let Some(late) = late.filter(|_| !answers.is_empty()) {
            // A connection that has ended meanwhile needs no answer.
            let _ = late.send(answers).await;
        }
    }

    /// The namespace of zebra.
    pub(crate) fn netns(&self) -> Option<String> {
        self.listening.borrow().as_ref().and_then(|(listen, _)| listen.netns.clone())
    }

    pub(crate) fn control(&self) -> Option<Rc<Control>> {
        self.control.upgrade()
    }

    pub(crate) fn fib(&self) -> &Fib {
        &self.fib
    }

    pub(crate) fn lcp(&self) -> &Rc<Lcp> {
        &self.lcp
    }

    /// How long zebra has to tell its routes again when it comes back.
    pub fn set_sweep_after(&self, after: Duration) {
        self.sweep_after.set(after);
    }

    /// The same.
    pub fn sweep_after(&self) -> Duration {
        self.sweep_after.get()
    }

    /// Takes connections there from now on, and nowhere else. Where a port is 0 the kernel chooses one, which is returned.
    ///
    /// # Errors
    /// It is no loopback address, or the port cannot be had: then connections are taken where they were before.
    pub fn listen(self: &Rc<Self>, listen: &Listen) -> Result<SocketAddr, FpmError> {
        if let Some((now, _)) = &*self.listening.borrow()
            && now == listen
        {
            return Ok(listen.at);
        }
        let refused = |why: String| FpmError::Refused(listen.at, why);
        let control = self.control().ok_or_else(|| refused("the router ends".to_owned()))?;
        let (socket, at) = listen.bind(&control)?;
        let processes = control.processes().map_err(|e| refused(e.to_string()))?;
        self.stop();
        let (open, closed) = channel(1);
        *self.listening.borrow_mut() = Some((Listen { at, ..listen.clone() }, open));
        let taker = Zebra { fpm: Rc::clone(self), closed: closed.clone(), processes: (*processes).clone() };
        processes.spawn("fpm-listener", accept(taker, socket, closed, (*processes).clone()));
        Ok(at)
    }

    /// The same for the start-up file: a place that cannot be had now is tried again, and the router runs meanwhile.
    pub(crate) fn listen_from_start(self: &Rc<Self>, listen: Listen) {
        *self.at_start.borrow_mut() = Some(listen.clone());
        let Err(error) = self.listen(&listen) else { return };
        tracing::error!("fpm: {error}; it is tried again every {} seconds", AGAIN.as_secs());
        let Some(processes) = self.control().and_then(|control| control.processes().ok()) else { return };
        let fpm = Rc::clone(self);
        processes.clone().spawn_unlisted(async move {
            loop {
                processes.sleep(AGAIN).await;
                if fpm.listening.borrow().is_some() || fpm.at_start.borrow().as_ref() != Some(&listen) {
                    return;
                }
                if fpm.listen(&listen).is_ok() {
                    tracing::info!("fpm: listens at {}", listen.at);
                    return;
                }
            }
        });
    }

    /// Takes no connections any more, ends the one there is, and withdraws its routes.
    pub fn stop(self: &Rc<Self>) {
        let before = self.listening.borrow_mut().take();
        let Some((listen, _open)) = before else { return };
        self.lcp.zebra_is_connected(&listen.netns, false);
        self.peer.set(None);
        self.clear();
    }

    /// Withdraws all routes.
    pub fn clear(self: &Rc<Self>) {
        let all = std::mem::take(&mut *self.told.borrow_mut());
        self.installed.set(0);
        let Some(processes) = self.control().and_then(|control| control.processes().ok()) else { return };
        processes.spawn_unlisted(sweep::withdraw(Rc::clone(self), all));
    }

    /// Where zebra may connect.
    pub fn listening(&self) -> Option<Listen> {
        self.listening.borrow().as_ref().map(|(listen, _)| listen.clone())
    }

    /// Where the start-up file says that it may.
    pub fn listening_at_start(&self) -> Option<Listen> {
        self.at_start.borrow().clone()
    }

    /// What there is.
    pub fn state(&self) -> State {
        let now = self.control().and_then(|control| control.graph().ok()).map(|graph| graph.clock().now());
        let connected = self.peer.get().zip(now).map(|(peer, now)| (peer.generation, now.since(peer.since)));
        let told = self.told.borrow();
        State {
            listen: self.listening(),
            connected,
            routes: told.routes(),
            installed: self.installed.get(),
            next_hops: told.next_hops(),
        }
    }

    /// Does what a message of a connection says, or has it wait in the batch; puts what zebra is to be answered behind `out`. `renewed`
    /// are the prefixes that the same frame gives a new route: they are not without one meanwhile.
    pub(crate) fn hear<'m>(
        &self,
        message: &'m [u8],
        generation: u64,
        renewed: &[Key],
        batch: &mut Batch<'m>,
        out: &mut Vec<u8>,
    ) {
        let said = read(message);
        if let FpmMessage::Route(route) = said {
            return self.hear_route(message, &route, generation, batch, out);
        }
        // Whatever else it is, it comes behind the routes before it.
        self.settle(batch, generation, out);
        match said {
            FpmMessage::NoRoute { table, prefix } => {
                Counts::one(&self.counts.removals);
                let key = (table, prefix);
                if !renewed.contains(&key) {
                    self.forget(&key);
                }
            }
            FpmMessage::NextHop(id, hop) => {
                Counts::one(&self.counts.next_hops);
                let mut told = self.told.borrow_mut();
                if told.next_hops() < MOST_NEXT_HOPS {
                    told.put_next_hop(id, hop, generation);
                }
            }
            FpmMessage::NoNextHop(id) => self.told.borrow_mut().remove_next_hop(id),
            FpmMessage::Route(_) | FpmMessage::Other => {}
            FpmMessage::Malformed => Counts::one(&self.counts.malformed),
        }
    }

    fn hear_route<'m>(
        &self,
        message: &'m [u8],
        route: &Route,
        generation: u64,
        batch: &mut Batch<'m>,
        out: &mut Vec<u8>,
    ) {
        Counts::one(&self.counts.routes);
        if route.protocol == KERNEL || route.table == LOCAL || is_of_links(&route.prefix) {
            return;
        }
        let Some(way) = &route.way else {
            self.settle(batch, generation, out);
            // There is no such kind of route here; one that was there before is replaced by it.
            self.forget(&(route.table, route.prefix));
            return self.tell(message, false, out);
        };
        if self.told.borrow().routes() + batch.len() >= MOST_ROUTES {
            self.settle(batch, generation, out);
            return self.tell(message, false, out);
        }
        if !batch.take(route, way, message) {
            self.settle(batch, generation, out);
            batch.take(route, way, message);
        }
    }

    pub(crate) fn tell(&self, message: &[u8], installed: bool, out: &mut Vec<u8>) {
        if !installed {
            Counts::one(&self.counts.not_installed);
        }
        Counts::one(&self.counts.answers);
        let at = out.len();
        answer(message, installed, out);
        wrap(out, at);
    }

    /// Looks at a route again; answers zebra if it waits for that.
    pub(crate) fn decide_again(&self, key: &Key, out: &mut Vec<u8>) {
        if self.decide(key) != Outcome::Installed {
            return;
        }
        let waited = self.told.borrow_mut().get_mut(key).and_then(|entry| entry.unanswered.take());
        if let Some(message) = waited {
            self.tell(&message, true, out);
        }
    }

    /// Forgets a route and takes it out of the forwarding table.
    pub(crate) fn forget(&self, key: &Key) {
        let gone = self.told.borrow_mut().remove(key);
        self.note_installed(key, gone.and_then(|entry| entry.installed), None);
    }

    /// Takes a route out of a table of this router.
    pub(crate) fn withdraw(&self, key: &Key, id: u32) {
        if let Ok(index) = self.fib.index_of(Family::of(key.1.addr()), id)
            && let Err(e) = self.fib.remove(index, key.1, Source::Fpm)
        {
            tracing::debug!("fpm: route {}: {e}", key.1);
        }
    }

    /// A table of this router, which is made if it is not there.
    pub(crate) fn index_of(&self, family: Family, id: u32) -> Result<FibIndex, shoal_fib::FibError> {
        match self.fib.index_of(family, id) {
            Err(_) => self.fib.add_table(family, id, None),
            found => found,
        }
    }

    /// The table of this router that routes of one of zebra's tables are in.
    pub(crate) fn table_of(&self, family: Family, table: u32) -> u32 {
        self.lcp.table_in(&self.netns(), family, table)
    }

    /// Puts a route into the forwarding table as its next hops say now, or takes it out.
    fn decide(&self, key: &Key) -> Outcome {
        let Some((way, before)) = self.told.borrow().get(key).map(|e| (e.way.clone(), e.installed)) else {
            return Outcome::Failed;
        };
        let id = self.table_of(Family::of(key.1.addr()), key.0);
        let outcome = self.install(key, id, &way);
        let now = (outcome == Outcome::Installed).then_some(id);
        if let Some(entry) = self.told.borrow_mut().get_mut(key) {
            entry.installed = now;
        }
        self.note_installed(key, before, now);
        outcome
    }

    /// A route was in one table of this router, or in none, and is in this one now, or in none: it is taken out of the one before, and
    /// counted.
    pub(crate) fn note_installed(&self, key: &Key, before: Option<u32>, now: Option<u32>) {
        if let Some(before) = before.filter(|before| Some(*before) != now) {
            self.withdraw(key, before);
        }
        let installed = self.installed.get() + usize::from(now.is_some());
        self.installed.set(installed.saturating_sub(usize::from(before.is_some())));
    }
}

/// Whether a prefix is one of links or groups, which the router has of itself.
fn is_of_links(prefix: &IpPrefix) -> bool {
    match prefix.addr() {
        IpAddr::V4(address) => address.is_multicast(),
        IpAddr::V6(address) => address.is_multicast() || address.is_unicast_link_local(),
    }
}
