//! Next hops and groups of the kernel that routes name by number.

use std::collections::{BTreeSet, HashMap};

use super::{HostPath, HostPaths, HostWay};

/// Groups may hold groups no deeper than this: the kernel allows none at all.
const DEPTH: usize = 2;
/// Members of a group that are looked at.
const MEMBERS: usize = 256;

/// A next hop, or a group of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostNextHop {
    /// Packets are dropped.
    Blackhole,
    /// One neighbour.
    One(HostPath),
    /// Others, by number, with their shares.
    Group(Vec<(u32, u32)>),
    /// The same with so many buckets, of which a member that goes moves no others but its own.
    Resilient(Vec<(u32, u32)>, u16),
    /// Of a kind that there is not here, such as MPLS or SRv6.
    Unknown,
}

/// What is known of the next hops behind a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// They are known.
    Known(HostWay),
    /// Nothing is known of this number yet.
    Missing(u32),
    /// They are of a kind that there is not here.
    Unknown,
}

/// All of them, by number.
#[derive(Debug, Default)]
pub struct HostNextHops {
    all: HashMap<u32, HostNextHop>,
    /// Groups by their members.
    groups_of: HashMap<u32, BTreeSet<u32>>,
}

impl HostNextHops {
    /// How many next hops and groups.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether there is one of this number.
    pub fn contains(&self, id: u32) -> bool {
        self.all.contains_key(&id)
    }

    /// Their numbers, in no order.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.all.keys().copied()
    }

    /// Groups that have a next hop.
    pub fn groups_of(&self, id: u32) -> impl Iterator<Item = u32> {
        self.groups_of.get(&id).into_iter().flatten().copied()
    }

    /// A number means this now; returns what it meant before.
    pub fn put(&mut self, id: u32, hop: HostNextHop) -> Option<HostNextHop> {
        let joined: Vec<u32> = members(&hop).collect();
        let before = self.all.insert(id, hop);
        self.leave_members(id, before.as_ref());
        for member in joined {
            self.groups_of.entry(member).or_default().insert(id);
        }
        before
    }

    /// A number means nothing any more; returns what it meant. Groups keep naming it.
    pub fn remove(&mut self, id: u32) -> Option<HostNextHop> {
        let before = self.all.remove(&id)?;
        self.leave_members(id, Some(&before));
        Some(before)
    }

    /// Takes a next hop out of the groups that have it, as the kernel does when it goes; returns these groups. One that has
    /// no member any more goes, too.
    pub fn leave_groups(&mut self, id: u32) -> Vec<u32> {
        let groups: Vec<u32> = self.groups_of(id).collect();
        for group in &groups {
            if let Some(HostNextHop::Group(all) | HostNextHop::Resilient(all, _)) = self.all.get_mut(group) {
                all.retain(|(member, _)| *member != id);
                if all.is_empty() {
                    self.all.remove(group);
                }
            }
        }
        self.groups_of.remove(&id);
        groups
    }

    /// Numbers of the next hops by an interface, without groups.
    pub fn by_interface(&self, host_index: u32) -> Vec<u32> {
        let by = |hop: &HostNextHop| matches!(hop, HostNextHop::One(path) if path.host_index == host_index);
        self.all.iter().filter(|(_, hop)| by(hop)).map(|(id, _)| *id).collect()
    }

    /// A group has these members no longer.
    fn leave_members(&mut self, group: u32, before: Option<&HostNextHop>) {
        for member in before.into_iter().flat_map(members) {
            if let Some(groups) = self.groups_of.get_mut(&member) {
                groups.remove(&group);
                if groups.is_empty() {
                    self.groups_of.remove(&member);
                }
            }
        }
    }

    /// The buckets of a resilient group.
    pub fn buckets(&self, id: u32) -> Option<u16> {
        match self.all.get(&id)? {
            HostNextHop::Resilient(_, buckets) => Some(*buckets),
            _ => None,
        }
    }

    /// How packets leave by a number.
    pub fn resolve(&self, id: u32) -> Resolved {
        let mut paths = Vec::new();
        let other = self.collect(id, 1, DEPTH, &mut paths);
        other.unwrap_or_else(|| Resolved::Known(HostWay::Via(scaled(&paths))))
    }

    /// Adds the next hops of a number with their shares; something else if there is no list of them.
    fn collect(&self, id: u32, share: u32, depth: usize, out: &mut Vec<(HostPath, u32)>) -> Option<Resolved> {
        match self.all.get(&id) {
            None => Some(Resolved::Missing(id)),
            Some(HostNextHop::Unknown) => Some(Resolved::Unknown),
            Some(HostNextHop::Blackhole) => Some(Resolved::Known(HostWay::Blackhole)),
            Some(HostNextHop::One(path)) => {
                out.push((*path, share));
                None
            }
            Some(HostNextHop::Group(_) | HostNextHop::Resilient(..)) if depth == 0 => Some(Resolved::Unknown),
            Some(HostNextHop::Group(all) | HostNextHop::Resilient(all, _)) => {
                let mut members = all.iter().take(MEMBERS);
                members.find_map(|(id, share)| self.collect(*id, *share, depth - 1, out))
            }
        }
    }
}

fn members(hop: &HostNextHop) -> impl Iterator<Item = u32> {
    let all = match hop {
        HostNextHop::Group(all) | HostNextHop::Resilient(all, _) => all.as_slice(),
        _ => &[],
    };
    all.iter().take(MEMBERS).map(|(member, _)| *member)
}

/// Shares of 16 bits in the 8 that a path has: the largest becomes 255 if it is more.
fn scaled(paths: &[(HostPath, u32)]) -> HostPaths {
    let most = paths.iter().map(|(_, share)| *share).max().unwrap_or(1).max(255);
    let weight = |share: u32| (share * 255 / most).clamp(1, 255) as u8;
    paths.iter().map(|(path, share)| HostPath { weight: weight(*share), ..*path }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(host_index: u32) -> HostNextHop {
        HostNextHop::One(HostPath { host_index, next_hop: None, weight: 1 })
    }

    fn interfaces(hops: &HostNextHops, id: u32) -> Option<Vec<(u32, u8)>> {
        let Resolved::Known(HostWay::Via(paths)) = hops.resolve(id) else { return None };
        Some(paths.iter().map(|path| (path.host_index, path.weight)).collect())
    }

    #[test]
    fn a_group_leads_by_its_members_with_their_shares() {
        let mut hops = HostNextHops::default();
        hops.put(3, HostNextHop::Group(vec![(1, 1), (2, 510)]));
        assert_eq!(hops.resolve(3), Resolved::Missing(1));
        hops.put(1, one(7));
        hops.put(2, one(8));
        assert_eq!(interfaces(&hops, 3), Some(vec![(7, 1), (8, 255)]));
        assert_eq!(hops.groups_of(2).collect::<Vec<_>>(), [3]);
        // A group that is another one now is no group of the members before.
        hops.put(3, HostNextHop::Group(vec![(1, 1)]));
        assert_eq!((hops.groups_of(2).count(), hops.groups_of(1).count()), (0, 1));
        hops.put(4, HostNextHop::Unknown);
        hops.put(3, HostNextHop::Group(vec![(1, 1), (4, 1)]));
        assert_eq!(hops.resolve(3), Resolved::Unknown);
    }

    #[test]
    fn a_next_hop_that_goes_leaves_its_groups_and_the_last_one_takes_the_group_along() {
        let mut hops = HostNextHops::default();
        hops.put(1, one(7));
        hops.put(2, one(8));
        hops.put(3, HostNextHop::Group(vec![(1, 1), (2, 1)]));
        assert_eq!(hops.by_interface(8), [2]);
        hops.remove(2);
        assert_eq!(hops.leave_groups(2), [3]);
        assert_eq!(interfaces(&hops, 3), Some(vec![(7, 1)]));
        hops.remove(1);
        assert_eq!(hops.leave_groups(1), [3]);
        assert!(!hops.contains(3) && hops.is_empty());
    }

    #[test]
    fn a_resilient_group_is_a_group_with_buckets() {
        let mut hops = HostNextHops::default();
        hops.put(1, one(7));
        hops.put(2, one(8));
        hops.put(3, HostNextHop::Resilient(vec![(1, 1), (2, 2)], 128));
        assert_eq!((interfaces(&hops, 3), hops.buckets(3)), (Some(vec![(7, 1), (8, 2)]), Some(128)));
        assert_eq!((hops.buckets(1), hops.buckets(9)), (None, None));
        hops.remove(2);
        assert_eq!(hops.leave_groups(2), [3]);
        assert_eq!((interfaces(&hops, 3), hops.buckets(3)), (Some(vec![(7, 1)]), Some(128)));
        hops.put(3, HostNextHop::Group(vec![(1, 1)]));
        assert_eq!(hops.buckets(3), None);
        hops.put(4, HostNextHop::Resilient(vec![(4, 1)], 8));
        assert_eq!(hops.resolve(4), Resolved::Unknown, "a group of itself ends");
    }

    #[test]
    fn a_group_of_groups_ends() {
        let mut hops = HostNextHops::default();
        hops.put(1, HostNextHop::Group(vec![(1, 1)]));
        assert_eq!(hops.resolve(1), Resolved::Unknown);
    }
}
