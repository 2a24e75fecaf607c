//! Transactions of a whole router: candidates, commits that are saved, revisions gone back to, and a router that ends before
//! its commit is confirmed.

use crate::process::{LOOPBACK, Place, say};

/// What a router says to lines, each answer behind the line it is for.
fn answers(place: &Place, lines: &[&str]) -> (Vec<String>, String) {
    // The version parts the answers.
    let typed: String = lines.iter().flat_map(|line| [line, "\nshow version\n"]).collect();
    let (said, log) = say(place, "", &typed);
    let mut all: Vec<String> = vec![String::new()];
    for line in said.lines() {
        if line.starts_with("vpp v") {
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    assert!(all.len() > lines.len(), "{said}{log}");
    (all, log)
}

#[test]
fn a_candidate_changes_nothing_before_it_is_committed_and_all_of_it_then() {
    let place = Place::new();
    let (said, log) = answers(
        &place,
        &[
            "configure",
            "configure create loopback interface instance 7",
            "configure set interface ip address loop7 10.7.0.1/24",
            "configure set int state loop7 up",
            "show running-config",
            "compare",
            "commit check",
            "commit comment first steps",
            "show running-config",
            "configure set interface state loop7 down",
            "configure set interface mtu 1400 loop7",
            "compare",
            "commit",
            "show configuration revisions",
            "rollback 1",
            "show running-config",
            "show configuration drift",
            "set interface tag loop7 x",
            "show configuration drift",
        ],
    );
    let at = |n: usize| said[n].as_str();
    assert!(at(0).contains("candidate of console"), "{}{log}", at(0));
    assert_eq!((at(1), at(2), at(3), at(4)), ("", "", "", ""), "{log}");
    assert!(
        at(5).contains("+set interface state loop7 up\n") && at(5).contains("+++ candidate\n"),
        "{}",
        at(5)
    );
    assert!(at(6).contains("no errors: 3 changes by 3 commands"), "{}", at(6));
    assert!(at(7).contains("saved as revision 1"), "{}", at(7));
    assert!(at(8).contains("set interface state loop7 up"), "{}", at(8));
    assert!(
        at(11).contains("-set interface state loop7 up") && at(11).contains("flap the interface"),
        "{}",
        at(11)
    );
    assert!(at(12).contains("saved as revision 2"), "{}", at(12));
    assert!(at(13).contains("console") && at(13).contains("+3 -0  first steps"), "{}", at(13));
    assert!(at(14).contains("saved as revision 3"), "{}", at(14));
    assert_eq!(at(15), at(8));
    assert!(at(16).contains("nothing was changed since the last commit"), "{}", at(16));
    assert!(at(18).contains("+set interface tag loop7 x"), "{}", at(18));
}

#[test]
fn all_errors_are_found_and_a_commit_that_fails_changes_nothing() {
    let place = Place::new();
    let (said, log) = answers(
        &place,
        &[
            "create loopback interface instance 7",
            "set interface ip address loop7 10.7.0.1/24",
            "configure delete loopback interface intfc loop7",
            "configure set interface mtu 1400 loop8",
            "commit check",
            "commit",
            "configure discard",
            // The address belongs to another interface: only the router knows.
            "configure create loopback interface instance 8",
            "configure set interface ip address loop8 10.7.0.1/24",
            "configure set interface tag loop7 y",
            "commit",
            "show running-config",
            "configure show version",
            "configure delete set interface mtu 1300 loop7",
            "commit confirm 0",
            "confirm",
        ],
    );
    let at = |n: usize| said[n].as_str();
    for n in [4, 5] {
        assert!(at(n).contains("2 errors were found, nothing was changed"), "{}{log}", at(n));
        assert!(
            at(n).contains("needs `create loopback interface instance 7', which is deleted"),
            "{}",
            at(n)
        );
        assert!(at(n).contains("loop8, which is not there (did you mean `loop7'?)"), "{}", at(n));
    }
    assert!(at(10).contains("all is as it was before"), "{}", at(10));
    assert!(!at(11).contains("loop8") && !at(11).contains("tag"), "{}", at(11));
    assert!(at(12).contains("is no line of a configuration"), "{}", at(12));
    assert!(at(13).contains("there is no line"), "{}", at(13));
    assert!(at(14).contains("1 to 1440 minutes"), "{}", at(14));
    assert!(at(15).contains("no commit waits to be confirmed"), "{}", at(15));
}

#[test]
fn a_router_that_ends_before_its_commit_is_confirmed_comes_up_with_the_old_configuration() {
    let place = Place::new();
    say(&place, "", &format!("{LOOPBACK}write\n"));
    let (said, log) = answers(
        &place,
        &[
            "wait 0.5",
            "configure set interface state loop7 down",
            "configure set interface mtu 1400 loop7",
            "commit confirm 5 comment smaller",
            "write",
            "configure set interface tag loop7 x",
            "commit",
            "rollback",
            "show running-config",
            "commit confirm",
        ],
    );
    let at = |n: usize| said[n].as_str();
    assert!(at(3).contains("taken back in 5 minutes unless `confirm' comes"), "{}{log}", at(3));
    for n in [4, 6] {
        assert!(at(n).contains("the commit of console is not confirmed"), "{}", at(n));
    }
    assert!(at(7).contains("taken back"), "{}", at(7));
    assert!(at(8).contains("set interface state loop7 up") && !at(8).contains("1400"), "{}", at(8));
    assert!(at(9).contains("10 minutes"), "{}", at(9));
    // The router has ended meanwhile.
    let (said, log) = answers(&place, &["wait 0.5", "show running-config", "show configuration revisions"]);
    assert!(log.contains("ended before the commit of console"), "{log}");
    assert!(said[1].contains("set interface state loop7 up") && !said[1].contains("tag"), "{}", said[1]);
    let (_, log) = say(&place, "", "show version\n");
    assert!(!log.contains("ended before"), "{log}");
    // Confirmed, it is what the next start runs.
    let lines = ["wait 0.5", "configure set interface tag loop7 x", "commit confirm 5 comment y", "confirm"];
    let (said, log) = answers(&place, &lines);
    assert!(said[3].contains("confirmed, saved as revision 2"), "{}{log}", said[3]);
    let (said, _) =
        answers(&place, &["wait 0.5", "show running-config", "show configuration revisions --json"]);
    assert!(said[1].contains("set interface tag loop7 x"), "{}", said[1]);
    assert!(said[2].contains("\"comment\": \"y\""), "{}", said[2]);
}

#[test]
fn a_file_is_loaded_into_a_candidate_whole_or_not_at_all() {
    let place = Place::new();
    let dir = place.run_dir();
    let file = dir.with_file_name("site.cli");
    std::fs::write(&file, format!("{LOOPBACK}show version\nset interface mtu x loop7\n")).unwrap();
    let load = format!("configure load {}", file.display());
    let (said, log) = answers(&place, &[&load, "show configuration candidates"]);
    assert!(said[0].contains("2 errors were found") && said[0].contains("site.cli:6: "), "{}{log}", said[0]);
    std::fs::write(&file, LOOPBACK).unwrap();
    let replace = format!("{load} replace");
    let (said, log) = answers(
        &place,
        &[
            &load,
            "commit",
            "create loopback interface instance 9",
            &replace,
            "compare",
            "commit",
            "show running-config",
        ],
    );
    assert!(said[0].contains("5 changes"), "{}{log}", said[0]);
    assert!(said[1].contains("5 changes by 5 commands"), "{}", said[1]);
    assert!(said[4].contains("-create loopback interface instance 9"), "{}", said[4]);
    assert!(said[6].contains("loop7") && !said[6].contains("instance 9"), "{}", said[6]);
}
