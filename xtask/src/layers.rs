//! `layers`: five rings, and every arrow between crates points inward.
//!
//! A crate's ring is its folder's. Within rings 0 to 2 crates may use each other, cargo keeps that acyclic;
//! features and drivers (3), the doors of management (4) and programs (5) never use their own kind. The test kit
//! is a ring of its own that only tests may use, and so is the crate that composes superpaths of all features: programs
//! and the test kit use it. `lab` and `xtask` are outside: nothing may use them.

use crate::{Outcome, Result, files};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// The stack: ring 2. Everything else in `net/` is a feature.
const STACK: &[&str] = &[
    "interface",
    "ethernet",
    "adj",
    "fib",
    "neighbor",
    "arp",
    "ip6_nd",
    "ip",
    "ip4",
    "icmp",
    "reassembly",
    "nd",
    "ip6",
    "ip_interface",
    "l2",
    "mfib",
    "udp",
    "rule",
    "bond",
    "nat",
    "nat_state",
    "redundancy",
    "nat44",
    "translate46",
    "datagram",
    "lcp",
    "bfd",
    "syslog",
    "ipfix",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ring {
    Numbered(u8),
    /// `net/superpaths`: it composes nodes of all features; programs, tests and the test kit use it.
    Composition,
    /// `mgmt/commit`: it joins the command line and saved configurations, see docs/decisions/0015; programs use it.
    Transaction,
    /// `core/testkit`: it may use rings 0 to 3; tests and the lab may use it.
    Test,
    /// `lab`, `xtask`: they may use everything.
    Outside,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Code,
    Tests,
}

/// The ring of a folder; None if the rings have no place for it.
fn ring(folder: &str) -> Option<Ring> {
    let (top, rest) = folder.split_once('/').unwrap_or((folder, ""));
    Some(match (top, rest) {
        // Plugins stand on `abi` and `sdk`, not on the router.
        ("core", "infra" | "wire" | "derive" | "message" | "buffer" | "flow" | "stats_client")
        | ("plugin", "abi") => Ring::Numbered(0),
        ("core", "graph" | "module") | ("plugin", "sdk") => Ring::Numbered(1),
        ("core", "testkit") => Ring::Test,
        ("net", "superpaths") => Ring::Composition,
        ("net", name) if STACK.contains(&name) => Ring::Numbered(2),
        // What drivers share, see docs/decisions/0002, 0003 and 0013.
        ("drivers", "vnet" | "link" | "shm") => Ring::Numbered(2),
        ("net" | "drivers" | "plugin", _) => Ring::Numbered(3),
        ("mgmt", "commit") => Ring::Transaction,
        ("mgmt", _) => Ring::Numbered(4),
        ("bin", _) => Ring::Numbered(5),
        ("lab" | "xtask", _) => Ring::Outside,
        _ => return None,
    })
}

/// What is wrong with an arrow and what to do; None if it points inward.
fn judge(from: Ring, to: Ring, used_by: Use) -> Option<&'static str> {
    use Ring::{Composition, Numbered, Outside, Test, Transaction};
    match (from, to, used_by) {
        // Tests may put features together, but reach management only through the test kit.
        (Outside, _, _)
        | (Numbered(_) | Composition, Test, Use::Tests)
        | (Composition | Test, Numbered(0..=3), _)
        | (Test | Numbered(5), Composition, _)
        | (Transaction, Numbered(0 | 1 | 4), _)
        | (Numbered(5), Transaction, _)
        | (Numbered(0..=3), Composition | Numbered(0..=3), Use::Tests) => None,
        (_, Outside, _) => Some("nothing may use lab or xtask; move what is needed into a crate"),
        (Numbered(_), Test, Use::Code) => Some("the test kit is for tests; make it a dev-dependency"),
        (_, Transaction, _) => {
            Some("transactions are for programs; declare the form of a line in shoal-module")
        }
        (_, Composition, _) => {
            Some("superpaths are composed of features, not used by them; only tests and programs do")
        }
        (Numbered(from), Numbered(to), _) if to < from || (to == from && from <= 2) => None,
        (Numbered(3), Numbered(3), _) => Some(
            "features and drivers do not know each other; join a feature arc, or move the shared part inward",
        ),
        (_, Numbered(4), _) => {
            Some("declare it in shoal-module (CLI table, section, counter) and let mgmt transport it")
        }
        (_, Numbered(to), _) if Numbered(to) == from => {
            Some("crates of this ring stand side by side; move the shared part inward")
        }
        _ => Some("arrows point inward; move the shared part inward, or declare it in shoal-module"),
    }
}

/// Checks every crate of the workspace.
pub fn check() -> Result<Outcome> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps"])
        .current_dir(files::root())
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    arrows(&serde_json::from_slice(&output.stdout)?)
}

fn arrows(metadata: &Value) -> Result<Outcome> {
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |v: &Value, key: &str| v.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let root = text(metadata, "workspace_root") + "/";
    let packages = list(metadata, "packages");
    let mut folders = BTreeMap::new();
    for package in &packages {
        let manifest = text(package, "manifest_path");
        let folder = manifest.strip_prefix(&root).and_then(|m| m.strip_suffix("/Cargo.toml"));
        folders.insert(text(package, "name"), folder.ok_or("a crate outside the workspace")?.to_owned());
    }
    let (mut violations, mut count) = (Vec::new(), 0);
    for package in &packages {
        let Some(from) = folders.get(&text(package, "name")) else { continue };
        let Some(from_ring) = ring(from) else {
            violations
                .push(format!("{from}: no ring has this folder\n  hint: give it one in xtask/src/layers.rs"));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let Some(to) = folders.get(&text(&dependency, "name")) else { continue };
            let used_by = if text(&dependency, "kind") == "dev" { Use::Tests } else { Use::Code };
            count += 1;
            if let Some(hint) = ring(to).and_then(|to| judge(from_ring, to, used_by)) {
                let tests = if used_by == Use::Tests { " (in tests)" } else { "" };
                violations.push(format!("{from} -> {to}{tests}\n  hint: {hint}"));
            }
        }
    }
    Ok(Outcome { violations, summary: format!("{} crates, {count} arrows, all inward", packages.len()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arrow(from: &str, to: &str, kind: &str) -> Vec<String> {
        let package = |folder: &str, dependencies| json!({ "name": folder, "manifest_path": format!("/p/{folder}/Cargo.toml"), "dependencies": dependencies });
        let kind = if kind == "code" { Value::Null } else { json!(kind) };
        let metadata = json!({
            "workspace_root": "/p",
            "packages": [package(from, json!([{ "name": to, "kind": kind }])), package(to, json!([]))],
        });
        arrows(&metadata).unwrap().violations
    }

    #[test]
    fn arrows_that_point_inward_pass() {
        for (from, to, kind) in [
            ("bin/shoal", "mgmt/cli", "code"),
            ("mgmt/cli", "core/module", "code"),
            ("net/ping", "net/icmp", "code"),
            ("net/ip4", "net/fib", "code"),
            ("core/buffer", "core/infra", "code"),
            ("drivers/tap", "net/interface", "code"),
            ("net/ip4", "core/testkit", "dev"),
            ("core/graph", "core/testkit", "dev"),
            ("net/ping", "net/pg", "dev"),
            ("bin/shoal", "plugin/host", "code"),
            ("plugin/host", "plugin/examples/rust", "dev"),
            ("core/testkit", "net/pg", "code"),
            ("net/superpaths", "net/urpf", "code"),
            ("core/testkit", "net/superpaths", "code"),
            ("bin/shoal", "net/superpaths", "code"),
            ("mgmt/commit", "mgmt/cli", "code"),
            ("bin/shoal", "mgmt/commit", "code"),
            ("lab/graph", "core/testkit", "code"),
            // The tester sends by devices of the router's plugins, see docs/decisions/0009.
            ("lab/engine", "plugin/host", "code"),
        ] {
            assert_eq!(arrow(from, to, kind), Vec::<String>::new(), "{from} -> {to}");
        }
    }

    #[test]
    fn arrows_that_point_outward_are_named_with_a_hint() {
        for (from, to, kind, hint) in [
            ("net/ip4", "net/ping", "code", "declare it in shoal-module"),
            ("net/ping", "net/pg", "code", "feature arc"),
            ("drivers/tap", "drivers/af_packet", "code", "feature arc"),
            ("net/ping", "mgmt/cli", "code", "declare it in shoal-module"),
            ("net/ping", "mgmt/cli", "dev", "declare it in shoal-module"),
            ("mgmt/cli", "mgmt/config", "code", "declare it in shoal-module"),
            ("mgmt/cli", "mgmt/commit", "code", "for programs"),
            ("mgmt/commit", "net/fib", "code", "point inward"),
            ("core/graph", "net/ip4", "code", "point inward"),
            ("net/ip4", "core/testkit", "code", "dev-dependency"),
            ("bin/shoal", "xtask", "code", "nothing may use"),
            ("net/urpf", "net/superpaths", "code", "composed of features"),
            ("core/testkit", "mgmt/cli", "code", "declare it in shoal-module"),
        ] {
            let found = arrow(from, to, kind);
            assert_eq!(found.len(), 1, "{from} -> {to}");
            assert!(found[0].starts_with(&format!("{from} -> {to}")) && found[0].contains(hint), "{found:?}");
        }
    }

    #[test]
    fn a_folder_without_a_ring_is_a_violation() {
        assert!(arrow("extra/x", "core/infra", "code")[0].contains("no ring has this folder"));
    }
}
