//! What threads keep.

use shoal_flow::TableError;
use shoal_graph::FrameCx;
use shoal_graph::clock::Time;
use shoal_nat_state::SessionStore;

use crate::config::Config;
use crate::sessions::{Record, Sessions};
use crate::shared::Shared;

/// What threads keep, and how.
pub type SessionStores = shoal_nat_state::SessionStores<Sessions>;

impl SessionStore for Sessions {
    const TIMER: &'static str = "det44-expire-walk";
    type Record = Record;
    type Shared = Shared;

    fn none() -> Self {
        Sessions::none()
    }

    fn open(&mut self, shared: &Shared) -> Result<(), TableError> {
        Sessions::open(self, shared.config.get().timeouts, Time(0))
    }

    #[inline(always)]
    fn due(&self) -> Option<Time> {
        Sessions::due(self)
    }

    fn expire(&mut self, shared: &Shared, cx: &mut FrameCx<'_>) {
        if Sessions::expire(self, cx.now()) > 0 {
            self.count(shared, cx.thread());
        }
    }

    fn count(&self, shared: &Shared, thread: usize) {
        shared.set_count(thread, self.len());
    }

    /// The ports of a host are its own on any thread, so that no session is lost.
    fn owner(shared: &Shared, record: &Record) -> Option<usize> {
        Some(shared.config.get().worker(record.flow.host))
    }

    fn take_out(&mut self, mut goes: impl FnMut(&Record) -> bool) -> Vec<Record> {
        Sessions::take_out(self, Time(0), |record| goes(record))
    }

    fn parcel(records: Vec<Record>) -> Self {
        Sessions::parcel(records)
    }

    fn take_in(&mut self, other: Self, _: &Shared, now: Time) {
        Sessions::take_in(self, other, now);
    }

    fn set_workers(shared: &Shared, workers: &[usize]) {
        let mut config = Config::clone(&shared.config.get());
        config.workers = workers.to_vec();
        shared.config.replace(config);
    }
}
