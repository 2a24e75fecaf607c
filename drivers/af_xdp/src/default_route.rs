//! Does an interface carry the host's default route? Then a router that takes it may cut the machine off.

/// Whether a default route of either family leads out of `name`, in the network namespace of the calling thread.
pub(crate) fn is_on(name: &str) -> bool {
    let read = |file| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    in_ip4(&read("route"), name) || in_ip6(&read("ipv6_route"), name)
}

/// Lines of `/proc/net/route`: interface, destination, gateway, flags, ..., mask in the eighth place.
fn in_ip4(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.first() == Some(&name) && words.get(1) == Some(&"00000000") && words.get(7) == Some(&"00000000")
    })
}

/// Lines of `/proc/net/ipv6_route`: destination, its length, ..., interface last.
fn in_ip6(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.last() == Some(&name)
            && words.get(1) == Some(&"00")
            && words.first().is_some_and(|to| to.bytes().all(|b| b == b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_of_both_families_are_found_and_others_are_not() {
        let ip4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                   eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                   eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        assert!(in_ip4(ip4, "eth0") && !in_ip4(ip4, "eth1") && !in_ip4(ip4, "eth") && !in_ip4("", "eth0"));
        let zero = "0".repeat(32);
        let ip6 = format!(
            "{zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n\
             20010db8000000000000000000000000 20 {zero} 00 {zero} 00000100 00000001 00000000 00000001     eth1\n"
        );
        assert!(in_ip6(&ip6, "eth0") && !in_ip6(&ip6, "eth1"));
    }
}
