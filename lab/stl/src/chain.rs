//! Chains: a stream that has ended starts the next. Here they become times since the trial's start.
//!
//! The plan's streams know no other streams, so each gets its start and, where a chain loops, the loop's length. A burst
//! of n frames at rate r lasts n / r; the next stream's `isg` begins there.

use crate::ProfileError;
use crate::fraction::Fraction;

/// What a chain is made of.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) name: Option<String>,
    pub(crate) label: String,
    pub(crate) next: Option<String>,
    pub(crate) self_start: bool,
    /// Seconds before its first frame.
    pub(crate) gap: Fraction,
    /// Seconds that it lasts; none: for ever.
    pub(crate) length: Option<Fraction>,
    /// How often it may end before the chain stops; 0: as often as it likes.
    pub(crate) limit: u64,
}

/// When a stream is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Its first frame, in seconds since the trial's start.
    pub(crate) start: Fraction,
    /// How often it is sent; none: until the trial ends.
    pub(crate) runs: Option<u64>,
    /// Seconds from one time to the next.
    pub(crate) period: Fraction,
}

/// Each stream's slot; none where no stream starts it. Behind them, the chain that it belongs to: the number of its
/// first.
pub(crate) fn slots(links: &[Link]) -> Result<Vec<Option<(Slot, usize)>>, ProfileError> {
    let next = resolve(links)?;
    let mut slots = vec![None; links.len()];
    for (first, link) in links.iter().enumerate() {
        if link.self_start {
            walk(links, &next, first, &mut slots)?;
        }
    }
    Ok(slots)
}

fn fault(link: &Link, reason: String) -> ProfileError {
    ProfileError::Stream { stream: link.label.clone(), reason }
}

/// Names as numbers.
fn resolve(links: &[Link]) -> Result<Vec<Option<usize>>, ProfileError> {
    links
        .iter()
        .map(|link| {
            let Some(wanted) = &link.next else { return Ok(None) };
            let mut named = links.iter().enumerate().filter(|(_, l)| l.name.as_ref() == Some(wanted));
            let Some((found, _)) = named.next() else {
                let known: Vec<_> = links.iter().filter_map(|l| l.name.as_deref()).collect();
                return Err(fault(
                    link,
                    format!(
                        "next is {wanted:?}, and no stream has that name; there are {}",
                        known.join(", ")
                    ),
                ));
            };
            if named.next().is_some() {
                return Err(fault(link, format!("next is {wanted:?}, and two streams have that name")));
            }
            Ok(Some(found))
        })
        .collect()
}

fn walk(
    links: &[Link],
    next: &[Option<usize>],
    first: usize,
    slots: &mut [Option<(Slot, usize)>],
) -> Result<(), ProfileError> {
    let mut path: Vec<usize> = Vec::new();
    let (mut at, mut now) = (Some(first), Fraction::ZERO);
    while let Some(here) = at {
        let Some(link) = links.get(here) else { break };
        if let Some(back) = path.iter().position(|p| *p == here) {
            return turn(links, &path, back, now, slots);
        }
        if slots.get(here).is_some_and(Option::is_some) || (link.self_start && here != first) {
            return Err(fault(
                link,
                "it is started twice: a stream can be part of one chain, or start by itself".to_owned(),
            ));
        }
        now = now.plus(link.gap);
        let slot = Slot { start: now, runs: Some(1), period: Fraction::ZERO };
        if let Some(place) = slots.get_mut(here) {
            *place = Some((slot, first));
        }
        path.push(here);
        let Some(length) = link.length else { return Ok(()) };
        now = now.plus(length);
        // A stream that may end once stops the chain there.
        at = if link.limit == 1 { None } else { next.get(here).copied().flatten() };
    }
    Ok(())
}

/// The chain came back to `path[back]` at time `now`: from there on it goes round.
fn turn(
    links: &[Link],
    path: &[usize],
    back: usize,
    now: Fraction,
    slots: &mut [Option<(Slot, usize)>],
) -> Result<(), ProfileError> {
    let members = path.get(back..).unwrap_or_default();
    let Some(entry) = members.first().and_then(|m| links.get(*m)) else { return Ok(()) };
    let entered = members.first().and_then(|m| slots.get(*m).copied().flatten()).map(|(slot, _)| slot.start);
    // The way back ends where the entry's gap begins, its first frame comes a gap later.
    let period = now.plus(entry.gap).minus(entered.unwrap_or(Fraction::ZERO));
    if period.is_zero() {
        return Err(fault(
            entry,
            "its chain loops and takes no time; give a burst a rate or an isg".to_owned(),
        ));
    }
    let size = members.len() as u64;
    // The end of stream i's limit-th time is the (limit - 1) * size + i th end of all.
    let last = members
        .iter()
        .enumerate()
        .filter_map(|(i, m)| links.get(*m).map(|l| (i as u64, l.limit)))
        .filter(|(_, limit)| *limit > 0)
        .map(|(i, limit)| (limit - 1) * size + i)
        .min();
    for (i, member) in members.iter().enumerate() {
        let runs = last.map(|last| (last + size - i as u64) / size);
        if let Some(Some((slot, _))) = slots.get_mut(*member) {
            (slot.runs, slot.period) = (runs, period);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, next: &str, starts: bool, gap: u64, length: u64) -> Link {
        Link {
            name: Some(name.to_owned()),
            label: name.to_owned(),
            next: (!next.is_empty()).then(|| next.to_owned()),
            self_start: starts,
            gap: Fraction::whole(gap),
            length: (length > 0).then(|| Fraction::whole(length)),
            limit: 0,
        }
    }

    fn found(links: &[Link]) -> Vec<Option<(u64, Option<u64>, u64)>> {
        let slots = slots(links).unwrap();
        slots.into_iter().map(|s| s.map(|(s, _)| (s.start.floor(), s.runs, s.period.floor()))).collect()
    }

    #[test]
    fn a_chain_starts_each_stream_where_the_last_ended() {
        let links = [link("a", "b", true, 1, 10), link("b", "c", false, 2, 5), link("c", "", false, 0, 0)];
        assert_eq!(found(&links), [Some((1, Some(1), 0)), Some((13, Some(1), 0)), Some((18, Some(1), 0))]);
    }

    #[test]
    fn a_loop_without_a_limit_goes_on_and_one_with_a_limit_stops() {
        let mut links =
            [link("i", "a", true, 0, 1), link("a", "b", false, 1, 3), link("b", "a", false, 2, 4)];
        assert_eq!(found(&links), [Some((0, Some(1), 0)), Some((2, None, 10)), Some((7, None, 10))]);
        links[2].limit = 2;
        assert_eq!(found(&links)[1..], [Some((2, Some(2), 10)), Some((7, Some(2), 10))]);
        links[1].limit = 2;
        assert_eq!(found(&links)[1..], [Some((2, Some(2), 10)), Some((7, Some(1), 10))]);
    }

    #[test]
    fn a_stream_without_a_start_is_never_sent() {
        assert_eq!(found(&[link("a", "", true, 0, 1), link("b", "", false, 0, 1)])[1], None);
    }

    #[test]
    fn what_cannot_be_is_refused_with_names() {
        let lost = slots(&[link("a", "z", true, 0, 1), link("b", "", false, 0, 1)]).unwrap_err().to_string();
        assert!(lost.contains("\"z\"") && lost.contains("a, b"), "{lost}");
        let twice =
            slots(&[link("a", "c", true, 0, 1), link("b", "c", true, 0, 1), link("c", "", false, 0, 1)]);
        assert!(twice.unwrap_err().to_string().contains("started twice"));
    }
}
