//! Namespaces, where the machine allows them.

use shoal_testkit::netns::{Namespace, Veth, command};
use shoal_testkit::skip;

#[test]
fn hosts_and_cables_come_and_go() {
    let host = match Namespace::new("kit") {
        Ok(host) => host,
        Err(e) => skip!("hosts_and_cables_come_and_go: no network namespaces: {e}"),
    };
    let cable = format!("kit{}", std::process::id());
    let pair = match Veth::new(&cable, &host, "eth0") {
        Ok(pair) => pair,
        Err(e) => skip!("hosts_and_cables_come_and_go: no veth pairs: {e}"),
    };
    host.address("eth0", "10.9.0.2/24").unwrap();
    host.route("default", "10.9.0.1").unwrap();
    assert!(host.run(&["ip", "route"]).unwrap().contains("default via 10.9.0.1"));
    assert!(host.run(&["false"]).unwrap_err().contains("exit status: 1"));
    let name = host.name().to_owned();
    drop((pair, host));
    assert!(command(&["ip", "link", "show", &cable]).is_err());
    assert!(!command(&["ip", "netns"]).unwrap().contains(&name));
}
