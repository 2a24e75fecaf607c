//! The machine, the tester, the devices, and everything to take away.

use std::fmt::Write as _;

use super::figure::section as wrap;
use super::table::{Cell, Table};
use super::view::{View, command_of, frame_label};
use super::{data_link, energy, escape};
use crate::number;
use crate::results::{Host, Results, csv_of};

/// For each campaign.
pub fn section(view: &View<'_>) -> String {
    let content: String = view.results.iter().map(campaign).collect();
    wrap("machine", "Machine, devices, raw data", "", &content)
}

fn campaign(results: &Results) -> String {
    let record = &results.record;
    let mut out = format!("<article><h3>{}</h3>", escape(&record.name));
    let command = command_of(results);
    if !command.is_empty() {
        let _ = write!(out, "<pre><code>{}</code></pre>", escape(&command));
    }
    out.push_str(&details("Machine", &facts(results).html("Facts of the machine")));
    if !record.self_tests.is_empty() {
        out.push_str(&details("The tester alone", &self_tests(results).html("Self-tests")));
    }
    for device in record.devices.iter().filter(|d| d.skipped.is_none()) {
        let mut inner = String::new();
        let described = &device.described;
        let _ = write!(inner, "<p>{} over {}</p>", escape(&described.version), escape(&device.transport));
        if !described.commands.is_empty() {
            let _ = write!(inner, "<pre><code>{}</code></pre>", escape(&described.commands.join("\n")));
        }
        for (name, text) in &described.files {
            let _ = write!(inner, "<p>{}</p><pre><code>{}</code></pre>", escape(name), escape(text));
        }
        for note in &described.notes {
            let _ = write!(inner, "<p class=\"note\">{}</p>", escape(note));
        }
        if !device.counters_after.is_empty() {
            inner.push_str(&counters(device).html("The device's own counters"));
        }
        out.push_str(&details(&format!("Device {}", device.name), &inner));
    }
    out.push_str(&downloads(results));
    out.push_str("</article>");
    out
}

fn details(summary: &str, inner: &str) -> String {
    format!("<details><summary>{}</summary>{inner}</details>", escape(summary))
}

fn facts(results: &Results) -> Table {
    let record = &results.record;
    let host: &Host = &record.host;
    let joined = |map: &std::collections::BTreeMap<String, String>| {
        map.iter().map(|(k, v)| format!("{k}: {v}")).collect::<Vec<_>>().join("; ")
    };
    let seeds = record.seeds.iter().map(|(k, v)| format!("{k}: {v}")).collect::<Vec<_>>().join("; ");
    let rows = [
        ("fingerprint", host.fingerprint.clone()),
        ("processor", format!("{} \u{d7} {}", host.processors, host.processor)),
        ("clock", host.clock_ghz.map_or_else(String::new, |c| format!("{} GHz", number::digits(c)))),
        ("virtual machine", if host.is_virtual { "yes" } else { "no" }.into()),
        ("microcode", host.microcode.clone()),
        ("governor", host.governor.clone()),
        ("kernel", host.kernel.clone()),
        ("command line", host.cmdline.clone()),
        ("clock source", host.clocksource.clone()),
        ("isolated", host.isolated.clone()),
        ("nohz_full", host.nohz_full.clone()),
        ("NUMA", joined(&host.numa)),
        ("SMT", host.smt.clone()),
        ("siblings", joined(&host.siblings)),
        ("huge pages", joined(&host.hugepages)),
        ("memory", format!("{} KiB", host.memory_kib)),
        ("load", host.load.iter().map(|l| number::digits(*l)).collect::<Vec<_>>().join(" ")),
        (
            "steal since start",
            host.steal.map_or_else(String::new, |s| format!("{} %", number::digits(100.0 * s))),
        ),
        ("mitigations", joined(&host.mitigations)),
        ("packages", joined(&host.packages)),
        ("flags", host.flags.join(" ")),
        ("seeds", seeds),
        ("energy", energy::scope(&results.rows)),
    ];
    let mut table = Table::new(&["fact", "value"]);
    for (name, value) in rows {
        let value = if value.trim().is_empty() { number::NONE.to_owned() } else { value };
        table.rows.push(vec![Cell::text(name), Cell::text(value)]);
    }
    table
}

fn self_tests(results: &Results) -> Table {
    let mut table = Table::new(&[
        "wire",
        "frame",
        "frames/s, direction",
        "floor \u{b5}s",
        "floor p99.9 \u{b5}s",
        "longest stall \u{b5}s",
        "clocks apart ppm",
    ]);
    for t in &results.record.self_tests {
        table.rows.push(vec![
            Cell::text(&t.transport),
            Cell::text(frame_label(&t.frame)),
            Cell::number(Some(t.most), "fps"),
            Cell::number(t.floor_us, "us"),
            Cell::number(t.floor_p999_us, "us"),
            Cell::number(t.longest_stall_us, "us"),
            Cell::number(t.clock_ppm, "ppm"),
        ]);
    }
    table
}

fn counters(device: &crate::results::DeviceRecord) -> Table {
    let mut table = Table::new(&["counter", "before", "after"]);
    for (name, after) in &device.counters_after {
        let before = device.counters_before.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        table.rows.push(vec![
            Cell::text(name),
            Cell::Number(
                before.map(|b| b as f64),
                before.map_or_else(|| number::NONE.into(), |b| b.to_string()),
            ),
            Cell::Number(Some(*after as f64), after.to_string()),
        ]);
    }
    table
}

/// Trials beyond this many bytes stay in the folder: browsers are slow with longer links.
const MOST_TRIALS: usize = 2_000_000;

fn downloads(results: &Results) -> String {
    let mut out = String::from("<p class=\"tools\">Raw data: ");
    let mut link = |name: &str, kind: &str, text: &str| {
        let _ = write!(
            out,
            "<a class=\"get\" download=\"{name}\" href=\"{}\">{name}</a> ",
            data_link(kind, text)
        );
    };
    link("summary.csv", "text/csv", &csv_of(&results.record, &results.rows));
    if let Ok(json) = serde_json::to_string_pretty(&results.record) {
        link("record.json", "application/json", &json);
    }
    let lines: Vec<String> = results.trials.iter().filter_map(|t| serde_json::to_string(t).ok()).collect();
    let trials = lines.join("\n") + "\n";
    let fits = trials.len() <= MOST_TRIALS;
    if fits && !lines.is_empty() {
        link("trials.jsonl", "application/jsonl", &trials);
    }
    out.push_str("</p>");
    if !fits {
        out.push_str(
            "<p class=\"note\">trials.jsonl is too long for a page and stays in the results folder.</p>",
        );
    }
    out
}
