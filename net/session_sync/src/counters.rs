//! What is counted, in the stats segment under `/session-sync`.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use shoal_graph::Graph;
use shoal_graph::counter::{Counters, Simple};
use shoal_nat_state::sync::{Misfit, SyncedFeature};

/// Names of what is counted of the other router's sessions, for each kind of NAT.
const OUTCOMES: [&str; 5] = ["entered", "renewed", "replaced", "ended", "swept"];

/// What is counted of one kind of NAT.
struct FeatureCounters {
    outcomes: Vec<Simple>,
    refused: Vec<Simple>,
    /// What threads had counted when it was looked at last.
    before: RefCell<Vec<u64>>,
}

/// All counters.
pub struct SyncCounters {
    /// Datagrams: sent, received.
    pub datagrams_sent: Simple,
    /// Datagrams of the other router that are authentic.
    pub datagrams_received: Simple,
    /// Datagrams that were sent again.
    pub again: Simple,
    /// Sessions that were sent.
    pub puts_sent: Simple,
    /// Ends of sessions that were sent.
    pub ends_sent: Simple,
    /// Sessions that came.
    pub puts_received: Simple,
    /// Ends that came.
    pub ends_received: Simple,
    /// Datagrams whose hash is not that of the key, or that have one though none is agreed on.
    pub not_authentic: Simple,
    /// Hellos and data that came before.
    pub replayed: Simple,
    /// Data too far ahead.
    pub too_far: Simple,
    /// Records that are none.
    pub malformed: Simple,
    /// Ends of sessions that were lost, as a ring was full.
    pub lost: Simple,
    /// Sessions that were reported later, as a ring was full.
    pub late: Simple,
    /// How often all sessions were reported.
    pub all_told: Simple,
    /// How often both routers came to know each other.
    pub ups: Simple,
    /// How often the other router fell silent.
    pub downs: Simple,
    /// Hellos of strangers that were not answered: too many.
    pub unanswered: Simple,
    features: RefCell<Vec<FeatureCounters>>,
    graph: Rc<Graph>,
}

fn one(counters: &Counters, name: &str) -> io::Result<Simple> {
    let counter = counters.simple(&format!("/session-sync/{name}"), 1)?;
    counter.ensure(1);
    Ok(counter)
}

impl SyncCounters {
    pub(crate) fn new(graph: &Rc<Graph>) -> io::Result<Self> {
        let one = |name: &str| one(graph.counters(), name);
        Ok(SyncCounters {
            datagrams_sent: one("datagrams-sent")?,
            datagrams_received: one("datagrams-received")?,
            again: one("datagrams-sent-again")?,
            puts_sent: one("sessions-sent")?,
            ends_sent: one("ends-sent")?,
            puts_received: one("sessions-received")?,
            ends_received: one("ends-received")?,
            not_authentic: one("not-authentic")?,
            replayed: one("replayed")?,
            too_far: one("too-far-ahead")?,
            malformed: one("malformed")?,
            lost: one("ends-lost")?,
            late: one("sessions-late")?,
            all_told: one("all-told")?,
            ups: one("associations")?,
            downs: one("peer-silent")?,
            unanswered: one("strangers-not-answered")?,
            features: RefCell::default(),
            graph: Rc::clone(graph),
        })
    }

    /// A kind of NAT has these.
    pub(crate) fn add(&self, feature: &dyn SyncedFeature) -> io::Result<()> {
        let counters = self.graph.counters();
        let of = |name: &str| one(counters, &format!("{}/{name}", feature.name()));
        let outcomes = OUTCOMES.into_iter().map(of).collect::<io::Result<Vec<_>>>()?;
        let refused = |name: &&str| of(&format!("refused-{name}"));
        let refused = Misfit::NAMES.iter().map(refused).collect::<io::Result<Vec<_>>>()?;
        self.features.borrow_mut().push(FeatureCounters { outcomes, refused, before: RefCell::default() });
        Ok(())
    }

    /// Takes over what threads have counted.
    pub(crate) fn take_over(&self, at: usize, feature: &dyn SyncedFeature) {
        let (features, counts) = (self.features.borrow(), feature.counts());
        let Some(of) = features.get(at) else { return };
        let outcomes = [&counts.entered, &counts.renewed, &counts.replaced, &counts.left, &counts.swept];
        let all = outcomes.into_iter().chain(&counts.refused).map(|count| count.load(Ordering::Relaxed));
        let now: Vec<u64> = all.collect();
        let before = of.before.replace(now.clone());
        for (at, (counter, now)) in of.outcomes.iter().chain(&of.refused).zip(now).enumerate() {
            let new = now.saturating_sub(before.get(at).copied().unwrap_or(0));
            if new > 0 {
                counter.add(0, 0, new);
            }
        }
    }
}
