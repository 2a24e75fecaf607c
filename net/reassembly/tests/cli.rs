//! The commands: what they do, what they print, and what they refuse.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::rc::Rc;

use common::{BOTH, TestFamily, two_hosts};
use shoal_module::cli::{Args, CliError, Output, Run};
use shoal_reassembly::cli::COMMANDS;
use shoal_reassembly::{Families, Kind, Reassembly, Settings, Version};
use shoal_testkit::Router;
use shoal_wire::IpProtocol;

/// A command by how its syntax begins, with words (an empty text) and arguments.
fn run(router: &Router, begins: &str, items: &[(&'static str, &str)]) -> Result<Output, CliError> {
    let command = COMMANDS.iter().find(|c| c.syntax.starts_with(begins)).unwrap();
    let args = items.iter().fold(Args::new(Rc::clone(router.control()), ""), |args, (name, text)| {
        if text.is_empty() { args.with_word(name, 0..0) } else { args.with(name, *text, 0..0) }
    });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args)
}

#[test]
fn an_interface_is_switched_for_one_family_or_both() {
    let (router, a, _) = two_hosts();
    let reassembly = router.get::<Reassembly>();
    let set = |word| run(&router, "set interface reassembly", &[("interface", "pg0"), (word, "")]).map(drop);
    for (word, ip4, ip6) in
        [("on", true, true), ("ip4", true, false), ("ip6", false, true), ("off", false, false)]
    {
        set(word).unwrap();
        assert_eq!(reassembly.interface(a.index()), Families { ip4, ip6 }, "{word}");
    }
    run(&router, "set ip local-reassembly", &[("ip6", "")]).unwrap();
    assert_eq!(reassembly.local(), Families { ip4: false, ip6: true });
    run(&router, "set interface sv-reassembly", &[("interface", "pg0"), ("on", ""), ("output", "")]).unwrap();
    let features = router.graph().features(Some(a.index()));
    for over in BOTH {
        let (_, on) = features.iter().find(|(arc, _)| *arc == over.node("output")).unwrap();
        assert!(on.iter().any(|(name, on)| *on && *name == over.node("sv-reassembly-output-feature")));
    }
    let unknown = run(&router, "set interface reassembly", &[("interface", "pg9"), ("on", "")]).unwrap_err();
    assert!(unknown.to_string().contains("pg9"), "{unknown}");
}

#[test]
fn limits_that_are_not_named_stay_and_impossible_ones_are_refused() {
    let (router, ..) = two_hosts();
    let reassembly = router.get::<Reassembly>();
    run(&router, "set ip6-full-reassembly", &[("timeout", "500"), ("max-fragments", "9")]).unwrap();
    let expected = Settings { timeout_ms: 500, max_fragments: 9, ..Settings::FULL };
    assert_eq!(reassembly.settings(Version::Ip6, Kind::Full), expected);
    assert_eq!(reassembly.settings(Version::Ip4, Kind::Full), Settings::FULL);
    run(&router, "set ip4-sv-reassembly", &[("max-reassemblies", "7")]).unwrap();
    assert_eq!(reassembly.settings(Version::Ip4, Kind::ShallowVirtual).max_reassemblies, 7);
    let refused = run(&router, "set ip6-full-reassembly", &[("timeout", "3600001")]).unwrap_err();
    assert!(refused.message().contains("nearest 3600000"), "{refused}");
    assert_eq!(reassembly.settings(Version::Ip6, Kind::Full), expected);
}

#[test]
fn what_is_held_is_shown_as_text_and_json() {
    let (mut router, a, _) = two_hosts();
    let over = TestFamily::Ip4;
    router.send(&a, over.piece(over.to_us(&a), 77, IpProtocol::UDP, 0, &[1; 64], true));
    let out = run(&router, "show ip4-full-reassembly", &[("details", "")]).unwrap();
    let text = out.to_text();
    for line in [
        "thread 0: fib_index: 0, src: 10.0.0.2, dst: 10.0.0.1, frag_id: 77, proto: 17\n",
        "  fragments: 1, bytes: 64 of ?, age: 0ms\n",
        "Number of IP4 reassemblies: 1\n",
        "Maximum configured concurrent full IP4 reassemblies per worker-thread: 1024\n",
        "Maximum configured full IP4 reassembly timeout: 60000ms\n",
        "Buffers held by fragments of all kinds: 1 of at most 1024\n",
        "Reassembly of fragments for this router: on\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    let json = out.to_json();
    assert_eq!((&json["reassemblies"], &json["datagrams"][0]["bytes"]), (&1.into(), &64.into()));
    let out = run(&router, "show ip6-sv-reassembly", &[]).unwrap();
    assert!(out.to_text().contains("Number of IP6 reassemblies: 0\n"), "{}", out.to_text());
    assert_eq!(out.to_json().get("datagrams"), None);
    router.advance(std::time::Duration::from_secs(62));
}
