//! What Linux is told to route, bridge or translate, as commands and texts.

use std::fmt::Write as _;

use shoal_lab_plan::{Family, Forwarding, Nat, Scenario, Side};

use crate::device_environment::Namespace;
use crate::line::Line;
use crate::routes::{Route, extra, side, taken};
use crate::wires::{mac, name};

/// What Linux does between the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// IPv4 and IPv6 routing.
    Route,
    /// Bridging.
    Bridge,
    /// Routing with source NAT by nftables.
    Nft,
    /// Routing with source NAT by iptables.
    Iptables,
}

/// How long a session of UDP lives: longer than any test, in seconds.
const UDP_TIMEOUT: u32 = 3600;
/// Sessions that the machine's table should hold; every namespace has its share of the same one.
pub(crate) const SESSIONS: u32 = 1 << 22;
/// So that learnt addresses do not age within a test: hundredths of a second, 11 days.
const AGEING: u32 = 100_000_000;

impl Role {
    /// As users write it.
    pub const fn device(self) -> &'static str {
        match self {
            Role::Route => "linux-route",
            Role::Bridge => "linux-bridge",
            Role::Nft => "linux-nft",
            Role::Iptables => "linux-iptables",
        }
    }

    /// What it can do, in the words of [`Forwarding::name`].
    pub const fn forwarding(self) -> &'static str {
        match self {
            Role::Route => "route",
            Role::Bridge => "bridge",
            Role::Nft | Role::Iptables => "snat",
        }
    }

    /// Programs it needs beside those of the wires, with their packages.
    pub const fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Role::Route | Role::Bridge => &[],
            Role::Nft => &[("nft", "nftables")],
            Role::Iptables => &[("iptables-restore", "iptables")],
        }
    }

    /// Whether it keeps a table of sessions.
    pub const fn tracks(self) -> bool {
        matches!(self, Role::Nft | Role::Iptables)
    }
}

/// A command that only a kernel with what the role needs can do, for a namespace without interfaces.
pub(crate) fn trial(role: Role, at: &Namespace) -> Line {
    match role {
        Role::Route => at.exec("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"),
        Role::Bridge => at.ip("link add bridge0 type bridge"),
        Role::Nft => at.exec("nft").arg(
            "add table ip lab; add chain ip lab post { type nat hook postrouting priority 100; }; \
             add rule ip lab post oifname right snat to 192.0.2.1-192.0.2.2",
        ),
        Role::Iptables => {
            at.exec("iptables -w -t nat -A POSTROUTING -o right -j SNAT --to-source 192.0.2.1-192.0.2.2")
        }
    }
}

/// Commands after the wires are there; routes follow by [`batch`].
pub(crate) fn set_up(role: Role, at: &Namespace, scenario: &Scenario) -> Vec<Line> {
    if role == Role::Bridge {
        let mut lines =
            vec![at.ip(format!(
                "link add bridge0 type bridge ageing_time {AGEING} mcast_snooping 0 stp_state 0"
            ))];
        // The bridge itself is no host: without IPv6 it says nothing.
        lines.push(at.exec("sysctl -qw net.ipv6.conf.all.disable_ipv6=1"));
        lines.extend(Side::BOTH.map(|port| at.ip(format!("link set {} master bridge0", name(port)))));
        lines.push(at.ip(format!("link set bridge0 mtu {} up", scenario.mtu)));
        return lines;
    }
    let mut lines = vec![at.exec(
        "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 \
         net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
         net.ipv4.conf.left.rp_filter=0 net.ipv4.conf.right.rp_filter=0 \
         net.ipv4.conf.all.send_redirects=0",
    )];
    for port in Side::BOTH {
        let (own, name) = (side(scenario, port), name(port));
        lines.push(at.ip(format!("addr replace {}/{} dev {name}", own.device4, own.length4)));
        lines.push(at.ip(format!("addr replace {}/{} dev {name} nodad", own.device6, own.length6)));
    }
    lines.extend(neighbours(at, scenario));
    if role.tracks() {
        lines.push(at.exec(format!(
            "sysctl -qw net.netfilter.nf_conntrack_udp_timeout={UDP_TIMEOUT} \
             net.netfilter.nf_conntrack_udp_timeout_stream={UDP_TIMEOUT}"
        )));
    }
    lines
}

/// The bridge forgets what it has learnt; its own addresses stay.
pub(crate) fn forget_addresses(at: &Namespace) -> Line {
    at.ip("link set bridge0 type bridge fdb_flush")
}

/// The tester as a neighbour that never has to be asked for.
pub(crate) fn neighbours(at: &Namespace, scenario: &Scenario) -> Vec<Line> {
    let mut lines = Vec::new();
    for port in Side::BOTH {
        let (own, name) = (side(scenario, port), name(port));
        let mac = mac(own.tester_mac);
        for address in [own.tester4.to_string(), own.tester6.to_string()] {
            lines.push(at.ip(format!("neigh replace {address} lladdr {mac} dev {name} nud permanent")));
        }
    }
    lines
}

/// All routes as a file for `ip -batch`: one process sets a million.
pub(crate) fn batch(scenario: &Scenario) -> String {
    let mut text = String::new();
    let all =
        taken(scenario).into_iter().chain(extra(scenario, Family::Ip4)).chain(extra(scenario, Family::Ip6));
    for Route { to, length, via, out } in all {
        // Writing into a string does not fail.
        let _ = writeln!(text, "route replace {to}/{length} via {via} dev {}", name(out));
    }
    text
}

/// The file of the NAT's rules and the command that puts them in force, in place of those before.
pub(crate) fn nat_rules(role: Role, nat: &Nat) -> (&'static str, &'static str, String) {
    let pool =
        if nat.first == nat.last { nat.first.to_string() } else { format!("{}-{}", nat.first, nat.last) };
    match role {
        Role::Iptables => (
            "rules.iptables",
            "iptables-restore",
            format!(
                "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -o right -j SNAT --to-source {pool}\nCOMMIT\n"
            ),
        ),
        _ => (
            "rules.nft",
            "nft -f",
            format!(
                "flush ruleset\ntable ip lab {{\n  chain post {{\n    type nat hook postrouting priority srcnat; \
                 policy accept;\n    oifname \"right\" snat to {pool}\n  }}\n}}\n"
            ),
        ),
    }
}

/// The pool of a scenario, if it has one.
pub(crate) fn pool(scenario: &Scenario) -> Option<&Nat> {
    match &scenario.forwarding {
        Forwarding::Snat(nat) => Some(nat),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::routes::tests::scenario;

    fn told(lines: Vec<Line>) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    fn at() -> Namespace {
        Namespace { name: "n".to_owned() }
    }

    #[test]
    fn a_router_forwards_both_families_and_knows_the_tester() {
        let lines = told(set_up(Role::Route, &at(), &scenario()));
        assert!(
            lines[0].contains("ip_forward=1")
                && lines[0].contains("ipv6.conf.all.forwarding=1")
                && lines[0].contains("all.rp_filter=0")
        );
        for line in [
            "ip -n n addr replace 198.18.0.1/24 dev left",
            "ip -n n addr replace 2001:2:0:8000::1/64 dev right nodad",
            "ip -n n neigh replace 198.19.0.2 lladdr 02:00:00:00:5a:02 dev right nud permanent",
            "ip -n n neigh replace 2001:2::2 lladdr 02:00:00:00:5a:01 dev left nud permanent",
        ] {
            assert!(lines.contains(&line.to_owned()), "{line} is not in {lines:#?}");
        }
        assert!(!lines.iter().any(|l| l.contains("conntrack")));
    }

    #[test]
    fn a_bridge_has_no_addresses_and_does_not_forget() {
        let lines = told(set_up(Role::Bridge, &at(), &scenario()));
        assert_eq!(
            lines[0],
            "ip -n n link add bridge0 type bridge ageing_time 100000000 mcast_snooping 0 stp_state 0"
        );
        assert!(!lines.iter().any(|l| l.contains("addr") || l.contains("neigh")), "{lines:#?}");
    }

    #[test]
    fn routes_come_in_one_file_for_both_families() {
        let text = batch(&Scenario { networks: 2, routes: 2, ..scenario() });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "route replace 198.18.1.0/24 via 198.18.0.2 dev left",
                "route replace 2001:2:0:1::/64 via 2001:2::2 dev left",
                "route replace 198.19.1.0/24 via 198.19.0.2 dev right",
                "route replace 2001:2:0:8001::/64 via 2001:2:0:8000::2 dev right",
                "route replace 20.0.0.0/24 via 198.19.0.2 dev right",
                "route replace 20.0.1.0/24 via 198.18.0.2 dev left",
                "route replace 2a00::/48 via 2001:2:0:8000::2 dev right",
                "route replace 2a00:0:1::/48 via 2001:2::2 dev left",
            ]
        );
    }

    #[test]
    fn a_pool_is_one_address_or_a_range() {
        let nat = |last| Nat { first: Ipv4Addr::new(203, 0, 113, 1), last: Ipv4Addr::new(203, 0, 113, last) };
        assert!(nat_rules(Role::Nft, &nat(9)).2.contains("snat to 203.0.113.1-203.0.113.9\n"));
        assert!(nat_rules(Role::Nft, &nat(1)).2.contains("snat to 203.0.113.1\n"));
        assert_eq!(
            nat_rules(Role::Iptables, &nat(9)).2,
            "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -o right -j SNAT --to-source 203.0.113.1-203.0.113.9\nCOMMIT\n"
        );
    }

    #[test]
    fn only_a_nat_has_session_timeouts() {
        assert!(
            told(set_up(Role::Nft, &at(), &scenario()))
                .iter()
                .any(|l| l.contains("nf_conntrack_udp_timeout_stream=3600"))
        );
    }
}
