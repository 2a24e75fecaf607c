//! Commands about neighbours as operators type them: what each one does, what it says about bad input, and that bad input
//! changes nothing.

use std::time::Duration;

use shoal_testkit::{Port, Router};

use crate::lifecycle::router;

/// A router with `pg0`, 10.0.0.1/24 and 2001:db8::1/64, and `pg1`, 10.0.1.1/24; `pg2` has no address.
fn bench() -> (Router, [Port; 3]) {
    let mut router = router();
    let ports = [router.pg(0), router.pg(1), router.pg(2)];
    for line in [
        "set interface ip address pg0 10.0.0.1/24",
        "set interface ip address pg0 2001:db8::1/64",
        "set interface ip address pg1 10.0.1.1/24",
    ] {
        ok(&mut router, line);
    }
    (router, ports)
}

fn ok(router: &mut Router, line: &str) -> String {
    router.cli(line).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// Lines that must be refused, each with words of what the operator reads; what `show` says stays as it was.
fn refused(router: &mut Router, show: &str, lines: &[(&str, &str)]) {
    let before = ok(router, show);
    for (line, words) in lines {
        match router.cli(line) {
            Ok(said) => panic!("`{line}' was taken: {said}"),
            Err(said) => assert!(said.contains(words), "`{line}' said: {said}"),
        }
        assert_eq!(ok(router, show), before, "{line}");
    }
}

#[test]
fn proxy_arp() {
    let (mut router, _) = bench();
    ok(&mut router, "set arp proxy table-ID 0 start 10.0.1.10 end 10.0.1.20");
    ok(&mut router, "set arp proxy start 10.0.1.40 end 10.0.1.40");
    ok(&mut router, "set interface proxy-arp pg0 enable");
    ok(&mut router, "set interface proxy-arp pg1");
    let want = "Proxy arps:\n  table-ID 0  10.0.1.10 - 10.0.1.20\n  table-ID 0  10.0.1.40 - 10.0.1.40\n\
                Proxy arps enabled for:\n  pg0\n  pg1\n";
    assert_eq!(ok(&mut router, "show arp proxy"), want);
    let bad = [
        ("set arp proxy start 10.0.1.20 end 10.0.1.10", "10.0.1.20"),
        ("set arp proxy start 224.0.0.1 end 224.0.0.9", "224.0.0.1"),
        ("set arp proxy start 10.0.1.20", "end"),
        ("set arp proxy start 10.0.1 end 10.0.1.9", "10.0.1"),
        ("set arp proxy start 2001:db8::1 end 2001:db8::2", "2001:db8::1"),
        ("set arp proxy table-ID 7 start 10.0.1.30 end 10.0.1.31", "7"),
        ("set arp proxy del start 10.0.1.11 end 10.0.1.20", "10.0.1.10"),
        ("set arp proxy del table-ID 7 start 10.0.1.10 end 10.0.1.20", "7"),
        ("set interface proxy-arp pg9 enable", "pg9"),
        ("set interface proxy-arp pg0 maybe", "maybe"),
    ];
    refused(&mut router, "show arp proxy", &bad);
    ok(&mut router, "set interface proxy-arp pg1 disable");
    ok(&mut router, "set arp proxy del table-ID 0 start 10.0.1.40 end 10.0.1.40");
    let want = "Proxy arps:\n  table-ID 0  10.0.1.10 - 10.0.1.20\nProxy arps enabled for:\n  pg0\n";
    assert_eq!(ok(&mut router, "show arp proxy"), want);
    ok(&mut router, "set arp proxy del start 10.0.1.10 end 10.0.1.20");
    ok(&mut router, "set interface proxy-arp pg0 disable");
    assert_eq!(ok(&mut router, "show arp proxy"), "");
}

#[test]
fn unnumbered_interfaces() {
    let (mut router, _) = bench();
    ok(&mut router, "set interface unnumbered pg2 use pg0");
    let show = "show interface address";
    assert!(
        ok(&mut router, show).contains("pg2 (up):\n  unnumbered, use pg0\n"),
        "{}",
        ok(&mut router, show)
    );
    let bad = [
        ("set interface unnumbered pg0 use pg1", "pg0"),
        ("set interface unnumbered pg2 use pg2", "itself"),
        ("set interface unnumbered pg2 use pg9", "pg9"),
        ("set interface unnumbered pg9 use pg0", "pg9"),
        ("set interface unnumbered pg2", "use"),
        ("set interface ip table pg2 7", "7"),
    ];
    refused(&mut router, show, &bad);
    // Another lender needs no detour; an interface that is deleted takes what it lent with it.
    ok(&mut router, "set interface unnumbered pg2 use pg1");
    assert!(ok(&mut router, show).contains("unnumbered, use pg1"));
    ok(&mut router, "set interface unnumbered del pg2");
    assert!(!ok(&mut router, show).contains("unnumbered"));
    ok(&mut router, "set interface ip address pg2 10.0.7.1/24");
}

#[test]
fn neighbour_discovery_for_others() {
    let (mut router, _) = bench();
    ok(&mut router, "ip6 nd proxy 2001:db8::50 pg0");
    ok(&mut router, "ip6 nd proxy 2001:db8::50 pg0");
    let show = "show ip6 interface pg0";
    // A router that answers for an address listens where it is asked for.
    assert!(ok(&mut router, show).contains("ff02::1:ff00:50"), "{}", ok(&mut router, show));
    let bad = [
        ("ip6 nd proxy ff02::1 pg0", "ff02::1"),
        ("ip6 nd proxy :: pg0", "::"),
        ("ip6 nd proxy ::1 pg0", "::1"),
        ("ip6 nd proxy 10.0.0.9 pg0", "10.0.0.9"),
        ("ip6 nd proxy 2001:db8::50 pg9", "pg9"),
        ("ip6 nd proxy 2001:db8::50", "interface"),
        ("ip6 nd proxy del 2001:db8::51 pg0", "2001:db8::51"),
        ("ip6 nd proxy del 2001:db8::50 pg1", "pg1"),
    ];
    refused(&mut router, show, &bad);
    ok(&mut router, "ip6 nd proxy del 2001:db8::50 pg0");
    assert!(!ok(&mut router, show).contains("ff02::1:ff00:50"));
}

#[test]
fn addresses_from_routers() {
    let (mut router, ports) = bench();
    ok(&mut router, "ip6 nd address autoconfig pg2 default-route");
    let show = "show ip6 interface pg2";
    let shown = ok(&mut router, show);
    assert!(shown.contains("router advertisements are suppressed"), "{shown}");
    let bad = [
        ("ip6 nd address autoconfig pg9", "pg9"),
        ("ip6 nd address autoconfig pg0 disable", "pg0"),
        ("ip6 nd address autoconfig local0", "local0"),
        ("ip6 nd address autoconfig pg2 sometimes", "sometimes"),
        ("ip6 nd address autoconfig", "interface"),
    ];
    router.advance(Duration::from_mins(1));
    refused(&mut router, show, &bad);
    let frames = ports[2].received();
    assert!(frames.iter().any(|f| f[20] == 58 && f[54] == 133), "routers are asked");
    assert!(!frames.iter().any(|f| f[20] == 58 && f[54] == 134), "and none is played");
    ok(&mut router, "ip6 nd address autoconfig pg2");
    ok(&mut router, "ip6 nd address autoconfig pg2 disable");
    assert!(!ok(&mut router, show).contains("router advertisements are suppressed"));
}

#[test]
fn limits_of_the_neighbour_tables() {
    let (mut router, _) = bench();
    let show = "show ip neighbor-config";
    let limits = "ip4:\n  limit:50000, age:0, recycle:0\nip6:\n  limit:50000, age:0, recycle:0\n";
    assert_eq!(ok(&mut router, show), limits);
    let bad = [
        ("set ip neighbor-config limit 10", "ip4"),
        ("set ip neighbor-config ip4 limit", "limit"),
        ("set ip neighbor-config ip4 limit -1", "-1"),
        ("set ip neighbor-config ip4 limit 4294967296", "4294967296"),
        ("set ip neighbor-config ip4 age never", "never"),
        ("set ip neighbor-config ip4 recycle norecycle", "exclude"),
        ("set ip neighbor-config ip5 limit 10", "ip5"),
    ];
    refused(&mut router, show, &bad);
    ok(&mut router, "set ip neighbor-config ip4 limit 3 age 300 recycle");
    ok(&mut router, "set ip neighbor-config ip6 limit 2 interface-limit 1");
    let want = "ip4:\n  limit:3, age:300, recycle:1\nip6:\n  limit:2, age:0, recycle:0, interface-limit:1\n";
    assert_eq!(ok(&mut router, show), want);
    // A full table refuses, or makes room where it was told to.
    for n in 2..=4 {
        ok(&mut router, &format!("set ip neighbor pg0 10.0.0.{n} 02:fe:00:00:00:0{n}"));
    }
    ok(&mut router, "set ip neighbor pg0 10.0.0.5 02:fe:00:00:00:05");
    let shown = ok(&mut router, "show ip4 neighbors");
    assert!(shown.contains("10.0.0.5") && !shown.contains("10.0.0.2 "), "{shown}");
    ok(&mut router, "set ip neighbor pg0 2001:db8::2 02:fe:00:00:00:02");
    refused(&mut router, "show ip6 neighbors", &[("set ip neighbor pg0 2001:db8::3 02:fe:00:00:00:03", "1")]);
    ok(&mut router, "set ip neighbor-config ip6 limit 0 interface-limit 0");
    ok(&mut router, "set ip neighbor pg0 2001:db8::3 02:fe:00:00:00:03");
}
