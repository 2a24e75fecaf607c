//! What is held now.

use std::fmt::Display;

use shoal_graph::{GraphError, StateKey};

use super::{Kind, Reassembly, Version};
use crate::ReassemblyError;
use crate::family::Family;
use crate::settings::Settings;
use crate::state::{DatagramTable, Shard, State};
use crate::table::DatagramInfo;

/// Datagrams listed of each thread.
const LISTED: usize = 256;

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

    fn datagrams<F: Family, T: DatagramTable<F::Key>>(
        &self,
        key: &StateKey<State<F, T>>,
        details: bool,
    ) -> Result<(usize, Vec<Datagram>), GraphError> {
        let most = if details { LISTED } else { 0 };
        let all = self.graph.on_every_state(key, move |_, shard: &mut Shard<T>| {
            (shard.table.count(), shard.table.seen(most))
        })?;
        let now = self.graph.clock().now();
        let age = |seen: &DatagramInfo<F::Key>| now.since(seen.since).as_millis() as u64;
        let count = all.values().map(|(count, _)| count).sum();
        let each = all
            .iter()
            .flat_map(|(thread, (_, seen))| seen.iter().map(|seen| datagram(*thread, seen, age(seen))));
        Ok((count, each.collect()))
    }
}

fn datagram<K: Display>(thread: usize, seen: &DatagramInfo<K>, age_ms: u64) -> Datagram {
    let DatagramInfo { key, fragments, bytes, len, given_up, .. } = seen;
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
