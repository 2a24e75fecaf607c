//! What is shown.

use std::sync::Arc;
use std::time::Duration;

use shoal_nat_state::sync::{Counts, Role};

use super::SessionSync;
use crate::config::{Peer, RoleSource, Timers};

/// A kind of NAT.
#[derive(Clone, Debug)]
pub struct FeatureView {
    /// What an operator calls it.
    pub name: &'static str,
    /// Whether it is on.
    pub is_on: bool,
    /// What became of the other router's sessions.
    pub counts: Arc<Counts>,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct View {
    /// The other router.
    pub peer: Option<Peer>,
    /// Times.
    pub timers: Timers,
    /// What says who forwards.
    pub source: RoleSource,
    /// What this router is.
    pub role: Role,
    /// How long both have known each other; `None`: they do not.
    pub up: Option<Duration>,
    /// Whether the other router forwards.
    pub peer_is_active: bool,
    /// Datagrams that were not acknowledged.
    pub unacknowledged: usize,
    /// Datagrams that came too early.
    pub early: usize,
    /// The time of an answer.
    pub round_trip: Option<Duration>,
    /// Kinds of NAT.
    pub features: Vec<FeatureView>,
    /// Counters by name.
    pub counters: Vec<(&'static str, u64)>,
    /// Sessions of the other router that were refused lately.
    pub refused: Vec<String>,
}

impl SessionSync {
    /// What is shown.
    pub fn view(&self) -> View {
        let state = self.state.borrow();
        let counters = &self.counters;
        let all = [
            ("datagrams sent", &counters.datagrams_sent),
            ("datagrams sent again", &counters.again),
            ("datagrams received", &counters.datagrams_received),
            ("sessions sent", &counters.puts_sent),
            ("ends sent", &counters.ends_sent),
            ("sessions received", &counters.puts_received),
            ("ends received", &counters.ends_received),
            ("all sessions told", &counters.all_told),
            ("ends lost", &counters.lost),
            ("sessions late", &counters.late),
            ("not authentic", &counters.not_authentic),
            ("replayed", &counters.replayed),
            ("too far ahead", &counters.too_far),
            ("malformed", &counters.malformed),
            ("strangers not answered", &counters.unanswered),
            ("peer silent", &counters.downs),
        ];
        let of = |feature: &std::rc::Rc<dyn shoal_nat_state::sync::SyncedFeature>| FeatureView {
            name: feature.name(),
            is_on: feature.is_on(),
            counts: feature.counts(),
        };
        View {
            peer: state.peer.clone(),
            timers: state.timers,
            source: state.source,
            role: state.role,
            up: state.up_since.map(|since| self.now().since(since)),
            peer_is_active: state.peer_is_active,
            unacknowledged: state.send.len(),
            early: state.receive.len(),
            round_trip: state.send.round_trip(),
            features: self.features.iter().map(of).collect(),
            counters: all.into_iter().map(|(name, counter)| (name, counter.sum(0))).collect(),
            refused: state.refused.iter().cloned().collect(),
        }
    }
}
