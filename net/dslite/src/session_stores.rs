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
    const TIMER: &'static str = "dslite-timer";
    type Record = Record;
    type Shared = Shared;

    fn none() -> Self {
        Sessions::none()
    }

    fn open(&mut self, _: &Shared) -> Result<(), TableError> {
        Sessions::open(self, Time(0))
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
    }

    fn count(&self, shared: &Shared, thread: usize) {
        shared.count(thread, self);
    }

    /// The ports of a session whose thread changes are another thread's, so only sessions whose port is the new thread's go on.
    fn owner(shared: &Shared, record: &Record) -> Option<usize> {
        let config = shared.config.get();
        let of_b4 = config.of_b4(record.inside.b4);
        (of_b4 == config.of_port(record.outside.port)).then_some(of_b4)
    }

    fn take_out(&mut self, goes: impl FnMut(&Record) -> bool) -> Vec<Record> {
        Sessions::take_out(self, goes)
    }

    fn parcel(records: Vec<Record>) -> Self {
        Sessions::parcel(records)
    }

    fn take_in(&mut self, other: Self, _: &Shared, now: Time) {
        Sessions::take_in(self, other, now);
    }

    fn set_workers(shared: &Shared, workers: &[usize]) {
        let config = Config::clone(&shared.config.get());
        shared.config.replace(config.published(workers.to_vec()));
    }
}
