//! What a host keeps of the groups it listens to on a link.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use shoal_graph::clock::Time;
use shoal_wire::igmp::{IgmpVersion, RecordType};

/// What is listened to: some sources, or all of them.
#[derive(Clone, Default)]
pub(crate) struct Group {
    pub any: bool,
    pub sources: BTreeSet<Ipv4Addr>,
    /// How often it is still to be reported that "any" has begun or ended, and each source.
    pub mode_left: u32,
    pub source_left: BTreeMap<Ipv4Addr, u32>,
}

impl Group {
    pub fn is_wanted(&self) -> bool {
        self.any || !self.sources.is_empty()
    }

    pub fn has_news(&self) -> bool {
        self.mode_left > 0 || !self.source_left.is_empty()
    }

    /// RFC 3376, 5.1: the records about changes to send now.
    pub fn news(&mut self) -> Vec<(RecordType, Vec<Ipv4Addr>)> {
        let take = |left: &mut BTreeMap<Ipv4Addr, u32>| {
            for n in left.values_mut() {
                *n -= 1;
            }
            left.retain(|_, n| *n > 0);
        };
        if self.mode_left > 0 {
            self.mode_left -= 1;
            take(&mut self.source_left);
            return if self.any {
                vec![(RecordType::CHANGE_TO_EXCLUDE, Vec::new())]
            } else {
                vec![(RecordType::CHANGE_TO_INCLUDE, self.sources.iter().copied().collect())]
            };
        }
        let changed: Vec<Ipv4Addr> = self.source_left.keys().copied().collect();
        take(&mut self.source_left);
        if self.any {
            return Vec::new();
        }
        let (allow, block): (Vec<_>, Vec<_>) = changed.into_iter().partition(|s| self.sources.contains(s));
        let all = [(RecordType::ALLOW_NEW_SOURCES, allow), (RecordType::BLOCK_OLD_SOURCES, block)];
        all.into_iter().filter(|(_, sources)| !sources.is_empty()).collect()
    }

    /// RFC 3376, 5.2: the answer to a query.
    pub fn state(&self, asked: &BTreeSet<Ipv4Addr>) -> Option<(RecordType, Vec<Ipv4Addr>)> {
        if self.any {
            // Every source that is asked for is wanted.
            let some = (RecordType::MODE_IS_INCLUDE, asked.iter().copied().collect());
            return Some(if asked.is_empty() { (RecordType::MODE_IS_EXCLUDE, Vec::new()) } else { some });
        }
        let wanted = |s: &&Ipv4Addr| asked.is_empty() || asked.contains(s);
        let sources: Vec<Ipv4Addr> = self.sources.iter().filter(wanted).copied().collect();
        (!sources.is_empty()).then_some((RecordType::MODE_IS_INCLUDE, sources))
    }
}

#[derive(Default)]
pub(crate) struct Interface {
    pub groups: BTreeMap<Ipv4Addr, Group>,
    /// When changes are reported.
    pub news_due: Option<Time>,
    /// When a general query is answered.
    pub general_due: Option<Time>,
    /// When queries of groups are answered, and for which sources.
    pub group_due: BTreeMap<Ipv4Addr, (Time, BTreeSet<Ipv4Addr>)>,
    /// Until when there may be queriers of versions 1 and 2.
    pub older: [Option<Time>; 2],
}

impl Interface {
    /// RFC 3376, 7.2.1: the version to speak.
    pub fn version(&self, now: Time) -> IgmpVersion {
        let [v1, v2] = self.older.map(|until| until.is_some_and(|until| now < until));
        if v1 {
            IgmpVersion::V1
        } else if v2 {
            IgmpVersion::V2
        } else {
            IgmpVersion::V3
        }
    }

    pub fn wanted_groups(&self) -> impl Iterator<Item = (Ipv4Addr, &Group)> {
        self.groups.iter().filter(|(_, group)| group.is_wanted()).map(|(address, group)| (*address, group))
    }

    pub fn deadline(&self) -> Option<Time> {
        let groups = self.group_due.values().map(|(due, _)| *due);
        groups.chain(self.news_due).chain(self.general_due).min()
    }
}
