//! What there is to choose from.

use std::fmt::Write as _;

use serde_json::{Value, json};
use shoal_lab_dut as dut;
use shoal_lab_plan::Scenario;
use shoal_lab_report::Published;
use shoal_lab_stl as stl;

use crate::args::{Common, Listed};
use crate::cases::{Case, Defaults, NAMED, expand};
use crate::catalogue::ENTRIES;
use crate::doctor::{self, Finding};
use crate::settings::Settings;
use crate::suites::SUITES;
use crate::test_bed::{dut_settings, scenario};

/// As text or JSON.
pub fn list(what: Listed, settings: &Settings, as_json: bool) -> String {
    let rows: Vec<(String, String)> = match what {
        Listed::Duts => devices(settings)
            .into_iter()
            .map(|f| (f.what.trim_start_matches("device ").to_owned(), f.detail))
            .collect(),
        Listed::Ports => ports(),
        Listed::Tests => ENTRIES.iter().map(|e| (e.name.to_owned(), e.about.to_owned())).collect(),
        Listed::Suites => SUITES.iter().map(|s| (s.name.to_owned(), s.about.to_owned())).collect(),
        Listed::Profiles => profiles(),
        Listed::Figures => figures(),
    };
    if as_json {
        let all: Vec<Value> =
            rows.iter().map(|(name, about)| json!({ "name": name, "about": about })).collect();
        return format!("{}\n", Value::Array(all));
    }
    let width = rows.iter().map(|r| r.0.len()).max().unwrap_or_default();
    rows.iter().fold(String::new(), |mut text, (name, about)| {
        let _ = writeln!(text, "{name:<width$}  {about}");
        text
    })
}

/// Every device, with what keeps it from being measured.
pub fn devices(settings: &Settings) -> Vec<Finding> {
    let known = dut_settings(settings);
    dut::KNOWN
        .iter()
        .filter_map(|device| {
            let made = dut::device(device.name, &known).ok()?;
            // The first thing that it can do is what it is asked about.
            let can = device.forwardings.first().copied().unwrap_or("route");
            let mut found = doctor::device(device.name, made.available(&as_scenario(can, settings)));
            if found.state == doctor::State::Fine {
                found.detail = format!("{}: {}", device.what, device.forwardings.join(", "));
            }
            Some(found)
        })
        .collect()
}

/// What the tester's ports can be, in the words of `[ports]`.
fn ports() -> Vec<(String, String)> {
    let dpdk = doctor::dpdk(shoal_lab_engine::dpdk_plugin());
    let dpdk = match dpdk.next {
        None => format!("0000:03:00.0, net_af_packet0,iface=left: a device of DPDK's; {}", dpdk.detail),
        Some(next) => format!("{}; next: {next}", dpdk.detail),
    };
    [
        ("memif SOCKET ID", "memory shared with a device that listens".to_owned()),
        ("af-packet NAME", "an interface of the kernel's, by packet sockets".to_owned()),
        ("af-xdp NAME", "an interface of the kernel's, by AF_XDP".to_owned()),
        ("tap NAME", "an interface of the kernel's, made for this".to_owned()),
        ("dpdk DEVICE ...", dpdk),
    ]
    .map(|(words, about)| (words.to_owned(), about))
    .into()
}

fn as_scenario(forwarding: &str, settings: &Settings) -> Scenario {
    let cases = expand("gates", &Common::default(), &Defaults { forwarding, ..Defaults::default() });
    let case: Option<Case> = cases.ok().and_then(|c| c.into_iter().next());
    case.map_or_else(|| unreachable!("the defaults are a case"), |case| scenario(&case, settings))
}

fn profiles() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        NAMED.iter().map(|name| ((*name).to_owned(), "frames by this name: --size".to_owned())).collect();
    all.extend(
        stl::PROFILES.iter().map(|(name, about, _)| ((*name).to_owned(), format!("TRex profile: {about}"))),
    );
    all
}

fn figures() -> Vec<(String, String)> {
    let Ok(published) = Published::built_in() else { return Vec::new() };
    published
        .figures
        .iter()
        .map(|f| {
            let what = format!("{} {} {} B {}", f.dut, f.scenario, f.frame_bytes, f.direction);
            (what, format!("{} {} {} ({}, table {})", f.metric, f.value, f.unit, f.seed, f.table))
        })
        .collect()
}
