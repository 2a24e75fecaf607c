//! Which frames of a stream have come: a bit for each sequence number.

/// What a sequence number was when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// For the first time, and after all that came before it.
    InOrder,
    /// For the first time, but after a later one: RFC 4737's definition of reordering.
    Reordered,
    /// Not for the first time.
    Again,
    /// It was never sent.
    Impossible,
}

/// The sequence numbers of one stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequences {
    bits: Vec<u64>,
    count: u64,
    /// One more than the highest that came: RFC 4737's `NextExp`.
    expected: u64,
}

impl Sequences {
    /// Bytes that [`new`](Self::new) takes.
    pub(crate) fn bytes(count: u64) -> u64 {
        count.div_ceil(64) * 8
    }

    /// Room for `count` numbers, in memory that is there: the kernel gives pages only when they are written.
    pub(crate) fn new(count: u64) -> Self {
        let mut bits = vec![u64::MAX; count.div_ceil(64) as usize];
        bits.fill(0);
        Sequences { bits, count, expected: 0 }
    }

    /// Marks a number.
    #[inline]
    pub(crate) fn take(&mut self, sequence: u64) -> Arrival {
        let Some(word) = self.bits.get_mut((sequence / 64) as usize).filter(|_| sequence < self.count) else {
            return Arrival::Impossible;
        };
        let bit = 1 << (sequence % 64);
        if *word & bit != 0 {
            return Arrival::Again;
        }
        *word |= bit;
        if sequence < self.expected {
            return Arrival::Reordered;
        }
        self.expected = sequence + 1;
        Arrival::InOrder
    }

    /// One more than the highest that came.
    #[inline]
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    /// Numbers from `from` up to, not including, `to` that have not come.
    pub(crate) fn missing(&self, from: u64, to: u64) -> u64 {
        let to = to.min(self.count);
        let (mut sum, mut at) = (0, from);
        while at < to {
            let word = self.bits.get((at / 64) as usize).copied().unwrap_or(0);
            let (low, end) = (at % 64, to.min((at / 64 + 1) * 64));
            let width = end - at;
            let mask = if width == 64 { u64::MAX } else { ((1 << width) - 1) << low };
            sum += u64::from((!word & mask).count_ones());
            at = end;
        }
        sum
    }

    /// The highest number below `sent` that has not come.
    pub(crate) fn last_missing(&self, sent: u64) -> Option<u64> {
        let sent = sent.min(self.count);
        let words = sent.div_ceil(64);
        (0..words).rev().find_map(|i| {
            let word = self.bits.get(i as usize)?;
            let width = sent - i * 64;
            let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
            let gone = !word & mask;
            (gone != 0).then(|| i * 64 + 63 - u64::from(gone.leading_zeros()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_new_once_and_reordered_after_a_higher_one() {
        let mut all = Sequences::new(100);
        let came: Vec<_> = [0, 2, 1, 2, 99, 98, 100, u64::MAX].map(|n| all.take(n)).into();
        use Arrival::{Again, Impossible, InOrder, Reordered};
        assert_eq!(came, [InOrder, InOrder, Reordered, Again, InOrder, Reordered, Impossible, Impossible]);
        assert_eq!((all.expected(), all.missing(0, 100), all.last_missing(100)), (100, 95, Some(97)));
        assert_eq!(all.last_missing(3), None);
    }

    proptest! {
        #[test]
        fn what_is_missing_is_what_did_not_come(
            came in proptest::collection::btree_set(0u64..300, 0..300),
            a in 0u64..310,
            b in 0u64..310,
        ) {
            let mut all = Sequences::new(300);
            for n in &came {
                all.take(*n);
            }
            let missing: BTreeSet<_> = (0..300).filter(|n| !came.contains(n)).collect();
            let within = missing.iter().filter(|n| (a..b).contains(*n)).count() as u64;
            prop_assert_eq!(all.missing(a, b), within);
            prop_assert_eq!(all.last_missing(b), missing.iter().copied().rfind(|n| *n < b));
        }
    }
}
