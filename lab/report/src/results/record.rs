//! What does not change while a campaign runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shoal_lab_plan::{Described, Link, Sample, SummaryRow};

use super::Host;

/// `record.json`: who measured what with which machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// As in the folder's name.
    pub name: String,
    /// Seconds since 1970.
    pub began: f64,
    /// Seconds since 1970; none while it runs, and of an interrupted campaign.
    pub ended: Option<f64>,
    /// Program and arguments, as they were typed.
    pub command: Vec<String>,
    /// The lab's own revision.
    pub commit: String,
    /// `strict`, `normal`, `quick`, `ci`; empty if none.
    pub preset: String,
    /// Each seed by the name of what it seeds.
    pub seeds: BTreeMap<String, u64>,
    /// The machine.
    pub host: Host,
    /// Devices that were to be measured, also those that were skipped.
    pub devices: Vec<DeviceRecord>,
    /// What the tester reaches without a device.
    pub self_tests: Vec<SelfTest>,
    /// What else a reader should know, a sentence each.
    pub notes: Vec<String>,
}

/// A device that was to be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceRecord {
    /// As users write it.
    pub name: String,
    /// Why it was not measured.
    pub skipped: Option<String>,
    /// The wire.
    pub transport: String,
    /// What was done to have it run.
    pub described: Described,
    /// Its counters before the first trial.
    pub counters_before: Vec<(String, u64)>,
    /// Its counters after the last.
    pub counters_after: Vec<(String, u64)>,
}

/// What the tester reaches without a device, over one wire with one frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SelfTest {
    /// `memif`, `af-packet`.
    pub transport: String,
    /// The wire's rate.
    pub link: Link,
    /// `4` or `6`; empty in older records.
    pub ip: String,
    /// With FCS, or a mix's name.
    pub frame: String,
    /// Frames a second and direction: the tester's limit.
    pub most: f64,
    /// Smallest delay it sees without a device, in microseconds.
    pub floor_us: Option<f64>,
    /// 99.9th percentile of it, in microseconds.
    pub floor_p999_us: Option<f64>,
    /// The longest stall, in microseconds.
    pub longest_stall_us: Option<f64>,
    /// Difference of two clocks in parts of a million.
    pub clock_ppm: Option<f64>,
}

impl SelfTest {
    /// Whether it is over the same wire with the same frames as a result.
    pub fn is_of(&self, row: &SummaryRow) -> bool {
        self.transport == row.transport
            && self.frame == row.frame
            && (self.ip.is_empty() || self.ip == row.ip)
    }
}

/// A piece of time of a sampled trial: a row of `samples.csv`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleLine {
    /// `loadtest`.
    pub test: String,
    /// The device.
    pub dut: String,
    /// The wire: rates over different wires do not share a plot.
    pub transport: String,
    /// As in [`TrialLine::case`](shoal_lab_plan::TrialLine).
    pub case: String,
    /// Which repetition, from 1.
    pub run: u32,
    /// The end of the piece, in seconds since the trial's start.
    pub at: f64,
    /// Frames sent at the left.
    pub sent_left: u64,
    /// Frames sent at the right.
    pub sent_right: u64,
    /// Of those sent at the left, arrived.
    pub received_left: u64,
    /// Of those sent at the right, arrived.
    pub received_right: u64,
    /// Bytes of the arrived that were sent at the left, with FCS.
    pub bytes_left: u64,
    /// Bytes of the arrived that were sent at the right, with FCS.
    pub bytes_right: u64,
    /// Of those sent at the left in this piece, never arrived.
    #[serde(default)]
    pub lost_left: u64,
    /// Of those sent at the right in this piece, never arrived.
    #[serde(default)]
    pub lost_right: u64,
    /// Power at the end of the piece, if measured.
    pub watts: Option<f64>,
}

impl SampleLine {
    /// Of an engine's sample.
    pub fn of(test: &str, dut: &str, transport: &str, case: &str, run: u32, sample: &Sample) -> Self {
        let [sent_left, sent_right] = sample.sent;
        let [received_left, received_right] = sample.received;
        let [bytes_left, bytes_right] = sample.bytes;
        let [lost_left, lost_right] = sample.lost;
        SampleLine {
            test: test.into(),
            dut: dut.into(),
            transport: transport.into(),
            case: case.into(),
            run,
            at: sample.at.as_secs_f64(),
            sent_left,
            sent_right,
            received_left,
            received_right,
            bytes_left,
            bytes_right,
            lost_left,
            lost_right,
            watts: None,
        }
    }
}
