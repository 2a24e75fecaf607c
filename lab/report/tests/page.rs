//! The page: whatever goes in, a document comes out that a parser accepts and that needs nothing from elsewhere.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::support;

use std::path::Path;
use std::process::Command;

use shoal_lab_plan::{CoreUse, Described, Processors, SummaryRow, Trust, Verdict};
use shoal_lab_report::{
    Bench, DeviceRecord, Histogram, HistogramOf, Page, PercentilePoint, Results, SampleLine, append_history,
    compare, compare_page, history_file, read_history,
};
use support::{around, record, results, row, trial};

/// Gives the number of plots.
fn checked(html: &str) -> usize {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("page.html");
    std::fs::write(&file, html).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/balance.py");
    let out = match Command::new("python3").arg(script).arg(&file).output() {
        Ok(out) => out,
        Err(e) => {
            println!("SKIP page: no python3 to parse with: {e}");
            return html.matches("<svg").count();
        }
    };
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    text.lines().last().and_then(|l| l.strip_suffix(" svg")).unwrap().parse().unwrap()
}

fn html(results: Vec<Results>) -> String {
    Page { results, ..Page::default() }.html().unwrap()
}

#[test]
fn no_results_are_a_page_that_says_so() {
    for page in [html(Vec::new()), html(vec![Results::default()]), html(vec![results("x", Vec::new())])] {
        assert_eq!(checked(&page), 0);
        assert!(page.contains("<strong>no result</strong>"));
    }
}

#[test]
fn one_run_has_a_bar_and_its_badge_but_no_whisker() {
    let mut one = row("shoal", vec![3.42e6]);
    one.trust.push(Trust::FewRuns);
    let page = html(vec![results("x", vec![one])]);
    assert_eq!(checked(&page), 1);
    assert!(page.contains("class=\"bar c0\"") && !page.contains("class=\"whisker\""));
    assert!(page.contains("n &lt; 20") && page.contains("vpp</strong>: skipped, no vpp binary"));
}

#[test]
fn what_was_refused_is_listed_with_its_reason_and_is_no_figure() {
    let mut refused = row("shoal", Vec::new());
    (refused.metric, refused.unit, refused.trust) = ("refused".into(), String::new(), vec![Trust::Refused]);
    refused.note =
        "refused: not a measurement, tried 3 times: others used 90 % of processor 0: <spin> (7) 90 %".into();
    let mut beside = trial(1, 1e6, Verdict::Disturbed("others".into()));
    let core = CoreUse { core: 0, others: 0.9, waited: Some(0.8), thread: "shoal (5)".into() };
    beside.outcome.processors = Some(Processors { cores: vec![core], ..Processors::default() });
    let all = Results { trials: vec![beside], ..results("x", vec![refused]) };
    let page = html(vec![all]);
    assert_eq!(checked(&page), 0, "a plot of nothing");
    assert!(page.contains("<strong>no result</strong>"), "{page}");
    assert!(
        page.contains("&lt;spin&gt; (7) 90 %") && page.contains("<strong>shoal with throughput</strong>")
    );
    assert!(page.contains("1 were disturbed") && page.contains("Others took at most 80.0 % of a processor"));
}

#[test]
fn a_bridges_results_are_under_the_rfcs_names() {
    let of = |test: &str, metric: &str, unit: &str, values: Vec<f64>| SummaryRow {
        test: test.into(),
        metric: metric.into(),
        unit: unit.into(),
        scenario: "bridge".into(),
        ..row("ovs", values)
    };
    let curve = vec![(100.0, 100.0), (200.0, 150.0)];
    let axes = Some(("offered fps/dir".to_owned(), "received fps/dir".to_owned()));
    let rate = SummaryRow { curve, axes, ..of("forwarding-rate", "forwarding rate", "fps/dir", vec![150.0]) };
    let page = html(vec![results(
        "x",
        vec![
            of("address-capacity", "address capacity", "addresses", vec![8192.0]),
            of("address-learning-rate", "address learning rate", "fps/dir", vec![5e5]),
            of("broadcast", "broadcast throughput", "fps/dir", vec![2e5]),
            of("broadcast", "TL", "us", vec![12.0]),
            rate,
        ],
    )]);
    // Bars of three rates, and the curve with its legend's two lines.
    assert_eq!(checked(&page), 6);
    for title in [
        "Address caching capacity (RFC 2889)",
        "Address learning rate (RFC 2889)",
        "Broadcast frames (RFC 2889), broadcast throughput",
        "Maximum forwarding rate (RFC 2889)",
    ] {
        assert!(page.contains(title), "{title}");
    }
    assert!(page.contains(">8192<"), "a table's size to the entry");
}

#[test]
fn twenty_runs_of_several_devices_have_whiskers_and_the_devices_keep_their_colours() {
    let mut linux = row("linux-route", around(442_782.0, 20));
    linux.transport = "af-packet".into();
    let mut bound = row("testpmd-mac", around(7e6, 20));
    bound.trust.push(Trust::TesterBound);
    let page = html(vec![results("x", vec![row("shoal", around(3e6, 20)), linux, bound])]);
    assert_eq!(checked(&page), 2, "a plot for each wire");
    assert_eq!(page.matches("class=\"whisker\"").count(), 3);
    assert!(page.contains("class=\"bar c2 hollow\"") && page.contains("\u{2265} 7\u{202f}M"));
    assert!(page.contains("at least <strong>7\u{202f}M</strong>"), "the summary says it too");
}

#[test]
fn shapes_and_errata_stand_beside_published_figures() {
    let mut linux = row("linux-route", around(152_000.0, 20));
    linux.transport = "af-packet".into();
    let page = html(vec![results("x", vec![row("shoal", around(1_520_020.0, 20)), linux])]);
    checked(&page);
    assert!(
        page.contains("9.6 (1.2 GHz), 9.3 (3.2 GHz)") && page.contains(">10.00<"),
        "our ratio beside theirs"
    );
    assert!(page.contains("different wires: memif and af-packet"));
    assert!(page.contains("442.8\u{202f}k"), "Table I, one core");
    assert!(page.contains("text-recognition slip"), "an erratum of the matched table");
    assert!(page.contains("indicative"));
}

#[test]
fn names_that_try_to_be_markup_are_only_names() {
    let evil = "</script><script>alert('1')</script>\"><img src=http://x onerror=y>&amp;\u{0}\u{202e}";
    let mut bad = row(evil, around(5.0, 6));
    for field in
        [&mut bad.version, &mut bad.variant, &mut bad.note, &mut bad.scenario, &mut bad.ip, &mut bad.frame]
    {
        *field = evil.into();
    }
    let mut curve = bad.clone();
    (curve.curve, curve.axes) = (vec![(1.0, 2.0), (3.0, 4.0)], Some((evil.into(), evil.into())));
    curve.test = format!("nat{evil}");
    let mut time = bad.clone();
    time.unit = "us".into();
    let mut all = results(evil, vec![bad, curve, time]);
    all.record.command = vec![evil.into()];
    all.record.notes = vec![evil.into()];
    all.warnings = vec![evil.into()];
    all.record.host.kernel = evil.into();
    let described = Described {
        version: evil.into(),
        commands: vec![evil.into()],
        files: vec![(evil.into(), evil.into())],
        notes: vec![evil.into()],
    };
    let counters_after = vec![(evil.into(), u64::MAX)];
    all.record.devices.push(DeviceRecord {
        name: evil.into(),
        described,
        counters_after,
        ..DeviceRecord::default()
    });
    let of = HistogramOf {
        test: evil.into(),
        dut: evil.into(),
        transport: evil.into(),
        case: evil.into(),
        run: 1,
    };
    let points = vec![
        PercentilePoint { us: 1.0, share: 0.0, count: 1 },
        PercentilePoint { us: 2.0, share: 1.0, count: 2 },
    ];
    all.histograms = vec![Histogram { of, points }];
    let sample = SampleLine {
        dut: evil.into(),
        case: evil.into(),
        test: evil.into(),
        at: 1.0,
        sent_left: 9,
        received_left: 4,
        ..SampleLine::default()
    };
    all.samples = vec![sample.clone(), SampleLine { at: 2.0, ..sample }];
    let page = html(vec![all.clone(), all.clone()]);
    assert!(checked(&page) > 4);
    assert!(!page.contains("<img") && !page.contains("alert('1')"));
    let compared = compare_page(&compare(&all, &all));
    checked(&compared);
    assert!(!compared.contains("<img"));
}

#[test]
fn nan_zero_infinity_and_huge_values_are_drawn_without_breaking() {
    let odd = [
        vec![f64::NAN],
        vec![0.0],
        vec![0.0, f64::INFINITY, 3.0],
        vec![1e300, 1e-300],
        vec![-5.0, 5.0],
        vec![0.0; 20],
    ];
    for values in odd {
        let mut curve = row("shoal", values.clone());
        curve.test = "loss".into();
        curve.axes = Some(("offered".into(), "received".into()));
        curve.curve = values.iter().map(|v| (*v, *v)).collect();
        let mut time = row("shoal", values.clone());
        time.unit = "us".into();
        let mut cpu = row("shoal", values.clone());
        cpu.metric = "cpu_seconds_per_million_packets".into();
        cpu.unit = "s/Mpkt".into();
        let two = {
            let mut two = row("shoal", values.clone());
            two.workers = 2;
            two
        };
        let page = html(vec![results("x", vec![row("shoal", values.clone()), curve, time, cpu, two])]);
        checked(&page);
        for bad in ["\"NaN", " NaN", "inf\"", "\"inf", "MNaN", "LNaN"] {
            assert!(!page.contains(bad), "{values:?} gave {bad}");
        }
    }
}

#[test]
fn several_campaigns_share_a_page_and_are_told_apart() {
    let page = html(vec![
        results("first", vec![row("shoal", around(3e6, 20))]),
        results("second", vec![row("shoal", around(3e6, 20))]),
    ]);
    assert_eq!(checked(&page), 1);
    assert!(page.contains("shoal [first]") && page.contains("shoal [second]"));
}

#[test]
fn clocks_by_node_come_from_the_bench_file() {
    let text = r#"{"machine":{"processor":"x"},"scenarios":[{"name":"ip4-1","clocks_min":30.5,"clocks_median":31,
        "nodes":{"ip4-superpath":25.5},"unknown":1}]}"#;
    let bench: Bench = serde_json::from_str(text).unwrap();
    let page = Page { bench: Some(bench), ..Page::default() }.html().unwrap();
    assert_eq!(checked(&page), 1);
    assert!(page.contains("ip4-superpath") && page.contains("30.5 clocks in all"));
    let error = Bench::read(Path::new("no-such-file.json")).unwrap_err().to_string();
    assert!(error.starts_with("no-such-file.json"), "{error}");
}

#[test]
fn a_folder_with_clocks_of_its_own_shows_those() {
    let bench = |node: &str| -> Bench {
        let text =
            r#"{"scenarios":[{"name":"ip4-1","clocks_min":30.5,"clocks_median":31,"nodes":{"NODE":25.5}}]}"#;
        serde_json::from_str(&text.replace("NODE", node)).unwrap()
    };
    let folder = Results { bench: Some(bench("ip4-superpath")), ..results("x", Vec::new()) };
    let other = Some(bench("of-another-day"));
    let page = Page { results: vec![folder], bench: other, ..Page::default() }.html().unwrap();
    assert_eq!(checked(&page), 1);
    assert!(page.contains("ip4-superpath") && !page.contains("of-another-day"));
}

#[test]
fn every_plot_has_its_figures_its_download_and_its_command() {
    let page = html(vec![results("x", vec![row("shoal", around(3e6, 20))])]);
    checked(&page);
    assert!(page.contains("<summary>Figures</summary>") && page.contains("download=\""));
    assert!(page.contains("data:text/csv;charset=utf-8,device%2C"));
    assert!(page.contains("<pre><code>shoal-lab run throughput</code></pre>"));
    assert!(page.contains("3000002"), "all digits are in what is taken away");
}

#[test]
fn other_days_of_the_machine_are_drawn_beside_each_other() {
    let here = tempfile::tempdir().unwrap();
    for (day, median) in [(0.0, 1e6), (1.0, 1.1e6)] {
        let mut campaign = results("x", vec![row("shoal", around(median, 5))]);
        campaign.record.began += day * 86_400.0;
        append_history(here.path(), &campaign).unwrap();
    }
    let history = read_history(&history_file(here.path(), "")).unwrap();
    let page = Page { history, ..Page::default() }.html().unwrap();
    checked(&page);
    assert!(page.contains("days since 2026-11-23") && page.contains("2026-11-24"));
}

#[test]
fn energy_without_a_meter_is_reported_as_not_measured() {
    let mut cpu = row("shoal", vec![0.29]);
    (cpu.metric, cpu.unit) = ("cpu_seconds_per_million_packets".into(), "s/Mpkt".into());
    let page = html(vec![results("x", vec![cpu])]);
    checked(&page);
    assert!(page.contains("<strong>not measured</strong>") && page.contains("This is not energy"));
}

#[test]
fn the_record_of_a_page_is_not_lost() {
    let page = html(vec![Results { record: record("here"), ..Results::default() }]);
    checked(&page);
    assert!(page.contains("measured 2026-11-23 00:00 UTC") && page.contains("download=\"record.json\""));
}
