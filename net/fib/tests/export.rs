//! Attached export: a table that leads to another table's link knows that link's hosts.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::router;

use router::{Router, ip, prefix, router};
use shoal_adj::{Adj, AdjKind};
use shoal_fib::{Family, FibIndex, Path, Source, Via};
use shoal_interface::SwIfIndex;

const ETH1: SwIfIndex = SwIfIndex(1);
const ETH2: SwIfIndex = SwIfIndex(2);
const MAIN: FibIndex = FibIndex::DEFAULT;

/// A family's words: network, narrower and other network, this router, neighbours.
struct Words {
    family: Family,
    net: &'static str,
    narrow: &'static str,
    us: &'static str,
    near: &'static str,
    far: &'static str,
}

const BOTH: [Words; 2] = [
    Words {
        family: Family::Ip4,
        net: "10.0.0.0/24",
        narrow: "10.0.0.0/28",
        us: "10.0.0.1",
        near: "10.0.0.2",
        far: "10.0.0.77",
    },
    Words {
        family: Family::Ip6,
        net: "2001:db8::/64",
        narrow: "2001:db8::/120",
        us: "2001:db8::1",
        near: "2001:db8::2",
        far: "2001:db8::77:2",
    },
];

fn with_tables() -> (Router, FibIndex) {
    let router = router(2);
    let mut index = MAIN;
    for family in Family::ALL {
        let incomplete = |interface, _, _| Adj::on(AdjKind::Incomplete, interface, 1500);
        router.adjacencies.set_describe(family, std::rc::Rc::new(incomplete));
        index = router.fib.add_table(family, 10, None).unwrap();
    }
    (router, index)
}

fn attached(interface: SwIfIndex, source: &str) -> Path {
    Via::Attached { interface, source: ip(source) }.into()
}

fn host(addr: &str) -> shoal_wire::IpPrefix {
    shoal_wire::IpPrefix::host(ip(addr))
}

/// What an address and a neighbour protocol do.
fn connect(router: &Router, words: &Words) {
    let local = Via::Local { interface: Some(ETH1), address: ip(words.us) };
    let add = |prefix, source, path: Path| router.fib.add(MAIN, prefix, source, &[path]).unwrap();
    add(prefix(words.net), Source::Interface, attached(ETH1, words.us));
    add(host(words.us), Source::Interface, local.into());
    for neighbour in [words.near, words.far] {
        add(host(neighbour), Source::Adjacency, Path::next_hop(ip(neighbour), ETH1));
    }
}

#[test]
fn hosts_of_the_link_are_known_in_the_other_table_and_go_with_the_route() {
    for words in BOTH {
        let (router, other) = with_tables();
        let before = router.locks();
        connect(&router, &words);
        let locks = router.locks();
        router.fib.add(other, prefix(words.net), Source::Cli, &[attached(ETH1, words.us)]).unwrap();
        let way = |addr: &str| router.way_in(other, addr);
        assert!(way(words.us).starts_with("Local"), "{}", way(words.us));
        assert_eq!(way(words.near), format!("Incomplete 1 {}", words.near));
        assert_eq!(way(words.far), format!("Incomplete 1 {}", words.far));
        let entry = router.fib.entry(other, host(words.near)).unwrap();
        assert_eq!(entry.lists[0].source.name(), "attached-export");
        assert_eq!(router.fib.check(), Vec::<String>::new());
        router.fib.remove(other, prefix(words.net), Source::Cli).unwrap();
        assert_eq!((way(words.near), way(words.us)), ("None".into(), "None".into()));
        assert_eq!(router.locks(), locks);
        for (gone, source) in [(words.us, Source::Interface), (words.near, Source::Adjacency)] {
            router.fib.remove(MAIN, host(gone), source).unwrap();
        }
        router.fib.remove(MAIN, host(words.far), Source::Adjacency).unwrap();
        router.fib.remove(MAIN, prefix(words.net), Source::Interface).unwrap();
        assert_eq!(router.locks(), before);
        assert_eq!(router.fib.check(), Vec::<String>::new());
    }
}

#[test]
fn hosts_that_come_and_go_later_are_followed() {
    for words in BOTH {
        let (router, other) = with_tables();
        router.fib.add(other, prefix(words.narrow), Source::Cli, &[attached(ETH1, words.us)]).unwrap();
        connect(&router, &words);
        let way = |addr: &str| router.way_in(other, addr);
        assert_eq!(way(words.near), format!("Incomplete 1 {}", words.near));
        assert_eq!(way(words.far), "None", "outside of the route");
        // An operator knows better in the link's own table: then it is not the link that is copied.
        router.fib.add(MAIN, host(words.near), Source::Cli, &[Via::Drop.into()]).unwrap();
        assert!(way(words.near).starts_with("Glean 1"));
        router.fib.remove(MAIN, host(words.near), Source::Cli).unwrap();
        assert_eq!(way(words.near), format!("Incomplete 1 {}", words.near));
        // And in the other one, where the copy waits.
        router.fib.add(other, host(words.near), Source::Cli, &[Via::Drop.into()]).unwrap();
        assert!(way(words.near).starts_with("Drop"));
        router.fib.remove(MAIN, host(words.near), Source::Adjacency).unwrap();
        router.fib.remove(other, host(words.near), Source::Cli).unwrap();
        assert!(way(words.near).starts_with("Glean 1"), "the neighbour has gone meanwhile");
        assert_eq!(router.fib.check(), Vec::<String>::new());
    }
}

#[test]
fn nothing_is_copied_from_other_links_or_by_other_routes() {
    for words in BOTH {
        let (router, other) = with_tables();
        connect(&router, &words);
        let via = |path: Path| router.fib.add(other, prefix(words.net), Source::Cli, &[path]).unwrap();
        let plain = |addr: &str| router.fib.entry(other, host(addr)).is_err();
        via(attached(ETH2, words.us));
        assert!(plain(words.near) && plain(words.us), "another link");
        via(Path::next_hop(ip(words.near), ETH1));
        assert!(plain(words.near) && plain(words.us), "a neighbour, not a link");
        via(attached(ETH1, words.us));
        assert!(!plain(words.near));
        via(Via::Lookup(MAIN).into());
        assert!(plain(words.near), "the other table is asked itself");
        assert_eq!(router.fib.check(), Vec::<String>::new());
    }
}

#[test]
fn routes_that_overlap_share_a_copy_and_tables_take_theirs_along() {
    for words in BOTH {
        let (router, other) = with_tables();
        connect(&router, &words);
        let locks = router.locks();
        for net in [words.net, words.narrow] {
            router.fib.add(other, prefix(net), Source::Cli, &[attached(ETH1, words.us)]).unwrap();
        }
        router.fib.remove(other, prefix(words.narrow), Source::Cli).unwrap();
        assert_eq!(router.way_in(other, words.near), format!("Incomplete 1 {}", words.near));
        router.fib.del_table(words.family, 10).unwrap();
        assert_eq!(router.fib.check(), Vec::<String>::new());
        assert_eq!(router.locks(), locks);
    }
}

#[test]
fn an_interface_that_moves_to_another_table_or_goes_is_followed() {
    for words in BOTH {
        let (router, other) = with_tables();
        let (third, words) = (router.fib.add_table(words.family, 11, None).unwrap(), &words);
        router.fib.add(other, prefix(words.net), Source::Cli, &[attached(ETH1, words.us)]).unwrap();
        connect(&router, words);
        let set = |fib: FibIndex| match words.family {
            Family::Ip4 => router.interfaces.set_ip4(ETH1, true, fib.0).unwrap(),
            Family::Ip6 => router.interfaces.set_ip6(ETH1, true, fib.0).unwrap(),
        };
        set(other);
        assert!(router.fib.entry(other, host(words.near)).is_err(), "it is the link's own table now");
        assert_eq!(router.fib.check(), Vec::<String>::new());
        set(third);
        let path = [Path::next_hop(ip(words.far), ETH1)];
        router.fib.add(third, host(words.far), Source::Adjacency, &path).unwrap();
        assert_eq!(router.way_in(other, words.far), format!("Incomplete 1 {}", words.far));
        set(MAIN);
        assert_eq!(router.way_in(other, words.near), format!("Incomplete 1 {}", words.near));
        assert_eq!(router.fib.check(), Vec::<String>::new());
        router.interfaces.delete(ETH1).unwrap();
        assert_eq!(router.way_in(other, words.near), "None");
        assert_eq!(router.fib.check(), Vec::<String>::new());
    }
}
