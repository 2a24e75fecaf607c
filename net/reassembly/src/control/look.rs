//! What is held now; and the walk that ends what has been held too long.

use std::fmt::Display;
use std::sync::Arc;

use shoal_graph::{Graph, GraphError};

use super::{Kind, Reassembly, Version};
use crate::ReassemblyError;
use crate::family::Family;
use crate::settings::Settings;
use crate::state::{EXPIRED_AT_ONCE, Held, State};
use crate::table::Seen;

/// Datagrams listed of each thread.
const LISTED: usize = 256;
/// Times a thread is asked in one walk to end what is due.
const ROUNDS: usize = 16;

/// A datagram that is not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The thread that puts it together.
    pub thread: usize,
    /// What names it.
    pub key: String,
    /// Fragments that are there.
    pub fragments: u32,
    /// Bytes that are there.
    pub bytes: u32,
    /// Bytes it has, if that is known.
    pub len: Option<u32>,
    /// How long ago its first fragment came, in milliseconds.
    pub age_ms: u64,
    /// Its fragments did not fit together.
    pub given_up: bool,
}

/// How much is held, and within which limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Datagrams that are not whole.
    pub reassemblies: usize,
    /// Limits and times.
    pub settings: Settings,
    /// Buffers fragments hold, of all kinds and families.
    pub buffers: u32,
    /// Buffers they may hold.
    pub most_buffers: u32,
    /// Some datagrams, if asked for.
    pub datagrams: Vec<Datagram>,
}

impl Reassembly {
    /// How much is held; `details`: which datagrams.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn look(&self, version: Version, kind: Kind, details: bool) -> Result<Look, ReassemblyError> {
        let (reassemblies, datagrams) = match (version, kind) {
            (Version::Ip4, Kind::Full) => self.datagrams(&self.ip4.full, details)?,
            (Version::Ip6, Kind::Full) => self.datagrams(&self.ip6.full, details)?,
            (Version::Ip4, Kind::ShallowVirtual) => self.datagrams(&self.ip4.sv, details)?,
            (Version::Ip6, Kind::ShallowVirtual) => self.datagrams(&self.ip6.sv, details)?,
        };
        let settings = self.settings(version, kind);
        let (buffers, most_buffers) = (self.budget.held(), self.budget.most());
        Ok(Look { reassemblies, settings, buffers, most_buffers, datagrams })
    }

    fn datagrams<F: Family, T: Held<F::Key>>(
        &self,
        full: &Arc<State<F, T>>,
        details: bool,
    ) -> Result<(usize, Vec<Datagram>), GraphError> {
        let held = |(thread, shard): (usize, &crate::threads::Shard<_>)| (thread, shard.held());
        let all: Vec<(usize, usize)> =
            full.shards.iter().enumerate().map(held).filter(|(_, n)| *n > 0).collect();
        let count = all.iter().map(|(_, n)| n).sum();
        let mut list = Vec::new();
        for (thread, _) in all.into_iter().filter(|_| details) {
            let full = Arc::clone(full);
            let look = move |_: &mut shoal_graph::Worker| {
                full.shards.get(thread).map(|shard| shard.lock().seen(LISTED)).unwrap_or_default()
            };
            let seen = self.graph.on_thread(thread, look)?;
            let now = self.graph.clock().now();
            list.extend(
                seen.into_iter().map(|s| datagram(thread, &s, now.since(s.since).as_millis() as u64)),
            );
        }
        Ok((count, list))
    }

    /// Ends what has been held too long.
    pub(crate) fn walk(&self, version: Version, kind: Kind) {
        self.follow();
        match (version, kind) {
            (Version::Ip4, Kind::Full) => walk(&self.graph, &self.ip4.full),
            (Version::Ip6, Kind::Full) => walk(&self.graph, &self.ip6.full),
            (Version::Ip4, Kind::ShallowVirtual) => walk(&self.graph, &self.ip4.sv),
            (Version::Ip6, Kind::ShallowVirtual) => walk(&self.graph, &self.ip6.sv),
        }
    }
}

fn datagram<K: Display>(thread: usize, seen: &Seen<K>, age_ms: u64) -> Datagram {
    let Seen { key, fragments, bytes, len, given_up, .. } = seen;
    Datagram {
        thread,
        key: key.to_string(),
        fragments: *fragments,
        bytes: *bytes,
        len: *len,
        age_ms,
        given_up: *given_up,
    }
}

fn walk<F: Family, T: Held<F::Key>>(graph: &Graph, full: &Arc<State<F, T>>) {
    let (now, timeout) = (graph.clock().now(), full.settings.timeout());
    let threads: Vec<usize> = graph.threads().iter().map(|t| t.index).collect();
    for (thread, shard) in full.shards.iter().enumerate() {
        if shard.held() == 0 {
            continue;
        }
        if !threads.contains(&thread) {
            // Nobody runs there any more: what it held is the main thread's to free.
            full.clear(thread, &mut graph.main(), now);
            continue;
        }
        // Asked in steps, so that packets go on between them.
        for _ in 0..ROUNDS {
            if shard.oldest().is_none_or(|oldest| oldest.after(timeout) > now) {
                break;
            }
            let full = Arc::clone(full);
            match graph.on_thread(thread, move |worker| full.expire(worker, now)) {
                Ok(EXPIRED_AT_ONCE) => {}
                Ok(_) => break,
                Err(e) => {
                    tracing::warn!(thread, "fragments are not expired: {e}");
                    break;
                }
            }
        }
    }
}
