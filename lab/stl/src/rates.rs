//! Rates: a profile's units as frames a second, and scaling to a port rate.

use shoal_lab_plan::Link;

use crate::ProfileError;
use crate::chain;
use crate::convert::{Draft, Sending};
use crate::format::{Mode, RateUnit};
use crate::fraction::Fraction;
use crate::frame::size_on_wire;
use crate::pace::links;
use crate::port_rate::Offered;

/// Bits of a frame at layer 1 and 2; the mean, if lengths differ.
fn bits(draft: &Draft) -> (Fraction, Fraction) {
    let bytes: u64 = draft.lengths.iter().map(|l| size_on_wire(*l)).sum();
    let mean = Fraction::new(bytes.into(), draft.lengths.len() as u128).times(Fraction::whole(8));
    (mean.plus(Fraction::whole(8 * shoal_lab_plan::PER_FRAME_ON_WIRE)), mean)
}

/// Frames a second, as the profile says it.
pub(crate) fn rate(draft: &Draft, link: Link) -> Result<Fraction, String> {
    let (Mode::Continuous { rate } | Mode::SingleBurst { rate, .. } | Mode::MultiBurst { rate, .. }) =
        draft.from.mode;
    let value = Fraction::of(rate.value).filter(|value| !value.is_zero());
    let value = value.ok_or_else(|| format!("its rate is {}; it should be above 0", rate.value))?;
    let (l1, l2) = bits(draft);
    Ok(match rate.unit {
        RateUnit::Frames => value,
        RateUnit::BitsL1 => value.over(l1),
        RateUnit::BitsL2 => value.over(l2),
        RateUnit::Percent => value.times(Fraction::new(link.bits_per_second.into(), 100)).over(l1),
    })
}

/// Multiplies the rates, all but those of streams whose delay is measured.
pub(crate) fn scale(
    drafts: &mut [Draft],
    sending: &Sending,
    notes: &mut Vec<String>,
) -> Result<(), ProfileError> {
    if let Some(wanted) = sending.port_rate {
        let factor = wanted.factor(offered(drafts, false)?, sending.link);
        let Some(factor) = factor else {
            return Err(ProfileError::Streams(
                "the port rate has no stream to scale: those whose delay is measured keep their own rates"
                    .into(),
            ));
        };
        for draft in drafts.iter_mut().filter(|d| !d.from.flow_stats.latency()) {
            draft.rate = draft.rate.times(factor);
        }
    }
    let all = offered(drafts, true)?;
    let link = sending.link.bits_per_second as f64;
    if all.bits_l1.number() > link * 1.000_000_1 {
        notes.push(format!(
            "{:.3} Gbit/s are offered at layer 1, more than the link's {:.3}",
            all.bits_l1.number() / 1e9,
            link / 1e9
        ));
    }
    Ok(())
}

/// The sum over all chains of the most that each one sends.
fn offered(drafts: &[Draft], with_latency: bool) -> Result<Offered, ProfileError> {
    let slots = chain::slots(&links(drafts))?;
    let mut most: Vec<Option<Offered>> = vec![None; drafts.len()];
    for (draft, slot) in drafts.iter().zip(&slots) {
        let sends = draft.from.flags & 8 == 0 && (with_latency || !draft.from.flow_stats.latency());
        let Some((_, chain)) = slot.filter(|_| sends) else { continue };
        let (l1, l2) = bits(draft);
        let own =
            Offered { frames: draft.rate, bits_l1: draft.rate.times(l1), bits_l2: draft.rate.times(l2) };
        let larger = |a: Fraction, b: Fraction| if a.compare(b).is_lt() { b } else { a };
        if let Some(place) = most.get_mut(chain) {
            *place = Some(place.map_or(own, |there| Offered {
                frames: larger(there.frames, own.frames),
                bits_l1: larger(there.bits_l1, own.bits_l1),
                bits_l2: larger(there.bits_l2, own.bits_l2),
            }));
        }
    }
    let zero = Offered { frames: Fraction::ZERO, bits_l1: Fraction::ZERO, bits_l2: Fraction::ZERO };
    Ok(most.into_iter().flatten().fold(zero, |sum, own| Offered {
        frames: sum.frames.plus(own.frames),
        bits_l1: sum.bits_l1.plus(own.bits_l1),
        bits_l2: sum.bits_l2.plus(own.bits_l2),
    }))
}
