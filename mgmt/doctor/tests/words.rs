//! Every command that the doctor prints is one of the router's reference, word for word.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a test's failure, told at once"
)]

use crate::world;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use shoal_doctor::Build;
use world::*;

/// The syntax of each command, by the words it begins with.
fn reference() -> BTreeMap<String, String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
    let text = std::fs::read_to_string(file).unwrap();
    let mut commands = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("### `").and_then(|l| l.strip_suffix('`')) {
            let syntax = lines.by_ref().find(|l| l.starts_with(words)).unwrap_or_default();
            commands.insert(words.to_owned(), syntax.to_owned());
        }
    }
    assert!(commands.len() > 50, "this is no reference");
    commands
}

/// All commands of the router in a report, with the port they are of.
fn printed(report: &Value) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for port in report["ports"].as_array().unwrap() {
        let name = port["name"].as_str().unwrap();
        let ways = port["ways"].as_array().unwrap().iter().map(|way| &way["command"]);
        for command in ways.chain([&port["share"]]).filter_map(Value::as_str) {
            found.insert((command.to_owned(), name.to_owned()));
        }
    }
    for remark in report["remarks"].as_array().unwrap() {
        if let Some((_, command)) = remark.as_str().unwrap().split_once(": create ") {
            found.insert((format!("create {command}"), String::new()));
        }
    }
    let next = report["next"].as_str().unwrap();
    if let Some((_, command)) = next.split_once("and there: ") {
        let name = command.split(' ').find(|word| word.starts_with("if")).unwrap_or_default();
        found.insert((command.to_owned(), name.to_owned()));
    }
    found
}

#[test]
fn every_command_is_in_the_reference_with_all_its_words() {
    let mut world = World::new();
    for (name, driver) in [("if0", "igc"), ("if1", "virtio_net"), ("if2", "r8169"), ("if3", "i40e")] {
        world.card(name, &format!("0000:0{}:00.0", &name[2..]), (0x8086, 0x1572), driver, "");
    }
    let tun = world.port("if4");
    std::fs::write(tun.join("tun_flags"), "0x1001").unwrap();
    std::fs::write(tun.join("type"), "65534").unwrap();
    world.default4("if1");
    let reference = reference();
    let mut checked = 0;
    for build in [ALL, PLAIN, Build::default()] {
        world.around.build = build;
        for (command, name) in printed(&world.json()) {
            let begins = |words: &&String| command.split(' ').zip(words.split(' ')).all(|(a, b)| a == b);
            let known = reference.keys().filter(begins).max_by_key(|words| words.len());
            let Some(known) = known else {
                let built_elsewhere = ["create interface af_xdp", "create interface memif"];
                assert!(built_elsewhere.iter().any(|c| command.starts_with(c)), "no such command: {command}");
                println!("SKIP {command}: not in the reference yet");
                continue;
            };
            let syntax = &reference[known];
            let literal = |c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_');
            let words: BTreeSet<_> = syntax.split(literal).collect();
            for word in command.split(' ').filter(|word| *word != name) {
                // A value of an argument that is a word of its own kind: pinhole rules.
                let value = command.ends_with(&format!("pinhole {word}"));
                assert!(value || words.contains(word), "'{word}' of '{command}' is not in: {syntax}");
            }
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked}");
}

#[test]
fn a_build_without_a_driver_offers_none_of_its_commands() {
    let mut world = World::new();
    world.card("if0", "0000:01:00.0", (0x8086, 0x1572), "i40e", "");
    world.around.build = Build::default();
    assert_eq!(printed(&world.json()), BTreeSet::new());
    let syntaxes =
        ["create host-interface {name <n>}", "create interface af_xdp host-if <n>", "create tapestry"];
    let build = Build::of_commands(syntaxes);
    assert_eq!(build, Build { af_packet: true, af_xdp: true, ..Build::default() });
}
