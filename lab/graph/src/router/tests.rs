//! Routers of scenarios: what they send, and by which nodes.

use super::*;
use crate::scenario;

/// What a scenario sends when each packet visits each node once.
fn sends(name: &str) -> Vec<Vec<u8>> {
    let (sent, counts) = sends_and_counts(name);
    assert!(counts.iter().all(|c| c.vectors == sent.len() as u64), "{counts:?}");
    sent
}

fn sends_and_counts(name: &str) -> (Vec<Vec<u8>>, Vec<Count>) {
    let mut router = Router::new(&scenario::find(name).unwrap()).unwrap();
    let pg = router.control.get::<Pg>().unwrap();
    let sink = pg.attach_sink(router.output).unwrap();
    let mut counts = vec![Count::default(); router.nodes().len()];
    let packets = router.slice(&mut counts);
    router.verify().unwrap();
    let sent = sink.take();
    assert_eq!(sent.len() as u64, packets);
    (sent, counts)
}

#[test]
fn nodes_and_superpath_send_the_same_packets() {
    let (nodes, fused) = (sends("ip4-1-nodes"), sends("ip4-1"));
    assert_eq!(nodes, fused);
    assert_eq!(nodes[0].len(), BYTES);
    assert_eq!(nodes[0][..6], MAC_NEXT_HOP.0);
    assert_eq!(nodes[0][6..12], MAC_OUT.0);
}

#[test]
fn nodes_and_superpath_send_the_same_ip6_packets() {
    let (nodes, fused) = (sends("ip6-1-nodes"), sends("ip6-1"));
    assert_eq!(nodes, fused);
    assert_eq!((nodes[0].len(), nodes[0][21]), (BYTES6, 63));
    assert_eq!(nodes[0][..6], MAC_NEXT_HOP.0);
}

#[test]
fn random_destinations_are_many_and_their_checksums_right() {
    let sent = sends("ip4-65536");
    let networks: std::collections::BTreeSet<&[u8]> = sent.iter().map(|p| &p[30..33]).collect();
    assert!(networks.len() * 10 > sent.len() * 9, "{} networks in {} packets", networks.len(), sent.len());
    assert!(sent.iter().all(|p| shoal_wire::checksum::checksum(&p[14..34]) == 0));
}

#[test]
fn translated_packets_are_of_established_sessions_and_right() {
    let sent = sends("nat44-64k");
    assert_eq!(sent, sends("nat44-64k-nodes"));
    let source = |p: &[u8]| (p[26..30].to_vec(), p[34..36].to_vec(), p[30..34].to_vec());
    assert!(sent.iter().all(|p| p[26..30] == [192, 0, 2, 1]));
    assert!(sent.iter().all(|p| shoal_wire::checksum::checksum(&p[14..34]) == 0));
    let flows: std::collections::BTreeSet<_> = sent.iter().map(|p| source(p)).collect();
    assert_eq!(flows.len(), sent.len(), "two flows share a tuple");
    let nodes = Router::new(&scenario::find("nat44-1-nodes").unwrap()).unwrap().nodes();
    assert!(nodes.iter().any(|n| n == "nat44-ed-in2out"), "{nodes:?}");
    assert!(!nodes.iter().any(|n| n.contains("slowpath")), "{nodes:?}");
}

#[test]
fn a_superpath_translates_as_nodes_do() {
    for (name, taken) in [("cnat-64k", "ip4-cnat-superpath"), ("cnat6-64k", "ip-cnat-superpath")] {
        let sent = sends(name);
        assert_eq!(sent, sends(&format!("{name}-nodes")), "{name}");
        let (at, port) = if sent[0][12] == 8 { (30, 36) } else { (38, 56) };
        let backend: &[u8] = if at == 30 { &natted::BACKEND.octets() } else { &natted::BACKEND6.octets() };
        assert!(sent.iter().all(|p| p[at..].starts_with(backend)), "{name}");
        assert!(sent.iter().all(|p| p[port..port + 2] == 8080_u16.to_be_bytes()), "{name}");
        let nodes = Router::new(&scenario::find(name).unwrap()).unwrap().nodes();
        assert_eq!(nodes, ["pg-input", taken, "pg1-tx"]);
    }
    // Each router draws ports of its own.
    let nodes = Router::new(&scenario::find("nat44-ei-64k").unwrap()).unwrap().nodes();
    assert_eq!(nodes, ["pg-input", "ip4-nat44-ei-superpath", "pg1-tx"]);
    let sent = sends("nat44-ei-64k");
    assert!(sent.iter().all(|p| p[26..29] == [192, 0, 2]));
    let flows: std::collections::BTreeSet<_> = sent.iter().map(|p| (&p[26..30], &p[34..36])).collect();
    assert_eq!(flows.len(), sent.len(), "two flows share a port");
    // So does NAT64.
    let nodes = Router::new(&scenario::find("nat64-64k").unwrap()).unwrap().nodes();
    assert_eq!(nodes, ["pg-input", "ip-nat64-superpath", "pg1-tx"]);
    let sent = sends("nat64-64k");
    assert!(sent.iter().all(|p| p[12..14] == [8, 0] && p[26..29] == [192, 0, 2]));
    assert!(sent.iter().all(|p| shoal_wire::checksum::checksum(&p[14..34]) == 0));
    // And DS-Lite.
    let nodes = Router::new(&scenario::find("dslite-64k").unwrap()).unwrap().nodes();
    assert_eq!(nodes, ["pg-input", "ip-dslite-superpath", "pg1-tx"]);
    let sent = sends("dslite-64k");
    assert!(sent.iter().all(|p| p[12..14] == [8, 0] && p[26..29] == [192, 0, 2]));
    assert!(sent.iter().all(|p| shoal_wire::checksum::checksum(&p[14..34]) == 0));
}

#[test]
fn other_kinds_of_nat_translate_what_they_measure() {
    for (name, node) in [
        ("nat44-ei-64k-nodes", "nat44-ei-in2out"),
        ("det44-64k-nodes", "det44-in2out"),
        ("nat64-64k-nodes", "nat64-in2out"),
        ("dslite-64k-nodes", "dslite-in2out"),
    ] {
        let sent = sends(name);
        assert!(sent.iter().all(|p| p[12..14] == [8, 0] && p[26..29] == [192, 0, 2]), "{name}");
        assert!(sent.iter().all(|p| shoal_wire::checksum::checksum(&p[14..34]) == 0), "{name}");
        let nodes = Router::new(&scenario::find(name).unwrap()).unwrap().nodes();
        assert!(
            nodes.iter().any(|n| n == node) && !nodes.iter().any(|n| n.contains("slowpath")),
            "{nodes:?}"
        );
    }
}

#[test]
fn customers_of_map_send_as_who_they_are() {
    for (name, taken) in [("map-t-64k", "ip-map-t-superpath"), ("map-e-64k", "ip-map-e-superpath")] {
        let mut both = [sends(name), sends(&format!("{name}-nodes"))];
        // The identification is the number of a packet's buffer.
        for packet in both.iter_mut().flatten() {
            packet[18..20].fill(0);
            packet[24..26].fill(0);
        }
        assert_eq!(both[0], both[1], "{name}");
        assert!(both[0].iter().all(|p| p[12..14] == [8, 0] && p[26..29] == [198, 18, 0]), "{name}");
        let nodes = Router::new(&scenario::find(name).unwrap()).unwrap().nodes();
        assert_eq!(nodes, ["pg-input", taken, "pg1-tx"]);
    }
}

#[test]
fn balanced_packets_go_into_tunnels() {
    let (sent, counts) = sends_and_counts("lb-gre4-64k-nodes");
    // The route to the virtual address and the one to the server are looked up by the same node.
    let packets = sent.len() as u64;
    let twice = counts.iter().filter(|c| c.vectors == 2 * packets).count();
    let once = counts.iter().filter(|c| c.vectors == packets).count();
    assert_eq!((twice, once), (1, counts.len() - 1), "{counts:?}");
    assert!(sent.iter().all(|p| p[23] == 47 && p[26..34] == [192, 0, 2, 1, 10, 0, 1, 2] && p.len() == 84));
}

#[test]
fn the_ways_run_the_nodes_they_are_named_for() {
    let names = |name| Router::new(&scenario::find(name).unwrap()).unwrap().nodes();
    assert_eq!(names("ip4-1"), ["pg-input", "ip4-superpath", "pg1-tx"]);
    assert_eq!(names("ip4-1-nodes").len(), 7);
}

#[test]
fn short_frames_are_short() {
    let mut router = Router::new(&scenario::find("ip4-1-vec12").unwrap()).unwrap();
    let mut counts = vec![Count::default(); router.nodes().len()];
    router.slice(&mut counts);
    assert!(counts.iter().all(|c| c.vectors == 12 * c.calls), "{counts:?}");
}
