//! What a feature has so much of and no more: rows of `show capacity`.

/// One resource: a table, a pool, a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// What there are so many of, in the plural: `ip4 routes`.
    pub resource: String,
    /// How many there are.
    pub used: usize,
    /// How many there is room for at this moment, without growing; `None`: it grows one by one.
    pub now: Option<usize>,
    /// Most there may ever be; `None`: memory is the only bound.
    pub most: Option<usize>,
    /// Bytes of memory that one more takes, about; 0 for what has its memory already.
    pub bytes_each: usize,
}

impl Capacity {
    /// A resource that grows one by one up to a bound.
    pub fn up_to(resource: impl Into<String>, used: usize, most: usize, bytes_each: usize) -> Self {
        Capacity { resource: resource.into(), used, now: None, most: Some(most), bytes_each }
    }

    /// A resource that only memory bounds.
    pub fn by_memory(resource: impl Into<String>, used: usize, bytes_each: usize) -> Self {
        Capacity { resource: resource.into(), used, now: None, most: None, bytes_each }
    }

    /// The same, with room for so many already.
    #[must_use]
    pub fn with_room(mut self, now: usize) -> Self {
        self.now = Some(now);
        self
    }

    /// How many more fit, with so many bytes of memory left; `None` when nothing bounds it. What there is room for
    /// already takes no memory.
    pub fn more(&self, memory: Option<u64>) -> Option<usize> {
        let room = self.now.map_or(0, |now| now.saturating_sub(self.used));
        let by_memory = match (memory, self.bytes_each) {
            (Some(bytes), each @ 1..) => Some(room.saturating_add((bytes / each as u64) as usize)),
            _ => None,
        };
        let by_table = self.most.map(|most| most.saturating_sub(self.used));
        by_memory.into_iter().chain(by_table).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_of_table_and_memory_bounds() {
        let table = Capacity::up_to("x", 10, 100, 8);
        assert_eq!(
            (table.more(None), table.more(Some(1 << 20)), table.more(Some(80))),
            (Some(90), Some(90), Some(10))
        );
        let open = Capacity::by_memory("x", 10, 8);
        assert_eq!((open.more(None), open.more(Some(80))), (None, Some(10)));
        assert_eq!(open.with_room(15).more(Some(80)), Some(15), "room that is there takes no memory");
        assert_eq!(Capacity::up_to("x", 3, 2, 0).more(Some(0)), Some(0));
    }
}
