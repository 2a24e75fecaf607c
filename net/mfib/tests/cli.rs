//! What commands do and print, without the parser.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::rc::Rc;

use common::*;
use shoal_module::cli::{Args, CliError, Output, Run};
use shoal_testkit::Router;

/// Runs a command of this crate. Items are words, or arguments written `name=text`.
fn run(router: &Router, command: &str, items: &str) -> Result<Output, CliError> {
    let command = shoal_mfib::cli::COMMANDS.iter().find(|c| c.syntax.starts_with(command)).unwrap();
    let args =
        items.split_whitespace().fold(Args::new(Rc::clone(router.control()), items), |args, item| match item
            .split_once('=')
        {
            Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
            None => args.with_word(item.to_owned().leak(), 0..0),
        });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args)
}

fn error(router: &Router, items: &str) -> String {
    match run(router, "ip mroute", items).unwrap_err() {
        CliError::Argument { name, message, nearest } => {
            format!("{name}: {message}{}", nearest.map(|n| format!(" -> {n}")).unwrap_or_default())
        }
        CliError::Failed(message) => message,
    }
}

#[test]
fn a_route_is_added_shown_as_vpp_shows_it_and_taken_back() {
    let (mut router, ports) = router(2);
    run(
        &router,
        "ip mroute",
        "add first=10.0.0.9 second=232.1.1.1 via interface=pg0 Accept via interface=pg1 Forward",
    )
    .unwrap();
    // A listing is made once: as JSON, or as text.
    let show = || run(&router, "show ip mfib", "").unwrap();
    let adj = show().to_json()["tables"][0]["entries"][0]["replicates_to"][0].as_str().unwrap().to_owned();
    assert!(adj.starts_with("ipv4-mcast: pg1: mtu:9000 next:"), "{adj}");
    assert!(adj.ends_with("01005e00000002fe000000010800"), "{adj}");
    assert_eq!(
        show().to_text(),
        format!(
            "ipv4-VRF:0, fib_index:0 flags:none\n\
             (10.0.0.9, 232.1.1.1/32):  flags:none, index:2 src:CLI\n Interfaces:\n  pg0: Accept\n  pg1: Forward\n \
             multicast-ip4-chain\n  [@0]: replicate: [index:2 buckets:1]\n    [0] [@1]: {adj}\n\
             (*, 224.0.0.1/32):  flags:Accept-all-itf, index:0 src:special\n Interfaces:\n  local: Forward\n \
             multicast-ip4-chain\n  [@0]: replicate: [index:0 buckets:1]\n    [0] [@1]: dpo-receive\n\
             (*, 224.0.0.2/32):  flags:Accept-all-itf, index:1 src:special\n Interfaces:\n  local: Forward\n \
             multicast-ip4-chain\n  [@0]: replicate: [index:1 buckets:1]\n    [0] [@1]: dpo-receive\n\
             (*, 0.0.0.0/0):  flags:Drop\n"
        )
    );
    router.send(&ports[0], packet("10.0.0.9", "232.1.1.1").build());
    ports[1].received_one();
    run(&router, "ip mroute", "del first=10.0.0.9 second=232.1.1.1").unwrap();
    assert_eq!(
        error(&router, "del first=10.0.0.9 second=232.1.1.1"),
        "first: no multicast route (10.0.0.9, 232.1.1.1/32)"
    );
}

#[test]
fn prefixes_of_ip6_groups_are_routes_too() {
    let (mut router, ports) = router(2);
    let line = "add first=ff3e::/32 Accept-all-itf via interface=pg1 Forward";
    run(&router, "ip mroute", line).unwrap();
    router.send(&ports[0], packet(SOURCES[1], GROUPS[1]).build());
    ports[1].received_one();
    let shown = run(&router, "show ip6 mfib", "group=ff3e::9").unwrap().to_text();
    assert!(shown.contains("(*, ff3e::/32):  flags:Accept-all-itf"), "{shown}");
    assert!(!run(&router, "show ip6 mfib", "group=ff0e::9").unwrap().to_text().contains("ff3e"));
    let summary = run(&router, "show ip6 mfib", "summary").unwrap().to_text();
    assert_eq!(summary, "ipv6-VRF:0, fib_index:0 flags:none entries:5\n");
}

#[test]
fn errors_name_what_is_wrong() {
    let (router, _) = router(1);
    for (items, want) in [
        (
            "add first=10.0.0.1 Drop",
            "first: 10.0.0.1/32 is not a multicast group; groups are 224.0.0.0/4 and ff00::/8",
        ),
        (
            "add first=rubbish Drop",
            "first: bad address `rubbish', expected an address or prefix of groups such as 232.1.1.1, 239.0.0.0/8 or ff3e::1",
        ),
        ("add first=232.0.0.0/x Drop", "first: bad prefix length `x'"),
        (
            "add first=10.0.0.1 second=232.0.0.0/8 Drop",
            "second: an entry for a source is for one group, 232.0.0.0/8 is a prefix",
        ),
        (
            "add first=10.0.0.1 second=ff3e::1 Drop",
            "second: source 10.0.0.1 and group ff3e::1 are of different families",
        ),
        ("add first=0.0.0.0 second=232.0.0.1 Drop", "first: 0.0.0.0 is not the address of one host"),
        (
            "add first=232.0.0.1",
            "an entry needs a `via' or a flag of its own: `Signal', `Drop', `Connected', `Accept-all-itf'",
        ),
        (
            "add first=232.0.0.1 via interface=pg0",
            "via: an interface needs `Accept', `Forward' or `Negate-Signal'",
        ),
        (
            "add first=232.0.0.1 via local Accept",
            "via: `local' takes `Forward' only: packets of this router need no accepting interface",
        ),
    ] {
        assert_eq!(error(&router, items), want, "{items}");
    }
}

#[test]
fn interfaces_and_flags_are_listed() {
    let (router, _ports) = router(2);
    run(&router, "ip mroute", "add first=232.1.1.1 via interface=pg0 Accept via interface=pg1 Forward")
        .unwrap();
    let text = run(&router, "show mfib interface", "").unwrap().to_text();
    assert!(
        text.starts_with("mFIB interfaces::\n0@ pg0: Accept,\n1@ pg1: Forward,\n2@ local: Forward,\n"),
        "{text}"
    );
    assert_eq!(
        run(&router, "show mfib route flags", "").unwrap().to_text(),
        "S = Signal\nD = Drop\nC = Connected\nAA = Accept-all-itf\n"
    );
    assert_eq!(
        run(&router, "show mfib itf flags", "").unwrap().to_text(),
        "NS = Negate-Signal\nA = Accept\nF = Forward\nSP = Signal-Present\n"
    );
}
