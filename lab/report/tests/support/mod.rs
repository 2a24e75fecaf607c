//! Rows, trials and folders for tests.
#![allow(dead_code, reason = "each test file uses some of it")]

use shoal_lab_plan::{Outcome, SummaryRow, TrialLine, Trust, Verdict};
use shoal_lab_report::{DeviceRecord, Record, Results, SelfTest};

pub fn row(dut: &str, values: Vec<f64>) -> SummaryRow {
    SummaryRow {
        test: "throughput".into(),
        dut: dut.into(),
        version: "1".into(),
        transport: "memif".into(),
        workers: 1,
        scenario: "route".into(),
        ip: "4".into(),
        frame: "64".into(),
        direction: "bi".into(),
        variant: String::new(),
        metric: "throughput".into(),
        unit: "fps/dir".into(),
        values,
        curve: Vec::new(),
        axes: None,
        trust: vec![Trust::VirtualLink],
        note: String::new(),
    }
}

pub fn trial(run: u32, rate: f64, verdict: Verdict) -> TrialLine {
    TrialLine {
        test: "throughput".into(),
        dut: "shoal".into(),
        case: "ip4 64 B bi, 1 worker".into(),
        run,
        step: 1,
        rate,
        bracket: None,
        verdict,
        outcome: Outcome::default(),
        began: 1.0,
    }
}

pub fn record(name: &str) -> Record {
    Record {
        name: name.into(),
        began: 1_795_392_000.0,
        command: vec!["shoal-lab".into(), "run".into(), "throughput".into()],
        devices: vec![DeviceRecord {
            name: "vpp".into(),
            skipped: Some("no vpp binary was found".into()),
            ..DeviceRecord::default()
        }],
        self_tests: vec![SelfTest {
            transport: "memif".into(),
            frame: "64".into(),
            most: 7.59e6,
            ..SelfTest::default()
        }],
        ..Record::default()
    }
}

pub fn results(name: &str, rows: Vec<SummaryRow>) -> Results {
    Results { record: record(name), rows, ..Results::default() }
}

pub fn around(value: f64, n: u32) -> Vec<f64> {
    (0..n).map(|k| value + f64::from(k * 7 % 5)).collect()
}
