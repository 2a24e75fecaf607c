//! What is to be measured: the words of the command line made into cases, each of which gives one result.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shoal_lab_measure::{MeasureError, Precision, Preset, TrialProcedure, nearest};
use shoal_lab_plan::{SMALLEST, Verify};
use thiserror::Error;

use crate::args::Common;
use crate::convergence;
use crate::profile::Profile;
use crate::replay::Replay;
use crate::settings::Settings;
use crate::switching;

/// Which IP a case sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ip {
    /// IPv4.
    #[serde(rename = "4")]
    Four,
    /// IPv6.
    #[serde(rename = "6")]
    Six,
}

impl Ip {
    /// `4` or `6`.
    pub const fn name(self) -> &'static str {
        match self {
            Ip::Four => "4",
            Ip::Six => "6",
        }
    }
}

/// Which sides send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// From left to right.
    #[serde(rename = "fwd")]
    Forward,
    /// From right to left.
    #[serde(rename = "rev")]
    Reverse,
    /// Both at once.
    #[serde(rename = "bi")]
    Both,
}

impl Direction {
    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "fwd",
            Direction::Reverse => "rev",
            Direction::Both => "bi",
        }
    }
}

/// What is sent: frames of one size, or a mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frames {
    /// Bytes with FCS.
    Size(u32),
    /// A mix by name: `imix:classic`; or one of T-Rex's load tests: `var2-64b`.
    Named(String),
}

impl Frames {
    /// As in results.
    pub fn name(&self) -> String {
        match self {
            Frames::Size(size) => size.to_string(),
            Frames::Named(name) => name.clone(),
        }
    }
}

/// One result to be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The test's name.
    pub test: String,
    /// The device's name.
    pub dut: String,
    /// The wire; the device's best if none.
    pub transport: Option<String>,
    /// `route`, `cross-connect`, `bridge`, `snat`.
    pub forwarding: String,
    /// Which IP.
    pub ip: Ip,
    /// What is sent.
    pub frames: Frames,
    /// Which sides send.
    pub direction: Direction,
    /// The device's workers.
    pub workers: u16,
    /// Source ports in use, connections of a NAT, addresses of a bridge; none: all of RFC 4814's, or the test's own number.
    pub flows: Option<u64>,
    /// Further routes in the device.
    pub routes: u32,
    /// Frames a second and direction, for tests that need a rate; none: the throughput, which is then found first.
    pub rate: Option<u64>,
    /// A share of that rate in percent: latency at 10, 50 and 90.
    pub percent: Option<u8>,
    /// What is sent instead of frames of a size: a TRex profile.
    #[serde(default)]
    pub profile: Option<Profile>,
    /// What is replayed, of the test of this name.
    #[serde(default)]
    pub replay: Option<Replay>,
    /// What converges, of the test of this name.
    #[serde(default)]
    pub convergence: Option<convergence::Wanted>,
    /// A program of another build to compare with, for tests that compare: the router, or that of replays.
    #[serde(default)]
    pub base: Option<PathBuf>,
}

impl Case {
    /// Frames of 64 bytes that a device routes from side to side, IPv4, one worker, and nothing more that could be asked.
    pub fn plain(test: &str, dut: &str) -> Case {
        Case {
            test: test.into(),
            dut: dut.into(),
            transport: None,
            forwarding: "route".into(),
            ip: Ip::Four,
            frames: Frames::Size(64),
            direction: Direction::Both,
            workers: 1,
            flows: None,
            routes: 0,
            rate: None,
            percent: None,
            profile: None,
            replay: None,
            convergence: None,
            base: None,
        }
    }

    /// What tells it apart beyond the columns of the summary.
    pub fn variant(&self) -> String {
        let mut parts = Vec::new();
        if let Some(profile) = &self.profile {
            parts.push(profile.path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
            parts.extend(Some(profile.tunables.clone()).filter(|t| !t.is_empty()));
        }
        parts.extend(self.percent.map(|p| format!("{p} %")));
        let counted = if switching::is_learning(&self.test) { "addresses" } else { "flows" };
        parts.extend(self.flows.map(|n| format!("{counted}={n}")));
        if self.routes > 0 {
            parts.push(format!("routes={}", self.routes));
        }
        parts.join(", ")
    }
}

/// Why there are no cases.
#[derive(Debug, Error)]
pub enum CaseError {
    /// A word that does not belong there.
    #[error("{what} {value}: {hint}")]
    Word {
        /// Of which option.
        what: &'static str,
        /// As typed.
        value: String,
        /// What would go.
        hint: String,
    },
    /// A setting that no trial can be made of.
    #[error(transparent)]
    TrialProcedure(#[from] MeasureError),
}

/// Seconds that a trial of any preset but the strict one may take longer than it should.
pub const BEARABLE: f64 = 0.001;

/// How trials are conducted: a preset, and what overrides it.
///
/// # Errors
///
/// An unknown preset, or settings that make no sense.
pub fn conduct(common: &Common, settings: &Settings) -> Result<TrialProcedure, CaseError> {
    let preset = Preset::by_name(common.preset.as_deref().unwrap_or(&settings.test.preset))?;
    let mut conduct = preset.conduct();
    conduct.burst = settings.tester.burst;
    conduct.retries = settings.tester.retries;
    conduct.tolerance = settings.tester.tolerance;
    conduct.seed = settings.traffic.seed;
    conduct.most_taken = settings.tester.most_taken;
    conduct.when_disturbed = common.when_disturbed.unwrap_or(settings.test.when_disturbed);
    if let Some(runs) = common.runs {
        conduct.runs = runs;
    }
    if let Some(duration) = common.duration {
        conduct.duration = duration;
    }
    // siitperf's 10 ppm of a short trial are less than any stall of a virtual machine; a millisecond late is bearable there.
    if preset != Preset::Strict {
        conduct.tolerance = conduct.tolerance.max(1.0 + BEARABLE / conduct.duration.as_secs_f64());
    }
    if common.verify {
        conduct.verify = Verify::All;
    }
    if common.frame.as_deref() == Some("siitperf") {
        conduct.precision = Precision::Absolute(1);
    }
    conduct.checked()?;
    Ok(conduct)
}

/// The budget that a measurement must keep.
pub fn budget(common: &Common, settings: &Settings) -> Option<Duration> {
    (!common.yes).then(|| common.budget.unwrap_or(Duration::from_secs(settings.test.budget)))
}

/// Every combination of what was asked for, devices outermost, so that each is started as seldom as possible.
///
/// # Errors
///
/// Words that make no sense, with those that would.
pub fn expand(test: &str, common: &Common, defaults: &Defaults<'_>) -> Result<Vec<Case>, CaseError> {
    let or = |given: &[String], default: &[&str]| -> Vec<String> {
        if given.is_empty() { default.iter().map(|s| (*s).to_owned()).collect() } else { given.to_vec() }
    };
    let direction = direction(common.direction.as_deref().unwrap_or(defaults.direction))?;
    let sizes: Vec<Frames> =
        or(&common.size, defaults.sizes).iter().map(|s| frames(s)).collect::<Result<_, _>>()?;
    let ips: Vec<Ip> = or(&common.ip, defaults.ip).iter().map(|s| ip(s)).collect::<Result<_, _>>()?;
    let workers = if common.workers.is_empty() { vec![1] } else { common.workers.clone() };
    let flows: Vec<Option<u64>> = if defaults.flows.is_empty() {
        vec![None]
    } else {
        defaults.flows.iter().copied().map(Some).collect()
    };
    let routes = if defaults.routes.is_empty() { vec![0] } else { defaults.routes.to_vec() };
    let percents: Vec<Option<u8>> = if defaults.percents.is_empty() {
        vec![None]
    } else {
        defaults.percents.iter().copied().map(Some).collect()
    };
    let mut cases = Vec::new();
    for dut in or(&common.dut, defaults.duts) {
        for &workers in &workers {
            for &routes in &routes {
                for &ip in &ips {
                    for frames in &sizes {
                        for &flows in &flows {
                            for &percent in &percents {
                                cases.push(Case {
                                    transport: common.transport.clone(),
                                    forwarding: defaults.forwarding.into(),
                                    ip,
                                    frames: frames.clone(),
                                    direction,
                                    workers,
                                    flows,
                                    routes: u32::try_from(routes).unwrap_or(u32::MAX),
                                    rate: defaults.rate,
                                    percent,
                                    ..Case::plain(test, &dut)
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(cases)
}

/// What is taken where the command line says nothing.
#[derive(Clone, Debug)]
pub struct Defaults<'a> {
    /// Devices.
    pub duts: &'a [&'a str],
    /// How frames get through.
    pub forwarding: &'a str,
    /// Frame sizes and mixes.
    pub sizes: &'a [&'a str],
    /// IP versions.
    pub ip: &'a [&'a str],
    /// fwd, rev, bi.
    pub direction: &'a str,
    /// Flows of a sweep.
    pub flows: &'a [u64],
    /// Routes of a sweep.
    pub routes: &'a [u64],
    /// Frames a second and direction.
    pub rate: Option<u64>,
    /// Shares of the rate.
    pub percents: &'a [u8],
}

impl Default for Defaults<'_> {
    fn default() -> Self {
        Defaults {
            duts: &["shoal"],
            forwarding: "route",
            sizes: &["64"],
            ip: &["4"],
            direction: "bi",
            flows: &[],
            routes: &[],
            rate: None,
            percents: &[],
        }
    }
}

fn ip(text: &str) -> Result<Ip, CaseError> {
    match text.trim_start_matches("ip") {
        "4" => Ok(Ip::Four),
        "6" => Ok(Ip::Six),
        _ => Err(CaseError::Word { what: "--ip", value: text.into(), hint: "4, 6, or 4,6".into() }),
    }
}

fn direction(text: &str) -> Result<Direction, CaseError> {
    [Direction::Forward, Direction::Reverse, Direction::Both]
        .into_iter()
        .find(|d| d.name() == text)
        .ok_or_else(|| CaseError::Word {
            what: "--direction",
            value: text.into(),
            hint: "fwd, rev or bi".into(),
        })
}

/// Mixes and load tests that traffic can be made of.
pub const NAMED: [&str; 7] =
    ["imix:bench", "imix:classic", "imix:csit", "var2-1514b", "var2-imix", "var2-64b", "64b"];

/// The largest frame there is a use for, with FCS: RFC 8219's.
const LARGEST: u32 = 9216;

fn frames(text: &str) -> Result<Frames, CaseError> {
    if let Ok(size) = text.parse::<u32>() {
        return if (SMALLEST..=LARGEST).contains(&size) {
            Ok(Frames::Size(size))
        } else {
            let hint = format!(
                "a frame has {SMALLEST} to {LARGEST} bytes with FCS; the nearest is {}",
                size.clamp(SMALLEST, LARGEST)
            );
            Err(CaseError::Word { what: "--size", value: text.into(), hint })
        };
    }
    if NAMED.contains(&text) {
        return Ok(Frames::Named(text.into()));
    }
    let hint =
        format!("bytes with FCS, or one of {}; the nearest is {}", NAMED.join(", "), nearest(text, NAMED));
    Err(CaseError::Word { what: "--size", value: text.into(), hint })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_is_a_case_and_devices_are_outermost() {
        let common = Common {
            dut: vec!["shoal".into(), "linux-route".into()],
            size: vec!["64".into(), "1518".into()],
            ip: vec!["4".into(), "6".into()],
            workers: vec![1, 2],
            ..Common::default()
        };
        let cases = expand("throughput", &common, &Defaults::default()).unwrap();
        assert_eq!(cases.len(), 16);
        assert!(cases[..8].iter().all(|c| c.dut == "shoal"), "{cases:?}");
    }

    #[test]
    fn wrong_words_are_answered_with_right_ones() {
        let message = |common: Common| expand("x", &common, &Defaults::default()).unwrap_err().to_string();
        let sizes = |size: &str| message(Common { size: vec![size.into()], ..Common::default() });
        assert!(sizes("63").contains("the nearest is 64"), "{}", sizes("63"));
        assert!(sizes("20000").contains("9216"));
        assert!(sizes("imix:clasic").contains("the nearest is imix:classic"));
        assert!(message(Common { ip: vec!["5".into()], ..Common::default() }).contains("--ip 5"));
        assert!(
            message(Common { direction: Some("up".into()), ..Common::default() }).contains("fwd, rev or bi")
        );
    }

    #[test]
    fn what_is_said_goes_before_the_preset() {
        let common = Common { preset: Some("strict".into()), runs: Some(2), ..Common::default() };
        let conduct = conduct(&common, &Settings::default()).unwrap();
        assert_eq!((conduct.runs, conduct.duration), (2, Duration::from_mins(1)));
        let wrong = Common { preset: Some("stict".into()), ..Common::default() };
        assert!(super::conduct(&wrong, &Settings::default()).unwrap_err().to_string().contains("strict"));
    }
}
