//! Mixes of frame sizes, by name: "imix" alone says nothing, for three of them are about.

use std::str::FromStr;

use crate::error::FrameError;

/// Sizes and how often each comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// As users write it and reports print it.
    pub name: String,
    /// Share of the frames, and bytes with FCS.
    pub parts: Vec<(u64, u32)>,
}

/// The mixes that have names.
const NAMED: [(&str, [(u64, u32); 3]); 3] = [
    // T-Rex's bench.py as published.
    ("imix:bench", [(28, 60), (20, 590), (4, 1514)]),
    // The 7:4:1 of old, with T-Rex's imix.py sizes.
    ("imix:classic", [(28, 64), (16, 594), (4, 1518)]),
    // FD.io CSIT's.
    ("imix:csit", [(28, 64), (16, 570), (4, 1518)]),
];

impl Mix {
    /// Frames of one size.
    pub fn single(size: u32) -> Self {
        Mix { name: format!("{size} B"), parts: vec![(1, size)] }
    }

    /// The sum of the shares.
    pub fn whole(&self) -> u64 {
        self.parts.iter().map(|p| p.0).sum()
    }

    /// The mean size of a frame in bytes, with FCS.
    pub fn mean(&self) -> f64 {
        let bytes: u64 = self.parts.iter().map(|(share, size)| share * u64::from(*size)).sum();
        bytes as f64 / self.whole().max(1) as f64
    }
}

impl FromStr for Mix {
    type Err = FrameError;

    /// `imix:bench`, `imix:classic`, `imix:csit`.
    fn from_str(name: &str) -> Result<Self, FrameError> {
        let found = NAMED.iter().find(|(known, _)| *known == name);
        let (name, parts) =
            found.ok_or_else(|| FrameError::unknown("mix", name, &NAMED.map(|(known, _)| known)))?;
        Ok(Mix { name: (*name).to_owned(), parts: parts.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_the_published_ones() {
        // bench.py's sizes, the smallest padded by the NIC to 64: 377.8 bytes; the classic mix: 361.8.
        let mut bench: Mix = "imix:bench".parse().unwrap();
        bench.parts[0].1 = 64;
        assert!((bench.mean() - 377.8).abs() < 0.1, "{}", bench.mean());
        let classic: Mix = "imix:classic".parse().unwrap();
        assert!((classic.mean() - 361.8).abs() < 0.1, "{}", classic.mean());
    }

    #[test]
    fn an_unknown_mix_is_refused_with_the_nearest() {
        assert!("imix:csti".parse::<Mix>().unwrap_err().to_string().contains("`imix:csit`"));
    }
}
