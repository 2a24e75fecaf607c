//! Packets to containers end at the router.

use std::net::{IpAddr, Ipv4Addr};

use shoal_container_proxy::ContainerProxy;
use shoal_container_proxy::api::API;
use shoal_message::Retval;
use shoal_module::api::ApiPart;
use shoal_testkit::{ApiAsker, PEER, PEER_MAC, PacketBuilder, Port, Router, STACK, api};

const OK: Retval = Retval(0);
static PARTS: &[&ApiPart] = &[&API];

fn router() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_container_proxy::MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    router.set_neighbour(&port, PEER, PEER_MAC);
    (router, port)
}

fn add_del(client: &ApiAsker<'_>, addr: &str, len: u8, interface: u32, add: u8) -> Retval {
    let addr: IpAddr = addr.parse().unwrap();
    let mut bytes = match addr {
        IpAddr::V4(a) => [&[0][..], &a.octets()].concat(),
        IpAddr::V6(a) => [&[1][..], &a.octets()].concat(),
    };
    bytes.resize(17, 0);
    bytes.push(len);
    bytes.extend(interface.to_be_bytes());
    bytes.push(add);
    client.retval("ip_container_proxy_add_del", &bytes)
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(PARTS);
}

#[test]
fn random_bytes_do_no_harm() {
    let (mut router, _) = router();
    api::random_bytes_do_no_harm(&mut router, PARTS, 300);
}

#[test]
fn an_echo_to_a_container_is_answered_here() {
    let (mut router, port) = router();
    let container = Ipv4Addr::new(172, 16, 9, 9);
    let echo =
        PacketBuilder::ethernet(PEER_MAC, port.mac()).ip4(PEER, container).icmp_echo_request(1, 1).build();
    router.send(&port, &echo);
    assert!(port.received().is_empty(), "no container has the address");
    let client = ApiAsker::new(router.control(), PARTS);
    assert_eq!(add_del(&client, "172.16.9.9", 32, port.index().0, 1), OK);
    assert_eq!(add_del(&client, "172.16.9.9", 32, port.index().0, 1), OK);
    router.send(&port, &echo);
    let answer = port.received_one();
    assert_eq!(answer[26..30], container.octets());
    let rows = client.ask("ip_container_proxy_dump", &[]);
    assert_eq!((rows.len(), &rows[0][..4], rows[0][21]), (1, &port.index().0.to_be_bytes()[..], 32));
    assert_eq!(add_del(&client, "172.16.9.9", 32, port.index().0, 0), OK);
    assert_eq!(add_del(&client, "172.16.9.9", 32, port.index().0, 0), OK, "as in VPP");
    router.send(&port, &echo);
    assert!(port.received().is_empty());
}

#[test]
fn prefixes_of_both_families_go_with_their_interface() {
    let (router, port) = router();
    let client = ApiAsker::new(router.control(), PARTS);
    let index = port.index().0;
    assert_eq!(add_del(&client, "172.16.9.9", 24, index, 1), OK);
    assert_eq!(add_del(&client, "2001:db8:9::9", 128, index, 1), OK);
    let proxy = router.get::<ContainerProxy>();
    let told: Vec<String> = proxy.list().iter().map(|(prefix, _)| prefix.to_string()).collect();
    assert_eq!(told, ["172.16.9.0/24", "2001:db8:9::9/128"]);
    router.interfaces().delete(port.index()).unwrap();
    assert!(proxy.list().is_empty());
}

#[test]
fn what_cannot_be_is_refused() {
    let (router, port) = router();
    let client = ApiAsker::new(router.control(), PARTS);
    assert_eq!(add_del(&client, "172.16.9.9", 32, 77, 1), Retval::INVALID_INTERFACE);
    assert_eq!(add_del(&client, "172.16.9.9", 33, port.index().0, 1), Retval::INVALID_PREFIX_LENGTH);
    let proxy = router.get::<ContainerProxy>();
    let error = proxy.remove("172.16.9.9/32".parse().unwrap(), port.index()).unwrap_err().to_string();
    assert_eq!(error, "172.16.9.9/32 behind pg0 is no container's that this router takes packets for");
}
