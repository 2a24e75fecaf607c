//! What threads keep.

use shoal_flow::TableError;
use shoal_graph::FrameCx;
use shoal_graph::clock::Time;
use shoal_nat_state::SessionStore;

use crate::config::Config;
use crate::owner::Direction;
use crate::sessions::{Record, Sessions, tick};
use crate::shared::Shared;

/// What threads keep, and how.
pub type SessionStores = shoal_nat_state::SessionStores<Sessions>;

impl SessionStore for Sessions {
    const TIMER: &'static str = "nat44-ed-timer";
    type Record = Record;
    type Shared = Shared;

    fn none() -> Self {
        Sessions::none()
    }

    fn open(&mut self, shared: &Shared) -> Result<(), TableError> {
        Sessions::open(self, &shared.config.get(), Time(0))
    }

    #[inline(always)]
    fn due(&self) -> Option<Time> {
        Sessions::due(self)
    }

    fn expire(&mut self, shared: &Shared, cx: &mut FrameCx<'_>) {
        let config = shared.config.load(cx.guard());
        self.set_listed(shared.news.are_wanted());
        if Sessions::expire(self, &config.timeouts, cx.now()) > 0 {
            shared.pass_on(self);
            self.count(shared, cx.thread());
        }
    }

    fn count(&self, shared: &Shared, thread: usize) {
        shared.counters.set_sessions(thread, self.len());
    }

    /// The thread that its answers come to.
    fn owner(shared: &Shared, record: &Record) -> Option<usize> {
        let session = &record.session;
        Some(shared.config.get().owner(session.outside.reversed(), session.protocol, Direction::Out2in))
    }

    fn take_out(&mut self, goes: impl FnMut(&Record) -> bool) -> Vec<Record> {
        Sessions::take_out(self, goes)
    }

    fn parcel(records: Vec<Record>) -> Self {
        Sessions::parcel(records)
    }

    fn take_in(&mut self, mut other: Self, _: &Shared, now: Time) {
        for record in other.records() {
            Sessions::take_in(self, &record, tick(now));
        }
    }

    fn set_workers(shared: &Shared, workers: &[usize]) {
        let mut config = Config::clone(&shared.config.get());
        config.workers = workers.to_vec();
        shared.config.replace(config);
    }
}
