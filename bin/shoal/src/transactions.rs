//! Every line of a configuration has one form, and what a form says of taking a line back is true: proved by doing it.

use std::collections::BTreeSet;
use std::rc::Rc;

use shoal_commit::{Engine, Failure, Fault, RollbackOutcome};
use shoal_testkit::{Rng, Router};

use crate::running::{router, shown, wait};
use crate::saved::LINES;

fn engine(router: &Router) -> Engine {
    Engine::of_modules(router.control()).unwrap()
}

/// Leads a router to a configuration.
fn lead(router: &mut Router, engine: &Engine, text: &str, fault: Fault) -> Result<usize, Failure> {
    let (control, engine, text) = (Rc::clone(router.control()), engine.clone(), text.to_owned());
    let done = wait(&control, async move { engine.lead_to(&text, fault).await });
    done.map(|done| done.steps)
}

fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.sort_unstable();
    lines
}

/// Lines that only one of two texts has.
fn apart(one: &str, other: &str) -> Vec<String> {
    let (a, b) = (lines(one), lines(other));
    let mut all: Vec<String> =
        a.iter().filter(|line| !b.contains(line)).map(|line| format!("-{line}")).collect();
    all.extend(b.iter().filter(|line| !a.contains(line)).map(|line| format!("+{line}")));
    all
}

/// Lines of forms that [`LINES`] leaves out.
const MORE: &[&str] = &[
    "set interface mtu ip4 1300 loop0",
    "set interface mac address local0 02:fe:00:00:00:42",
    "ip6 nd loop0 prefix 2001:db8:9::/64 3600 1800 off-link",
    "igmp ssm-range del 232.0.0.0/8",
    "lb conf ip6-src-address 2001:db8::77",
    "create memif socket id 9 filename /tmp/shoal-transactions-9.sock",
    "set interface ip address loop0 10.0.7.1/24",
    "set interface ip address loop0 10.0.8.1/24",
];

/// Forms whose lines need devices, other modules or a daemon. `tests/netns/61-transactions.sh` commits those of devices and takes
/// them back.
const ELSEWHERE: &[&str] = &[
    "bfd dataplane",
    "create host-interface",
    "create interface af_xdp",
    "create interface memif",
    "create tap",
    "create vhost-user",
    "delete worker",
    "disable ip6 interface",
    "dslite set b4-tunnel-endpoint-address",
    "fpm listen",
    "lcp create",
    "set interface rx-mode",
    "set interface rx-placement",
    "set interface tx-queue",
    "set ip6 dad autoremove",
    "set logging",
    "set metrics",
    "set tap offload",
];

#[test]
fn every_line_has_one_form_that_says_where_it_stands() {
    let mut router = router();
    let engine = engine(&router);
    let (mut wrong, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for line in LINES.iter().chain(MORE) {
        router.cli(line).unwrap_or_else(|e| panic!("`{line}': {e}"));
        let (text, mut phase) = (shown(&mut router), "");
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("# ") {
                phase = name;
                continue;
            }
            match engine.kinds().number_of(router.control(), line) {
                Ok(number) => {
                    let (_, kind) = engine.kinds().kind(number).unwrap();
                    if kind.phase.name() != phase {
                        wrong
                            .insert(format!("`{line}' stands in {phase}, its form in {}", kind.phase.name()));
                    }
                    seen.insert(number);
                }
                Err(error) => drop(wrong.insert(error.to_string())),
            }
        }
    }
    for number in 0..engine.kinds().len() {
        let (module, kind) = engine.kinds().kind(number).unwrap();
        let elsewhere = ELSEWHERE.iter().any(|words| kind.syntax.starts_with(words));
        if seen.contains(&number) == elsewhere {
            let what = if elsewhere {
                "is tried here, and listed as one that is not"
            } else {
                "is tried by no line"
            };
            wrong.insert(format!("{module}: `{}' {what}", kind.syntax));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_each_line_does_is_taken_back_and_done_again() {
    let mut router = router();
    let engine = engine(&router);
    let (mut wrong, mut before) = (Vec::new(), shown(&mut router));
    for line in LINES.iter().chain(MORE) {
        router.cli(line).unwrap();
        let after = shown(&mut router);
        for to in [&before, &after] {
            if let Err(error) = lead(&mut router, &engine, to, Fault::None) {
                wrong.push(format!("`{line}': {error}"));
                continue;
            }
            let rest = apart(to, &shown(&mut router));
            if !rest.is_empty() {
                wrong.push(format!("`{line}': {rest:#?}"));
            }
        }
        before = shown(&mut router);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Goes to a configuration with some lines of another one, and with all that these need; what it is, or nothing if the router
/// did not take it. Then it is where it was.
fn go_to_some_of(rng: &mut Rng, router: &mut Router, engine: &Engine, full: &str) -> Option<String> {
    let mut lines: Vec<&str> = full.lines().filter(|_| rng.below(30) > 0).collect();
    loop {
        let (before, text) = (shown(router), lines.join("\n") + "\n");
        match lead(router, engine, &text, Fault::None) {
            // A line may bring another one along: what the router shows is what it is.
            Ok(_) => return Some(shown(router)),
            Err(Failure::Refused(errors)) => {
                let named: BTreeSet<&str> =
                    errors.iter().filter_map(|error| error.strip_prefix('`')?.split('\'').next()).collect();
                let count = lines.len();
                lines.retain(|line| !named.contains(line));
                assert!(lines.len() < count, "{errors:?}");
            }
            Err(Failure::Step { back, line, why }) => {
                assert_eq!(back, RollbackOutcome::Whole, "`{line}': {why}");
                assert!(apart(&before, &shown(router)).is_empty(), "`{line}': {why}");
                return None;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Faults of one commit: one for each of its steps, or for each second or third of a longer one.
const MOST_FAULTS: usize = 40;
/// Configurations that are gone to.
const CASES: usize = 10;

#[test]
fn a_commit_that_fails_at_any_step_ends_where_it_began() {
    let mut router = router();
    let engine = engine(&router);
    for line in LINES {
        router.cli(line).unwrap();
    }
    let full = shown(&mut router);
    let mut rng = Rng::new(Rng::seed(20));
    let (mut faults, mut refused, mut steps_of_all) = (0, 0, 0);
    let mut case = 0;
    while case < CASES {
        let from = shown(&mut router);
        let Some(wanted) = go_to_some_of(&mut rng, &mut router, &engine, &full) else {
            refused += 1;
            continue;
        };
        case += 1;
        let there = |router: &mut Router, to: &str| {
            let steps = lead(router, &engine, to, Fault::None).unwrap_or_else(|e| panic!("case {case}: {e}"));
            let rest = apart(to, &shown(router));
            assert!(rest.is_empty(), "case {case}: {rest:#?}");
            steps
        };
        // Back, and there: the same. Then with faults, from both ends.
        there(&mut router, &from);
        there(&mut router, &wanted);
        let ends = [(&wanted, &from), (&from, &wanted)];
        for (here, to) in ends {
            let steps = there(&mut router, to);
            there(&mut router, here);
            for step in (0..steps).step_by(steps.div_ceil(MOST_FAULTS).max(1)) {
                match lead(&mut router, &engine, to, Fault::At(step)) {
                    Err(Failure::Step { back, line, .. }) => {
                        assert_eq!(back, RollbackOutcome::Whole, "case {case}, step {step}, `{line}'");
                        let rest = apart(here, &shown(&mut router));
                        assert!(rest.is_empty(), "case {case}, step {step}, `{line}': {rest:#?}");
                        faults += 1;
                    }
                    other => panic!("case {case}, step {step}: {other:?}"),
                }
            }
            steps_of_all += there(&mut router, to);
        }
    }
    println!(
        "{faults} faults in {steps_of_all} steps of {CASES} commits there and back; {refused} not taken by the router"
    );
    assert!(faults > 100, "only {faults} faults");
}

#[test]
fn a_role_by_a_virtual_router_needs_the_one_of_its_family() {
    let mut router = router();
    let engine = engine(&router);
    let ip6 = "vrrp vr add loop0 vr_id 7 ipv6 fe80::78 2001:db8::78";
    let role = "session-sync role vrrp loop0 vr_id 7 ipv6";
    for line in [
        "create loopback interface instance 0",
        "set interface ip address loop0 10.0.0.1/24",
        "set interface ip address loop0 2001:db8::1/64",
        "vrrp vr add loop0 vr_id 7 10.0.0.77",
        ip6,
        role,
    ] {
        router.cli(line).unwrap();
    }
    let all = shown(&mut router);
    assert!(all.contains(ip6) && all.contains(role), "{all}");
    let without = all.replace(&format!("{ip6}\n"), "");
    let Err(Failure::Refused(errors)) = lead(&mut router, &engine, &without, Fault::None) else {
        panic!("the virtual router of IPv4 is another one")
    };
    assert!(errors.iter().all(|error| error.contains(role)), "{errors:?}");
}

#[test]
fn what_others_have_brought_stays_when_a_router_goes_back_and_goes_with_its_interface() {
    let mut router = router();
    let engine = engine(&router);
    let type_all = |router: &mut Router, lines: &[&str]| {
        for line in lines {
            drop(router.cli(line).unwrap_or_else(|e| panic!("`{line}': {e}")));
        }
    };
    let own = [
        "create loopback interface instance 0",
        "create loopback interface instance 1",
        "ip table add 7",
        "set interface ip address loop0 10.0.7.1/24",
    ];
    type_all(&mut router, &own);
    let before = shown(&mut router);
    let linux = ["10.0.9.1/24", "2001:db8:9::1/64"];
    let line = |interface: &str, address: &str| format!("set interface ip address {interface} {address}");
    for address in linux {
        type_all(&mut router, &[&line("loop0", address)]);
    }
    type_all(&mut router, &[&line("loop1", "10.1.0.1/24"), &line("loop0", "10.0.8.1/24")]);
    let of = |router: &Router, name: &str| router.interfaces().by_name(name).unwrap();
    let (loop0, loop1) = (of(&router, "loop0"), of(&router, "loop1"));
    let (ip4, ip6) = (router.get::<shoal_ip4::Ip4>(), router.get::<shoal_ip6::Ip6>());
    ip4.set_brought(loop0, linux[0].parse().unwrap(), true);
    ip4.set_brought(loop1, "10.1.0.1/24".parse().unwrap(), true);
    ip6.set_brought(loop0, "2001:db8:9::1".parse().unwrap(), true);
    // Only what an operator has typed goes.
    assert_eq!(lead(&mut router, &engine, &before, Fault::None), Ok(1));
    let stays: Vec<String> = [("loop0", linux[0]), ("loop0", linux[1]), ("loop1", "10.1.0.1/24")]
        .map(|(interface, address)| format!("+{}", line(interface, address)))
        .to_vec();
    assert_eq!(apart(&before, &shown(&mut router)), stays);
    assert_eq!(lead(&mut router, &engine, &before, Fault::None), Ok(0));
    // It goes with its interface into another table, and a commit that fails on the way leaves it.
    let moved = before.replace("# addresses\n", "set interface ip table loop0 7\n# addresses\n");
    let with_it = lead(&mut router, &engine, &moved, Fault::At(2)).unwrap_err();
    assert!(with_it.to_string().contains("all is as it was"), "{with_it}");
    assert_eq!(apart(&before, &shown(&mut router)), stays);
    lead(&mut router, &engine, &moved, Fault::None).unwrap();
    assert_eq!(apart(&moved, &shown(&mut router)), stays);
    // Without its interface it is not there.
    let of_loop0: String = before
        .lines()
        .filter(|line| !line.contains("instance 1"))
        .fold(String::new(), |text, line| text + line + "\n");
    lead(&mut router, &engine, &of_loop0, Fault::None).unwrap();
    assert!(router.interfaces().by_name("loop1").is_none());
    // Made again by the commit, it is the operator's: the one that had brought it says it again.
    assert_eq!(ip4.addresses(loop0).len(), 2);
}

/// Run with `cargo test --release -p shoal --bins -- --ignored --nocapture how_long`; what it prints is in the guide.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn how_long_a_large_configuration_takes() {
    let mut router = router();
    router.cli("create loopback interface instance 0").unwrap();
    router.cli("set interface ip address loop0 10.0.0.1/24").unwrap();
    let route = |n: usize, hop: usize| {
        format!("ip route add {}.{}.{}.0/24 via 10.0.0.{hop} loop0", 20 + n / 65_536, n / 256 % 256, n % 256)
    };
    for n in 0..10_000 {
        router.cli(&route(n, 2)).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("changes.cli");
    // A third of these changes are new routes, a third other paths, a third routes that go.
    let changes = (0..1_000).map(|n| match n % 3 {
        0 => route(10_000 + n, 3),
        1 => route(n, 3),
        _ => route(n, 2).replacen("add", "del", 1),
    });
    std::fs::write(&file, changes.collect::<Vec<_>>().join("\n")).unwrap();
    let mut timed = |line: &str| {
        let begun = std::time::Instant::now();
        let answer = router.cli(line).unwrap();
        let took = begun.elapsed();
        println!("{line}: {took:.1?}: {}", answer.lines().last().unwrap_or_default());
    };
    timed("show running-config | count");
    timed(&format!("configure load {}", file.display()));
    for _ in 0..3 {
        timed("compare");
    }
    timed("commit check");
    timed("commit");
}
