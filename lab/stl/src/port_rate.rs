//! `--port-rate`: what a side's streams are scaled to, in TRex's words: `10gbpsl1`, `5mbps`, `100kpps`, `50%`, `2.5`.

use std::str::FromStr;

use shoal_lab_plan::{Layer, Link};

use crate::ProfileError;
use crate::fraction::Fraction;

/// What the streams of a side are scaled to, all but those whose delay is measured.
#[derive(Clone, Copy, Debug)]
pub struct PortRate(Target);

#[derive(Clone, Copy, Debug)]
enum Target {
    /// Times the profile's own rates.
    Times(Fraction),
    /// Frames a second in all.
    Frames(Fraction),
    /// Bits a second in all.
    Bits(Layer, Fraction),
    /// Of the link, at layer 1.
    Percent(Fraction),
}

impl FromStr for PortRate {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ProfileError::Rate { wrong: text.to_owned() };
        let lower = text.trim().to_ascii_lowercase();
        let digits = lower.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(lower.len());
        let (number, unit) = lower.split_at(digits);
        let number = number.parse().ok().and_then(Fraction::of).filter(|n| !n.is_zero()).ok_or_else(wrong)?;
        let unit = unit.trim();
        if unit == "%" {
            return Ok(PortRate(Target::Percent(number)));
        }
        let (prefix, base) = match unit.chars().next() {
            Some('k') => (1_000, unit.get(1..)),
            Some('m') => (1_000_000, unit.get(1..)),
            Some('g') => (1_000_000_000, unit.get(1..)),
            _ => (1, Some(unit)),
        };
        let value = number.times(Fraction::whole(prefix));
        Ok(PortRate(match base.unwrap_or_default() {
            "" if prefix == 1 => Target::Times(number),
            "pps" => Target::Frames(value),
            "bps" | "bpsl2" => Target::Bits(Layer::L2, value),
            "bpsl1" => Target::Bits(Layer::L1, value),
            _ => return Err(wrong()),
        }))
    }
}

/// What the profile itself sends on a side at most, without the streams whose delay is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered {
    pub(crate) frames: Fraction,
    pub(crate) bits_l1: Fraction,
    pub(crate) bits_l2: Fraction,
}

impl PortRate {
    /// What each rate is multiplied by; none if nothing is there to be scaled.
    pub(crate) fn factor(self, offered: Offered, link: Link) -> Option<Fraction> {
        let (wanted, has) = match self.0 {
            Target::Times(times) => return Some(times),
            Target::Frames(frames) => (frames, offered.frames),
            Target::Bits(Layer::L1, bits) => (bits, offered.bits_l1),
            Target::Bits(Layer::L2, bits) => (bits, offered.bits_l2),
            Target::Percent(percent) => {
                (percent.times(Fraction::new(link.bits_per_second.into(), 100)), offered.bits_l1)
            }
        };
        (!has.is_zero()).then(|| wanted.over(has))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(text: &str) -> f64 {
        let rate: PortRate = text.parse().unwrap();
        let offered = Offered {
            frames: Fraction::whole(1),
            bits_l1: Fraction::whole(672),
            bits_l2: Fraction::whole(512),
        };
        rate.factor(offered, Link::default()).unwrap().number()
    }

    #[test]
    fn the_words_of_trex_are_read() {
        for (text, times) in [
            ("10gbpsl1", 1e10 / 672.0),
            ("10Gbps", 1e10 / 512.0),
            ("5mbpsl2", 5e6 / 512.0),
            ("100kpps", 1e5),
            ("50%", 5e9 / 672.0),
            ("2.5", 2.5),
        ] {
            assert!((factor(text) / times - 1.0).abs() < 1e-12, "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_with_examples() {
        for text in ["", "10", "0pps", "10gbpsl3", "kpps", "-5pps", "5 k", "1.2.3pps"] {
            let read = text.parse::<PortRate>();
            if text == "10" {
                assert!(read.is_ok());
                continue;
            }
            let said = read.unwrap_err().to_string();
            assert!(said.contains("10gbpsl1") && said.contains(text), "{said}");
        }
    }
}
