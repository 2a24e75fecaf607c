//! Writes a results folder with invented figures and the page of it: `cargo run --example sample_report -- FOLDER`.
//!
//! The figures have the size of real ones but are no measurement; the page says so.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shoal_lab_plan::{Described, Link, Outcome, Sample, SummaryRow, TrialLine, Trust, Verdict};
use shoal_lab_report::{
    Bench, DeviceRecord, Folder, HistogramOf, Host, Page, Record, Results, SampleLine, SelfTest, compare,
    compare_page, write_whole,
};

const BEGAN: f64 = 1_795_392_000.0;

fn main() -> Result<(), Box<dyn Error>> {
    let folder =
        std::env::args_os().nth(1).map_or_else(|| PathBuf::from("target/sample-report"), PathBuf::from);
    let path = campaign(&folder, "sample", 1.0)?;
    let later = campaign(&folder, "sample-later", 0.97)?;
    let bench: Bench = serde_json::from_str(BENCH)?;
    let results = Results::read(&path)?;
    let page =
        Page { results: vec![results.clone()], bench: Some(bench), made: BEGAN + 4000.0, ..Page::default() };
    write_whole(&folder.join("report.html"), &page.html()?)?;
    let comparison = compare(&results, &Results::read(&later)?);
    print!("{}", comparison.text());
    write_whole(&folder.join("compare.html"), &compare_page(&comparison))?;
    println!("{}", folder.join("report.html").display());
    Ok(())
}

fn campaign(folder: &Path, name: &str, factor: f64) -> Result<PathBuf, Box<dyn Error>> {
    let record = record(name);
    let mut out = Folder::create(folder, &record)?;
    for trial in trials() {
        out.trial(&trial)?;
    }
    for sample in ramp() {
        out.sample(&sample)?;
    }
    for (dut, transport, base, tail) in [
        ("loopback", "memif", 1.8, 1.0),
        ("shoal", "memif", 4.6, 2.2),
        ("testpmd-mac", "memif", 3.9, 1.7),
        ("loopback", "af-packet", 11.0, 1.4),
        ("linux-route", "af-packet", 21.0, 6.0),
    ] {
        let of = HistogramOf {
            test: "latency".into(),
            dut: dut.into(),
            transport: transport.into(),
            case: if dut == "loopback" {
                String::new()
            } else {
                "IPv4 64 B, both directions, half the throughput".into()
            },
            run: 1,
        };
        out.histogram(&of, &delays(base, tail))?;
    }
    out.device_output("shoal", "ready\n")?;
    out.summary(&record, &rows(factor))?;
    Ok(out.path().to_owned())
}

fn record(name: &str) -> Record {
    let self_test = |transport: &str, frame: &str, most, floor| SelfTest {
        transport: transport.into(),
        link: Link::default(),
        ip: String::new(),
        frame: frame.into(),
        most,
        floor_us: Some(floor),
        floor_p999_us: Some(floor * 4.0),
        longest_stall_us: Some(1580.0),
        clock_ppm: Some(0.8),
    };
    let device = |name: &str, version: &str, transport: &str, command: &str| DeviceRecord {
        name: name.into(),
        transport: transport.into(),
        described: Described {
            version: version.into(),
            commands: vec![command.into()],
            files: Vec::new(),
            notes: vec!["softirqs on processor 0, by RPS".into()],
        },
        counters_before: vec![("rx".into(), 0)],
        counters_after: vec![("rx".into(), 18_446_744_073)],
        ..DeviceRecord::default()
    };
    let skipped = |name: &str, why: &str| DeviceRecord {
        name: name.into(),
        skipped: Some(why.into()),
        ..DeviceRecord::default()
    };
    Record {
        name: name.into(),
        began: BEGAN,
        ended: Some(BEGAN + 3600.0),
        command: ["shoal-lab", "suite", "paper", "--preset", "quick", "--note", "it's a sample"]
            .map(String::from)
            .to_vec(),
        commit: "7a57c67".into(),
        preset: "quick".into(),
        seeds: [("ports".to_owned(), 42)].into(),
        host: Host::read(&["dpdk", "openvswitch-switch"]),
        devices: vec![
            device("shoal", "shoal 0.1.0", "memif", "shoald --config shoal.toml"),
            device("linux-route", "Linux 6.18", "af-packet", "ip netns add dut"),
            device("testpmd-mac", "DPDK 22.11", "memif", "dpdk-testpmd --forward-mode=mac"),
            skipped("vpp", "no vpp binary was found"),
            skipped("ovs-dpdk", "package openvswitch-switch-dpdk is not installed"),
        ],
        self_tests: vec![
            self_test("memif", "64", 7_590_000.0, 1.8),
            self_test("memif", "1518", 3_100_000.0, 2.4),
            self_test("af-packet", "64", 198_000.0, 11.0),
            self_test("af-packet", "1518", 188_000.0, 12.0),
        ],
        notes: vec!["All figures of this page are invented: it shows the form of a report.".into()],
    }
}

/// Runs around a value, the same each time.
fn runs(value: f64, spread: f64, n: u32) -> Vec<f64> {
    let wave = |k: u32| (f64::from(k) * 2.399).sin();
    (0..n).map(|k| (value * (1.0 + spread * wave(k))).round()).collect()
}

fn row(dut: &str, transport: &str, ip: &str, frame: &str, values: Vec<f64>, trust: &[Trust]) -> SummaryRow {
    let mut marks = vec![Trust::VirtualLink, Trust::ShortTrials];
    marks.extend_from_slice(trust);
    if values.len() < 20 {
        marks.push(Trust::FewRuns);
    }
    SummaryRow {
        test: "throughput".into(),
        dut: dut.into(),
        version: "0.1.0".into(),
        transport: transport.into(),
        workers: 1,
        scenario: "route".into(),
        ip: ip.into(),
        frame: frame.into(),
        direction: "bi".into(),
        variant: String::new(),
        metric: "throughput".into(),
        unit: "fps/dir".into(),
        values,
        curve: Vec::new(),
        axes: None,
        trust: marks,
        note: String::new(),
    }
}

fn rows(f: f64) -> Vec<SummaryRow> {
    let mut rows = Vec::new();
    for (ip, frame, shoal, testpmd, linux) in [
        ("4", "64", 3_420_000.0, 7_010_000.0, 152_000.0),
        ("4", "512", 2_950_000.0, 5_600_000.0, 149_000.0),
        ("4", "1518", 1_810_000.0, 2_950_000.0, 138_000.0),
        ("6", "84", 3_080_000.0, 6_900_000.0, 146_000.0),
    ] {
        rows.push(row("shoal", "memif", ip, frame, runs(shoal * f, 0.012, 20), &[]));
        rows.push(row("testpmd-mac", "memif", ip, frame, runs(testpmd, 0.02, 10), &[Trust::TesterBound]));
        rows.push(row("linux-route", "af-packet", ip, frame, runs(linux, 0.06, 20), &[Trust::SharedCore]));
    }
    let mut two = row("shoal", "memif", "4", "64", runs(6_100_000.0 * f, 0.03, 5), &[Trust::SharedCore]);
    two.workers = 2;
    rows.push(two);
    for (dut, transport, tl, wcl, pdv) in [
        ("shoal", "memif", 4.61, 18.4, 14.9),
        ("testpmd-mac", "memif", 3.93, 14.2, 11.0),
        ("linux-route", "af-packet", 21.4, 133.0, 117.0),
    ] {
        for (metric, value) in [("TL", tl), ("WCL", wcl), ("PDV", pdv)] {
            let values = (0..20).map(|k| value * (1.0 + 0.02 * f64::from(k % 5))).collect();
            let mut r = row(dut, transport, "4", "64", values, &[]);
            (r.test, r.metric, r.unit, r.variant) =
                ("latency".into(), metric.into(), "us".into(), "50 %".into());
            rows.push(r);
        }
        let mut cpu =
            row(dut, transport, "4", "64", vec![if transport == "memif" { 0.29 } else { 5.8 }], &[]);
        (cpu.test, cpu.metric, cpu.unit) =
            ("energy".into(), "cpu_seconds_per_million_packets".into(), "s/Mpkt".into());
        rows.push(cpu);
    }
    rows.extend(curves());
    rows
}

fn curves() -> Vec<SummaryRow> {
    let mut rows = Vec::new();
    for (dut, transport, most) in [
        ("shoal", "memif", 3_420_000.0),
        ("testpmd-mac", "memif", 7_010_000.0),
        ("linux-route", "af-packet", 152_000.0),
    ] {
        let mut r = row(dut, transport, "4", "64", Vec::new(), &[]);
        (r.test, r.metric) = ("loss".into(), "loss".into());
        r.axes = Some(("offered, frames a second".into(), "received, frames a second".into()));
        let top = if transport == "memif" { 7_590_000.0 } else { 198_000.0 };
        r.curve = (1..=10)
            .map(|k| {
                let offered = top * f64::from(k) / 10.0;
                let over = (offered - most).max(0.0);
                let fall = if dut == "linux-route" { 0.6 } else { 0.03 };
                (offered, offered.min(most) - over * fall)
            })
            .collect();
        rows.push(r);
    }
    let mut nat = row("shoal", "memif", "4", "64", Vec::new(), &[]);
    (nat.test, nat.metric, nat.scenario) = ("nat-scaling".into(), "setup rate".into(), "snat".into());
    nat.axes = Some(("sessions".into(), "sessions set up a second".into()));
    nat.curve = vec![(1e3, 910e3), (1e4, 880e3), (1e5, 760e3), (1e6, 540e3), (4e6, 505e3)];
    let mut linux = nat.clone();
    (linux.dut, linux.transport) = ("linux-nft".into(), "memif".into());
    linux.curve = vec![(1e3, 71e3), (1e4, 69e3), (1e5, 55e3), (1e6, 31e3)];
    linux.note = "17 of 1,000,000 flows were never answered".into();
    rows.extend([nat, linux]);
    rows
}

fn delays(base: f64, tail: f64) -> Vec<(u64, u64)> {
    let mut counts = Vec::new();
    for k in 0..200_u32 {
        let us = base * (1.0 + 0.01 * f64::from(k).powf(1.0 + 0.1 * tail));
        let count = (200_000.0 * (-0.06 * f64::from(k)).exp()).max(1.0);
        counts.push(((us * 1e3) as u64, count as u64));
    }
    counts.push(((base * 60.0 * tail * 1e3) as u64, 3));
    counts
}

fn ramp() -> Vec<SampleLine> {
    let mut samples = Vec::new();
    for (dut, most) in [("shoal", 3.42e6), ("testpmd-mac", 7.0e6)] {
        for second in 1..=96_u64 {
            let offered = if second < 6 { 1000.0 } else { (7.6e6 * (second as f64 - 5.0) / 85.0).min(7.6e6) };
            let wobble = 1.0 + 0.01 * (second as f64 * 1.7).sin();
            let received = offered.min(most * wobble);
            let sample = Sample {
                at: Duration::from_secs(second),
                sent: [offered as u64, 0],
                received: [received as u64, 0],
                bytes: [received as u64 * 64, 0],
                lost: [(offered - received) as u64, 0],
            };
            samples.push(SampleLine::of("loadtest", dut, "memif", "64b, forward only", 1, &sample));
        }
    }
    samples
}

fn trials() -> Vec<TrialLine> {
    let verdicts = [
        Verdict::Pass,
        Verdict::Fail(0.02),
        Verdict::Disturbed("the tester stood still for 1580 us".into()),
        Verdict::TesterLimit("sending took 1.1 s instead of 1 s".into()),
    ];
    (0..60_u32)
        .map(|k| TrialLine {
            test: "throughput".into(),
            dut: "shoal".into(),
            case: "ip4 64 B bi, 1 worker".into(),
            run: k / 12 + 1,
            step: k % 12 + 1,
            rate: 3e6,
            bracket: Some((0, 7_590_000)),
            verdict: verdicts
                .get(if k % 17 == 3 {
                    2
                } else if k % 29 == 5 {
                    3
                } else {
                    k as usize % 2
                })
                .cloned()
                .unwrap_or(Verdict::Pass),
            outcome: Outcome::default(),
            began: BEGAN + f64::from(k),
        })
        .collect()
}

const BENCH: &str = r#"{ "machine": { "processor": "sample", "revision": "7a57c67" }, "scenarios": [
  { "name": "ip4-1", "clocks_min": 30.1, "clocks_median": 31.0, "instructions": 96.0,
    "nodes": { "ip4-superpath": 25.5, "interface-output": 3.1, "pg-tx": 1.5 }, "disturbed": false },
  { "name": "ip4-1-nodes", "clocks_min": 52.4, "clocks_median": 54.0, "instructions": 171.0,
    "nodes": { "ethernet-input": 9.8, "ip4-input": 8.2, "ip4-lookup": 14.3, "ip4-rewrite": 14.8, "interface-output": 3.4, "pg-tx": 1.9 }, "disturbed": false },
  { "name": "ip6-1", "clocks_min": 41.7, "clocks_median": 43.2, "instructions": null,
    "nodes": { "ip-superpath": 36.2, "interface-output": 3.6, "pg-tx": 1.9 }, "disturbed": true } ] }"#;
