//! Open counters of one thread.

use std::io;

use perf_event::{Builder, Counter};

use crate::bundle::Bundle;

/// For what counters are kept apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// For each node, on each thread.
    Node,
    /// For each thread.
    Thread,
}

impl Kind {
    /// As it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Node => "node",
            Kind::Thread => "thread",
        }
    }
}

/// Most counters of a bundle.
pub(crate) const MOST: usize = 2;
/// What counters read.
pub(crate) type Values = [u64; MOST];

/// The counters of a bundle, for one thread.
pub(crate) struct Counters(Vec<Counter>);

impl Counters {
    /// Opens and starts the counters of a thread, by its number in the kernel; `None` is the calling one.
    pub(crate) fn open(bundle: &Bundle, thread: Option<i32>) -> io::Result<Counters> {
        let open = |event: fn() -> perf_event::events::Event| {
            let builder = Builder::new().kind(event()).any_cpu();
            let mut builder = match thread {
                Some(thread) => builder.observe_pid(thread),
                None => builder.observe_self(),
            };
            // Most of what the kernel counts happens inside it.
            builder.include_kernel();
            let mut counter = builder.build()?;
            counter.enable()?;
            Ok(counter)
        };
        bundle
            .counters
            .iter()
            .take(MOST)
            .map(|counted| open(counted.event))
            .collect::<io::Result<_>>()
            .map(Counters)
    }

    /// What they have counted since they were opened; one that cannot be read has not moved.
    pub(crate) fn read(&mut self) -> Values {
        let mut values = Values::default();
        for (value, counter) in values.iter_mut().zip(&mut self.0) {
            *value = counter.read().unwrap_or(0);
        }
        values
    }
}

/// What was counted between two readings.
pub(crate) fn between(before: Values, after: Values) -> Values {
    std::array::from_fn(|at| {
        let of = |values: &Values| values.get(at).copied().unwrap_or(0);
        of(&after).saturating_sub(of(&before))
    })
}
