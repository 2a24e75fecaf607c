//! How a balance's buckets are shared among its members: pure arithmetic.

/// How buckets are filled when members come and go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Spread {
    /// Computed each time, with as few buckets as the weights allow. Most flows move.
    #[default]
    Even,
    /// Members that stay keep their buckets; only what a lost one had moves. There are more buckets, so that this
    /// leaves fair shares.
    Resilient,
    /// The same, with at least so many buckets, as far as there are so many.
    Buckets(u16),
}

impl Spread {
    /// Whether members that stay keep their buckets.
    pub fn is_resilient(self) -> bool {
        self != Spread::Even
    }
}

/// Most buckets of one balance, and most members.
pub const MOST_BUCKETS: usize = 1024;

/// Buckets for each member of a resilient balance, at least.
const RESILIENT_EACH: usize = 16;

/// The largest sum of what members get too much or too little, as a part of all: VPP's figure.
const TOLERANCE: f64 = 0.1;

/// What each member should have of `n` buckets, not rounded.
fn quotas(weights: &[u64], n: usize) -> Vec<f64> {
    let sum: f64 = weights.iter().map(|w| *w as f64).sum();
    weights.iter().map(|w| *w as f64 * n as f64 / sum.max(1.0)).collect()
}

/// How many of `n` buckets each member gets: the quota rounded up or down, and at least one. There are no more
/// members than buckets.
pub(crate) fn counts(weights: &[u64], n: usize) -> Vec<usize> {
    let quotas = quotas(weights, n);
    let mut counts: Vec<usize> = quotas.iter().map(|q| (*q as usize).max(1)).collect();
    let mut sum: usize = counts.iter().sum();
    let owed = |counts: &[usize], i: usize| {
        quotas.get(i).map_or(0.0, |q| q - counts.get(i).map_or(0.0, |c| *c as f64))
    };
    while sum != n {
        let order = (0..counts.len()).filter(|i| sum < n || counts.get(*i).is_some_and(|c| *c > 1));
        let by = |a: &usize, b: &usize| owed(&counts, *a).total_cmp(&owed(&counts, *b));
        // Of several alike the first gets more and the last gives.
        let picked = if sum < n { order.rev().max_by(by) } else { order.rev().min_by(by) };
        let Some(count) = picked.and_then(|i| counts.get_mut(i)) else { break };
        if sum < n {
            (*count, sum) = (*count + 1, sum + 1);
        } else {
            (*count, sum) = (*count - 1, sum - 1);
        }
    }
    counts
}

/// How many buckets: the least power of two that gives each member its share closely enough.
pub(crate) fn size(weights: &[u64], spread: Spread) -> usize {
    let least = match spread {
        Spread::Even => weights.len(),
        Spread::Resilient => weights.len() * RESILIENT_EACH,
        Spread::Buckets(least) => weights.len().max(least.into()),
    };
    let mut n = least.max(1).next_power_of_two().min(MOST_BUCKETS);
    while n < MOST_BUCKETS {
        let error: f64 =
            quotas(weights, n).iter().zip(counts(weights, n)).map(|(q, c)| (q - c as f64).abs()).sum();
        if error <= TOLERANCE * n as f64 {
            break;
        }
        n *= 2;
    }
    n
}

/// Buckets of `n`, member by member.
pub(crate) fn fresh(members: &[(u32, u64)], n: usize) -> Vec<u32> {
    let weights: Vec<u64> = members.iter().map(|m| m.1).collect();
    members.iter().zip(counts(&weights, n)).flat_map(|(m, count)| std::iter::repeat_n(m.0, count)).collect()
}

/// How many buckets each member has, and how many each should have.
struct Shares<'a> {
    members: &'a [(u32, u64)],
    quotas: Vec<f64>,
    have: Vec<usize>,
}

impl<'a> Shares<'a> {
    fn new(members: &'a [(u32, u64)], n: usize) -> Self {
        let weights: Vec<u64> = members.iter().map(|m| m.1).collect();
        Shares { members, quotas: quotas(&weights, n), have: vec![0; members.len()] }
    }

    fn place(&self, adj: u32) -> Option<usize> {
        self.members.iter().position(|m| m.0 == adj)
    }

    fn has(&self, i: usize) -> usize {
        self.have.get(i).copied().unwrap_or(0)
    }

    fn owed(&self, i: usize) -> f64 {
        self.quotas.get(i).map_or(0.0, |q| q - self.has(i) as f64)
    }

    /// The member that should get the next bucket: one without a bucket, or else the one that is owed most.
    fn poorest(&self) -> Option<usize> {
        let rank = |i: &usize| (self.has(*i) == 0, self.owed(*i));
        (0..self.have.len()).rev().max_by(|a, b| {
            let (a, b) = (rank(a), rank(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    }

    /// The member that can spare a bucket best. A member's only bucket is never taken.
    fn richest(&self) -> Option<usize> {
        let owed = |i: &usize| self.owed(*i);
        (0..self.have.len()).filter(|i| self.has(*i) > 1).min_by(|a, b| owed(a).total_cmp(&owed(b)))
    }

    /// Gives a bucket to the one who should get it.
    fn give(&mut self, bucket: &mut u32) {
        let Some(i) = self.poorest() else { return };
        if let (Some((adj, _)), Some(have)) = (self.members.get(i), self.have.get_mut(i)) {
            *bucket = *adj;
            *have += 1;
        }
    }
}

/// A balance as it is: its buckets, and its members with their weights.
#[derive(Clone, Default, Debug)]
pub(crate) struct Filled {
    pub buckets: Vec<u32>,
    pub members: Vec<(u32, u64)>,
}

impl Filled {
    /// Whether members that stay have weights in the same proportion.
    fn is_in_proportion(&self, members: &[(u32, u64)]) -> bool {
        let weight =
            |adj: u32| self.members.iter().find(|(before, _)| *before == adj).map(|(_, weight)| *weight);
        let mut both =
            members.iter().filter_map(|(adj, now)| Some((u128::from(weight(*adj)?), u128::from(*now))));
        let Some((before, now)) = both.next() else { return true };
        both.all(|(other_before, other_now)| before * other_now == other_before * now)
    }
}

/// Buckets of `n`, which is no less than there were, with as much of `old` as can stay: a member that is lost gives
/// its buckets to those that have too few, a new one takes from those that have too many, and so does one whose weight
/// has grown. Each member gets one at least; there are no more members than buckets.
pub(crate) fn refilled(old: &Filled, members: &[(u32, u64)], n: usize) -> Vec<u32> {
    if old.buckets.is_empty() {
        return fresh(members, n);
    }
    // More buckets: each one's flows part in two that stay where they are.
    let mut buckets: Vec<u32> = old.buckets.iter().copied().cycle().take(n).collect();
    let mut shares = Shares::new(members, n);
    let mut lost = Vec::new();
    for (bucket, adj) in buckets.iter().enumerate() {
        match shares.place(*adj).and_then(|i| shares.have.get_mut(i)) {
            Some(have) => *have += 1,
            None => lost.push(bucket),
        }
    }
    let nothing_new = shares.have.iter().all(|have| *have > 0);
    for bucket in &lost {
        if let Some(bucket) = buckets.get_mut(*bucket) {
            shares.give(bucket);
        }
    }
    if !lost.is_empty() && nothing_new && old.is_in_proportion(members) {
        // Nothing but a loss: remaining members keep all their buckets.
        return buckets;
    }
    // Bounded: each round brings the shares nearer to the quotas, or gives somebody his first bucket.
    for _ in 0..n {
        let (Some(poor), Some(rich)) = (shares.poorest(), shares.richest()) else { break };
        if shares.has(poor) > 0 && shares.owed(poor) < 1.0 && shares.owed(rich) > -1.0 {
            break;
        }
        let Some((from, _)) = members.get(rich) else { break };
        let Some(bucket) = buckets.iter().rposition(|adj| adj == from) else { break };
        if let (Some(have), Some(bucket)) = (shares.have.get_mut(rich), buckets.get_mut(bucket)) {
            *have -= 1;
            shares.give(bucket);
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator that is the same everywhere.
    fn random(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 33
    }

    fn shares(buckets: &[u32], members: &[(u32, u64)]) -> Vec<f64> {
        let weights: Vec<u64> = members.iter().map(|m| m.1).collect();
        let have = |adj: u32| buckets.iter().filter(|b| **b == adj).count() as f64;
        members.iter().zip(quotas(&weights, buckets.len())).map(|(m, q)| have(m.0) - q).collect()
    }

    #[test]
    fn shares_are_the_weights_rounded_and_the_error_is_bounded() {
        let mut seed = 1;
        for _ in 0..2000 {
            let len = 1 + random(&mut seed) as usize % 64;
            let most = 1 + random(&mut seed) % 255;
            let weights: Vec<u64> = (0..len).map(|_| 1 + random(&mut seed) % most).collect();
            let n = size(&weights, Spread::Even);
            let counts = counts(&weights, n);
            assert_eq!(counts.iter().sum::<usize>(), n);
            let error: f64 =
                quotas(&weights, n).iter().zip(&counts).map(|(q, c)| (q - *c as f64).abs()).sum();
            assert!(n == MOST_BUCKETS || error <= n as f64 * TOLERANCE, "{weights:?}: {error} of {n}");
            for (quota, count) in quotas(&weights, n).iter().zip(counts) {
                // A share of less than one bucket is rounded up, at the cost of the others.
                assert!(count >= 1 && (count as f64 - quota).abs() < 2.0 + len as f64 / 16.0, "{weights:?}");
            }
        }
    }

    #[test]
    fn unequal_weights_get_as_few_buckets_as_vpp_gives_them() {
        let two = |a, b| size(&[a, b], Spread::Even);
        assert_eq!((two(1, 1), two(1, 3), two(1, 2), two(2, 7)), (2, 4, 8, 4));
        assert_eq!(counts(&[1, 2], 16), [5, 11]);
        assert_eq!(fresh(&[(7, 1), (9, 3)], 4), [7, 9, 9, 9]);
    }

    #[test]
    fn only_the_failed_share_moves() {
        let mut seed = 2;
        for _ in 0..500 {
            let len = 2 + random(&mut seed) as usize % 20;
            let most = 1 + random(&mut seed) % 16;
            let mut members: Vec<(u32, u64)> =
                (0..len as u32).map(|i| (100 + i, 1 + random(&mut seed) % most)).collect();
            let weights: Vec<u64> = members.iter().map(|m| m.1).collect();
            let n = size(&weights, Spread::Resilient);
            let mut buckets = fresh(&members, n);
            while members.len() > 1 {
                let before = Filled { buckets: buckets.clone(), members: members.clone() };
                let gone = members.remove(random(&mut seed) as usize % members.len()).0;
                let next = refilled(&before, &members, n);
                for (old, new) in buckets.iter().zip(&next) {
                    assert!(*new != gone && (*old == gone || old == new), "a bucket of a survivor moved");
                }
                // What a survivor has too little after many losses stays small.
                assert!(
                    shares(&next, &members).iter().all(|d| d.abs() < 2.0),
                    "{:?}",
                    shares(&next, &members)
                );
                buckets = next;
            }
        }
    }

    #[test]
    fn a_new_member_takes_its_share_and_nothing_else_moves() {
        let mut seed = 3;
        for _ in 0..500 {
            let mut members: Vec<(u32, u64)> = vec![(1, 1 + random(&mut seed) % 4)];
            let mut buckets = fresh(&members, 256);
            for adj in 2..16 {
                let before = Filled { buckets: buckets.clone(), members: members.clone() };
                members.push((adj, 1 + random(&mut seed) % 4));
                let next = refilled(&before, &members, 256);
                assert!(buckets.iter().zip(&next).all(|(old, new)| old == new || *new == adj));
                assert!(
                    shares(&next, &members).iter().all(|d| d.abs() < 2.0),
                    "{:?}",
                    shares(&next, &members)
                );
                buckets = next;
            }
        }
    }

    #[test]
    fn each_member_has_a_bucket_whatever_comes_and_goes() {
        let mut seed = 4;
        for _ in 0..2000 {
            // Weights as recursive paths make them: products of others.
            let weight = |seed: &mut u64| 1 << (random(seed) % 10);
            let mut members: Vec<(u32, u64)> = vec![(1, weight(&mut seed)), (2, weight(&mut seed))];
            let mut before = Filled::default();
            for adj in 3..12 {
                let weights: Vec<u64> = members.iter().map(|m| m.1).collect();
                let n = size(&weights, Spread::Resilient).max(before.buckets.len());
                let buckets = refilled(&before, &members, n);
                for (member, _) in &members {
                    assert!(buckets.contains(member), "{member} of {members:?} has none");
                }
                for bucket in &buckets {
                    assert!(members.iter().any(|m| m.0 == *bucket), "{bucket} is none of {members:?}");
                }
                before = Filled { buckets, members: members.clone() };
                if random(&mut seed).is_multiple_of(2) {
                    members.remove(random(&mut seed) as usize % members.len());
                }
                members.push((adj, weight(&mut seed)));
            }
        }
    }

    #[test]
    fn more_buckets_move_no_flow() {
        let members = [(1, 1), (2, 1)];
        let old = fresh(&members, 32);
        let new = refilled(&Filled { buckets: old.clone(), members: members.to_vec() }, &members, 64);
        assert!((0..64).all(|hash: usize| new[hash] == old[hash & 31]));
    }

    #[test]
    fn weights_that_change_with_a_loss_are_followed() {
        // A path that went led by the second and the third member: the second one's weight went down with it.
        let members = vec![(1, 3), (2, 4), (3, 1)];
        let old = Filled { buckets: fresh(&members, 64), members };
        let members = [(1, 3), (2, 1)];
        let new = refilled(&old, &members, 64);
        assert!(shares(&new, &members).iter().all(|d| d.abs() < 1.0), "{new:?}");
        let moved = old.buckets.iter().zip(&new).filter(|(old, new)| old != new).count();
        assert_eq!(moved, 64 * 3 / 8, "the third one's, and what the second one had too many");
    }
}
