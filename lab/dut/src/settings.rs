//! What holds for all devices: which processors, which programs, what things are called.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// What holds for all devices of a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where the device and the tester run.
    pub cores: Cores,
    /// The first part of the name of everything that is made; letters and digits only. With the process's id behind it
    /// a later lab knows what a killed one has left.
    pub prefix: String,
    /// Below it each device has a folder. Paths of sockets hold 107 bytes, so it should be short.
    pub folder: PathBuf,
    /// Shoal's daemon; `None`: beside this executable, then `target/release` above it, then in `PATH`.
    pub shoal: Option<PathBuf>,
    /// Frames of the probe that follows a start, each way and family.
    pub probe: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cores: Cores::default(),
            prefix: "shoallab".to_owned(),
            folder: std::env::temp_dir(),
            shoal: None,
            probe: 500,
        }
    }
}

/// Which processors are whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The device's workers, in the order they are used in.
    pub device: Vec<usize>,
    /// The device's main thread, and everything else.
    pub main: usize,
    /// The tester's.
    pub tester: Vec<usize>,
}

impl Default for Cores {
    /// For two processors: the device and everything else on 0, the tester on 1.
    fn default() -> Self {
        Cores { device: vec![0], main: 0, tester: vec![1] }
    }
}

impl Cores {
    /// The layout of lab.md 3.5 for a machine of `count` processors: with four or more, 0 keeps house, 1 is the device's
    /// main thread, 2 its first worker, 3 the tester, and the rest are further workers.
    pub fn of_machine(count: usize) -> Cores {
        if count < 4 {
            return Cores::default();
        }
        Cores { device: std::iter::once(2).chain(4..count).collect(), main: 1, tester: vec![3] }
    }

    /// Processors of `count` workers, each of another: first the device's own, then the main thread's, then the tester's.
    /// Fewer than `count` if there are no more.
    pub fn workers(&self, count: u16) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let all = self.device.iter().chain(std::iter::once(&self.main)).chain(&self.tester).copied();
        all.filter(|core| seen.insert(*core)).take(usize::from(count.max(1))).collect()
    }

    /// Whether `count` workers need a processor of the tester's: no measurement then (lab.md 1.12).
    pub fn shares(&self, count: u16) -> bool {
        self.workers(count).iter().any(|core| self.tester.contains(core))
            || self.workers(count).len() < usize::from(count)
    }
}

/// As `rps_cpus` wants it: 32 bits in hexadecimal, the highest word first.
pub(crate) fn mask(cores: &[usize]) -> String {
    let words = cores.iter().max().map_or(0, |most| most / 32) + 1;
    let word = |n: usize| {
        cores.iter().filter(|core| **core / 32 == n).fold(0_u32, |bits, core| bits | 1 << (core % 32))
    };
    let mut text = format!("{:x}", word(words - 1));
    for n in (0..words - 1).rev() {
        // Writing into a string does not fail.
        let _ = write!(text, ",{:08x}", word(n));
    }
    text
}

/// As `taskset -c` wants it.
pub(crate) fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_two_processors_the_device_has_the_first_and_the_tester_the_second() {
        let cores = Cores::of_machine(2);
        assert_eq!((cores.workers(1), cores.tester.clone()), (vec![0], vec![1]));
        assert!(!cores.shares(1));
        assert_eq!(cores.workers(2), [0, 1]);
        assert!(cores.shares(2) && cores.shares(3));
    }

    #[test]
    fn with_eight_processors_five_workers_leave_the_tester_alone() {
        let cores = Cores::of_machine(8);
        assert_eq!(cores.workers(5), [2, 4, 5, 6, 7]);
        assert!(!cores.shares(5));
        assert_eq!(cores.workers(6), [2, 4, 5, 6, 7, 1]);
        assert!(cores.shares(7));
    }

    #[test]
    fn a_mask_has_the_highest_word_first() {
        assert_eq!(mask(&[0]), "1");
        assert_eq!(mask(&[1, 2]), "6");
        assert_eq!(mask(&[0, 33]), "2,00000001");
        assert_eq!(mask(&[64]), "1,00000000,00000000");
    }
}
