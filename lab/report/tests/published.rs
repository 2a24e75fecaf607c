//! The published figures and what of them stands beside ours.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::support;

use shoal_lab_report::{Published, family_of, shapes};
use support::{around, row};

#[test]
fn all_figures_and_errata_are_read() {
    let published = Published::built_in().unwrap();
    assert_eq!((published.figures.len(), published.errata.len()), (1418, 40));
}

#[test]
fn a_result_finds_the_figure_of_its_kind() {
    let published = Published::built_in().unwrap();
    let mut linux = row("linux-route", around(1.0, 3));
    let found = published.beside(&linux);
    assert!(found.iter().any(|m| m.figure.table == "I" && m.figure.per_direction() == Some(442_782.0)));
    assert!(
        found
            .iter()
            .all(|m| m.figure.dut == "Linux kernel" && m.figure.cores == "1" && m.figure.frame_bytes == "64")
    );
    linux.workers = 12;
    assert!(published.beside(&linux).iter().any(|m| m.figure.cores == "12"));
    linux.workers = 77;
    assert!(published.beside(&linux).is_empty());
}

#[test]
fn devices_without_published_kin_find_nothing() {
    let published = Published::built_in().unwrap();
    assert!(published.beside(&row("testpmd-mac", around(1.0, 3))).is_empty());
    assert_eq!(family_of("ovs-dpdk", "bridge"), None);
}

#[test]
fn errata_concern_their_table_cores_and_kind() {
    let published = Published::built_in().unwrap();
    let figure = |table: &str, cores: &str, metric: &str| {
        published.figures.iter().find(|f| f.table == table && f.cores == cores && f.metric == metric).unwrap()
    };
    let reasons = |table, cores, metric| -> Vec<String> {
        published.errata_of(figure(table, cores, metric)).iter().map(|e| e.reason.clone()).collect()
    };
    assert!(reasons("I", "12", "throughput_stdev").iter().any(|r| r.contains("thousand separator")));
    assert!(!reasons("I", "4", "throughput_stdev").iter().any(|r| r.contains("thousand separator")));
    assert!(!reasons("I", "12", "throughput_median").iter().any(|r| r.contains("thousand separator")));
    assert!(reasons("2.12", "4", "packet_loss").iter().any(|r| r.contains("1/64")), "a range of tables");
    assert!(reasons("IX", "1", "throughput_median").iter().any(|r| r.contains("slip")), "a list of tables");
}

#[test]
fn only_figures_with_a_counting_become_rates() {
    let published = Published::built_in().unwrap();
    for figure in &published.figures {
        let is_rate = figure.per_direction().is_some();
        assert_eq!(
            is_rate,
            matches!(figure.unit.as_str(), "fps/dir" | "Mpps/dir" | "Mpps total"),
            "{figure:?}"
        );
        if let Some(normal) = figure.per_ghz_and_core() {
            assert!(normal > 0.0 && normal.is_finite() && normal < 2e7, "{figure:?}");
        }
    }
}

#[test]
fn shapes_are_ratios_of_medians_within_a_campaign() {
    let (shoal, linux) = (row("shoal", around(3e6, 5)), row("linux-route", around(3e5, 5)));
    let mut six = row("shoal", around(2.7e6, 5));
    (six.ip, six.frame) = ("6".into(), "84".into());
    let mut two = row("shoal", around(6e6, 5));
    two.workers = 2;
    let mut nat = row("shoal", around(1.5e6, 5));
    nat.scenario = "snat".into();
    let mut found = shapes(&[shoal, linux, six, two, nat]);
    let spread: Vec<_> = found.iter().filter(|s| s.what.contains("dispersion")).collect();
    assert_eq!(spread.len(), 4, "of Shoal's rows, not of Linux's");
    assert!(spread.iter().all(|s| s.ours > 0.0 && s.ours < 0.001 && s.published == "below 1"), "{spread:?}");
    found.retain(|s| !s.what.contains("dispersion"));
    let ratios: Vec<(f64, &str)> =
        found.iter().map(|s| ((s.ours * 100.0).round() / 100.0, s.published)).collect();
    for wanted in
        [(10.0, "9.6 (1.2 GHz), 9.3 (3.2 GHz)"), (0.9, "0.89 to 0.92"), (2.0, "2.00 to 2.04"), (0.5, "0.54")]
    {
        assert!(ratios.contains(&wanted), "{wanted:?} in {ratios:?}");
    }
    assert_eq!(found.len(), 4, "{ratios:?}");
}

#[test]
fn a_device_that_carried_nothing_has_no_ratio() {
    assert!(shapes(&[row("shoal", around(3e6, 1)), row("linux-route", vec![0.0; 5])]).is_empty());
}

#[test]
fn a_damaged_table_is_named_with_its_row() {
    let error = Published::parse("seed,table\nx,y\n", "seed,table\n").unwrap_err().to_string();
    assert!(error.contains("lab-seed-figures.csv row 1"), "{error}");
}
