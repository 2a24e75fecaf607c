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
    const TIMER: &'static str = "nat64-expire-worker-walk";
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
        let gone = Sessions::expire(self, cx.now());
        if !gone.is_empty() {
            self.count(shared, cx.thread());
        }
        for record in gone {
            shared.tell(false, record);
        }
        shared.tell_bindings(self);
    }

    fn count(&self, shared: &Shared, thread: usize) {
        shared.count(thread, self);
    }

    /// The port of a session whose host moves is another thread's to give out, unless both move together.
    fn owner(shared: &Shared, record: &Record) -> Option<usize> {
        let config = shared.config.get();
        let of_host = config.of_inside(&record.inside);
        (of_host == config.of_outside(&record.outside)).then_some(of_host)
    }

    fn take_out(&mut self, goes: impl FnMut(&Record) -> bool) -> Vec<Record> {
        let gone = Sessions::take_out(self, goes);
        // They go on elsewhere.
        self.events.clear();
        gone
    }

    fn parcel(records: Vec<Record>) -> Self {
        Sessions::parcel(records)
    }

    fn take_in(&mut self, other: Self, shared: &Shared, now: Time) {
        Sessions::take_in(self, other, &shared.config.get(), now);
        self.events.clear();
    }

    fn set_workers(shared: &Shared, workers: &[usize]) {
        let mut config = Config::clone(&shared.config.get());
        config.workers = workers.to_vec();
        shared.config.replace(config);
    }
}
