//! Prefixes of a link that a provider gave for a time (RFC 8415): they are advertised to hosts, with what is left of
//! their time.

use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_interface::SwIfIndex;
use shoal_wire::Ip6Prefix;

use super::Nd;
use super::ra::Prefix;

/// How long advertisements withdraw a prefix that has gone: RFC 4862, 5.5.3 has hosts keep addresses of it for two
/// hours in any case.
const GONE: Duration = Duration::from_hours(2);

/// A prefix that was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delegated {
    /// Until when it is preferred; `None`: for good.
    pub preferred: Option<Time>,
    /// Until when it is valid.
    pub valid: Option<Time>,
    /// Since when it is given no more.
    gone: Option<Time>,
}

/// Seconds that are left.
fn left(until: Option<Time>, now: Time) -> u32 {
    until.map_or(u32::MAX, |until| u32::try_from(until.since(now).as_secs()).unwrap_or(u32::MAX - 1))
}

impl Nd {
    /// Tells hosts of a link of a prefix that was given for a time: until when it is preferred and valid.
    pub fn advertise_delegated(
        &self,
        interface: SwIfIndex,
        prefix: Ip6Prefix,
        (preferred, valid): (Option<Time>, Option<Time>),
    ) {
        let new = Delegated { preferred, valid, gone: None };
        let old = self.delegated.borrow_mut().insert((interface, prefix.normalized()), new);
        if old.is_none_or(|old| old.gone.is_some()) {
            self.follow_link_local(interface);
        }
    }

    /// It is given no more: advertisements withdraw it.
    pub fn forget_delegated(&self, interface: SwIfIndex, prefix: Ip6Prefix) {
        let now = self.now();
        if let Some(delegated) = self.delegated.borrow_mut().get_mut(&(interface, prefix.normalized())) {
            delegated.gone = Some(now);
        }
        self.follow_link_local(interface);
    }

    /// The options for delegated prefixes of one advertisement.
    pub(super) fn delegated_prefixes(&self, interface: SwIfIndex) -> Vec<(Ip6Prefix, Prefix)> {
        let now = self.now();
        let mut all = self.delegated.borrow_mut();
        all.retain(|_, delegated| delegated.gone.is_none_or(|since| since.after(GONE) > now));
        let of = |((_, prefix), delegated): (&(SwIfIndex, Ip6Prefix), &Delegated)| {
            let (preferred_secs, valid_secs) = match delegated.gone {
                None => (left(delegated.preferred, now), left(delegated.valid, now)),
                Some(_) => (0, 0),
            };
            (*prefix, Prefix { valid_secs, preferred_secs, ..Prefix::default() })
        };
        all.iter().filter(|((on, _), _)| *on == interface).map(of).collect()
    }
}
