//! Every command that changes the router is in `show running-config` afterwards, or in the guide's list of those that are not.

use std::collections::BTreeSet;

use crate::running::{rebuilt, router, shown};

/// Lines that are run one after the other; each changes what is configured.
pub(crate) const LINES: &[&str] = &[
    "create loopback interface",
    "loopback create-interface",
    "create loopback interface instance 2",
    "create loopback interface instance 3",
    "loopback delete-interface intfc loop3",
    "delete loopback interface intfc loop2",
    "create sub-interfaces loop0 100-101",
    "create sub-interfaces loop0 7 dot1ad 10 inner-dot1q 20 exact-match",
    "create sub-interfaces loop0 8 dot1q 10 inner-dot1q any",
    "create sub-interfaces loop1 9 default",
    "create sub-interfaces loop1 10 untagged",
    "delete sub-interface loop0.101",
    "delete sub-interface loop1.10",
    "create packet-generator interface pg0",
    "create packet-generator interface pg1",
    "delete packet-generator interface pg1",
    "packet-generator mac-filter pg0 on",
    "bvi create instance 3",
    "bvi create mac 02:00:00:00:00:33 instance 4",
    "bvi delete bvi4",
    "create packet-generator interface pg2",
    "create packet-generator interface pg3",
    "create packet-generator interface pg4",
    "create worker",
    "create worker",
    "delete worker vpp_wk_1",
    "ip table add 7",
    "ip6 table add 7",
    "set interface ip table loop1 7",
    "set interface ip6 table loop1 7",
    "set interface ip address loop0 10.0.0.1/24",
    "set interface ip address loop0 2001:db8::1/64",
    "enable ip4 interface loop1",
    "disable ip4 interface loop1",
    "enable ip6 interface loop1",
    "disable ip6 interface loop1",
    "enable ip6 interface loop0",
    "set ip6 link-local address loop0 fe80::77",
    "abf policy add id 1 ip4 src 10.0.0.0/8 via 10.0.0.2 loop0",
    "abf attach ip4 policy 1 priority 5 loop0",
    "adjacency counters enable",
    "create memif socket id 9 filename /tmp/shoal-saved-9.sock",
    "delete memif socket id 9",
    "igmp enable host loop0",
    "igmp listen enable int loop0 saddr 192.0.2.1 gaddr 232.1.1.2",
    "igmp enable router pg0",
    "igmp proxy-dev add vrf-id 0 loop0",
    "igmp proxy-dev itf add vrf-id 0 pg0",
    "igmp ssm-range add 239.232.0.0/16",
    "ip mroute add 232.1.1.1/32 via local Forward via loop0 Accept",
    "ip neighbor loop0 10.0.0.2 02:fe:00:00:00:02",
    "set ip neighbor loop0 2001:db8::2 02:fe:00:00:00:02",
    "set ip neighbor loop0 10.0.0.3 02:fe:00:00:00:02 static",
    "ip punt policer add rate 10000 burst 77",
    "ip6 punt policer add rate 10000 burst 77",
    "ip punt redirect add rx all via 10.0.0.9",
    "ip6 punt redirect add rx all via 2001:db8::2",
    "ip route add 20.0.0.0/8 via 10.0.0.9",
    "ip route add 2a00::/16 via 2001:db8::9",
    "ip route add 21.0.0.0/8 via dvr loop1",
    "ip route add 2a10::/16 via dvr loop1",
    "ip6 nd loop0 ra-interval 1800 30 ra-lifetime 1800",
    "ip6 nd address autoconfig loop0 default-route",
    "ip6 nd proxy 2001:db8:1::9 loop0",
    "lcp default netns dataplane",
    "lcp lcp-sync on",
    "lcp lcp-sync-unnumbered off",
    "lcp ethertype enable 0x88f7",
    "lcp lcp-auto-subint on",
    "lcp osi-proto enable 0x83",
    "set arp proxy start 10.0.1.10 end 10.0.1.20",
    "set handoff default auto",
    "set interface collect-detailed-stats loop0 enable",
    "set interface feature pg0 ip4-sv-reassembly-output-feature arc ip4-output",
    "set interface feature gso loop0 enable",
    "set interface handoff loop0 auto",
    "set interface ip directed-broadcast loop0 enable",
    "set interface mac address loop0 02:fe:00:00:00:99",
    "set interface mtu 1400 loop0",
    "set interface promiscuous on loop0",
    "set interface proxy-arp loop0 enable",
    "set interface reassembly loop0 on",
    "set interface sv-reassembly loop0 on",
    "set interface ip6-nd proxy loop0 enable",
    "set interface source-limit loop0 rate 10 burst 20",
    "nat44 plugin enable sessions 5000",
    "set interface nat44 in loop0 out loop1",
    "set interface nat44 out pg0 output-feature",
    "nat44 add address 192.0.2.10 - 192.0.2.12",
    "nat44 add address 192.0.2.20 tenant-vrf 7 twice-nat",
    "nat44 add address 192.0.2.12 del",
    "nat44 add interface address loop1 twice-nat",
    "nat44 add interface address loop1",
    "set nat44 mapping endpoint-independent address 192.0.2.10 - 192.0.2.11 filtering address-dependent",
    "set nat44 mapping endpoint-independent interface loop1",
    "nat44 add static mapping tcp local 10.0.0.5 80 external 192.0.2.10 8080 twice-nat",
    "nat44 add static mapping udp local 10.0.0.5 53 external loop0 53",
    "nat44 add static mapping local 10.0.0.6 external 192.0.2.11",
    "nat44 add identity mapping 10.0.0.8 tcp 22",
    "nat44 add identity mapping external loop0 udp 500",
    "nat44 add load-balancing static mapping protocol tcp external 192.0.2.10:443 local 10.0.0.5:443 probability 60 local 10.0.0.6:443 probability 40 affinity 30",
    "nat44 add load-balancing back-end protocol tcp external 192.0.2.10:443 local 10.0.0.7:443 probability 20",
    "nat44 vrf table add 7",
    "nat44 vrf route add table 7 9",
    "nat mss-clamping 1400",
    "set nat timeout udp 200 icmp 30",
    "set nat44 session limit 500",
    "nat ipfix logging domain 3 src-port 4740",
    "nat44 forwarding enable",
    "set dhcp proxy server 192.0.2.9 src-address 192.0.2.1",
    "set dhcp proxy server 192.0.2.10 src-address 192.0.2.1 server-fib-id 7 rx-fib-id 7",
    "set dhcpv6 proxy server 2001:db8::9 src-address 2001:db8::1",
    "set dhcp option-82 vss table 7 vpn-ascii-id customer",
    "set dhcpv6 vss table 7 oui 4 vpn-id 1",
    "set dhcp client intfc loop1 hostname gw client-id me broadcast dscp 46",
    "nat44 ei plugin enable sessions 5000 users 100 user-sessions 50 outside-vrf 7",
    "set interface nat44 ei in loop0 out loop1",
    "nat44 ei add address 192.0.2.110 - 192.0.2.112",
    "nat44 ei add address 192.0.2.113 tenant-vrf 7",
    "nat44 ei add address 192.0.2.112 del",
    "nat44 ei add interface address loop1",
    "nat44 ei add static mapping tcp local 10.0.0.5 80 external 192.0.2.110 8080",
    "nat44 ei add static mapping udp local 10.0.0.5 53 external loop1 53 vrf 7",
    "nat44 ei add static mapping local 10.0.0.6 external 192.0.2.111",
    "nat44 ei add identity mapping 192.0.2.111 tcp 22",
    "nat44 ei addr-port-assignment-alg map-e psid 10 psid-offset 6 psid-len 6 rfc7597",
    "nat44 ei exempt 198.51.100.0/24",
    "nat44 ei mss-clamping 1400",
    "nat44 ei ipfix logging domain 4",
    "nat44 ei ha listener 192.0.2.1:12345 path-mtu 600",
    "nat44 ei ha failover 192.0.2.2:12345 refresh-interval 20",
    "set nat44 ei timeout udp 200 icmp 30",
    "nat44 ei forwarding enable",
    "nat44 ei user-limit drop",
    "det44 plugin enable inside vrf 7",
    "set det44 timeouts udp 100 tcp established 7000",
    "det44 add in 10.44.0.0/24 out 192.0.2.80/30",
    "set interface det44 inside loop0 outside loop1",
    "nat64 plugin enable bib-buckets 64 st-buckets 128",
    "set nat64 timeouts udp 100",
    "set interface nat64 in loop0",
    "set interface nat64 out loop1",
    "nat64 add interface address loop1",
    "nat64 add pool address 192.0.2.64 - 192.0.2.65",
    "nat64 add pool address 192.0.2.66 tenant-vrf 7",
    "nat64 add prefix 2001:db8:64::/96",
    "nat64 add static bib 2001:db8::5 80 192.0.2.64 8080 tcp",
    "nat66 plugin enable outside-vrf 7",
    "set interface nat66 in loop0 out loop1",
    "nat66 add static mapping local fd00::5 external 2001:db8:f::5",
    "nat66 add static mapping local fd00::6 external 2001:db8:f::6 vrf 7",
    "set npt66 binding interface loop0 internal fd01:203:405::/48 external 2001:db8:1::/48",
    "set pnat translation interface loop0 match src 10.0.0.5 proto UDP dport 53 rewrite src 192.0.2.5 dport 5353 out",
    "set pnat translation interface loop0 match dst 192.0.2.5 rewrite dst 10.0.0.5 copy byte at offset 1 to 2 clear byte at offset 3 in",
    "map add domain tag east ip4-pfx 198.18.0.0/24 ip6-pfx 2001:db8:f0::/48 ip6-src 2001:db8:ffff::1/128 ea-bits-len 12 psid-offset 6 psid-len 4 mtu 1500",
    "map add domain ip4-pfx 198.18.9.1/32 ip6-pfx 2001:db8:f1::/48 ip6-src 2001:db8:ffff::1/128 psid-offset 6 psid-len 4",
    "map add domain ip4-pfx 198.18.8.1/32 ip6-pfx 2001:db8:f2::/48 ip6-src 2001:db8:ffff::1/128",
    "map del domain index 2",
    "map add rule index 1 psid 3 ip6-dst 2001:db8:77::1",
    "map interface loop0 map-t",
    "map params fragment inner ignore-df",
    "map params icmp source-address 192.0.2.1",
    "map params icmp6 unreachables on",
    "map params pre-resolve ip4-nh 10.0.0.9 ip6-nh 2001:db8::9",
    "map params security-check enable fragments on",
    "map params tcp-mss 1300",
    "map params traffic-class 32",
    "dslite add pool address 192.0.2.40 - 192.0.2.42",
    "dslite add pool address 192.0.2.41 del",
    "dslite set aftr-tunnel-endpoint-address 2001:db8:a::1",
    "dhcp6 duid 00030001020000000077",
    "dhcp6 client loop1",
    "dhcp6 pd client loop1 prefix group isp",
    "set ip6 address loop0 prefix group isp ::7:0:0:0:1/64",
    "lb conf ip4-src-address 192.0.2.77 timeout 50 buckets 2048",
    "lb vip 198.18.80.1/32 protocol tcp port 80 encap nat4 type clusterip target_port 8080 new_len 256",
    "lb vip 198.18.80.2/32 encap l3dsr dscp 7 src_ip_sticky",
    "lb as 198.18.80.1/32 protocol tcp port 80 10.0.0.81 10.0.0.82",
    "lb as 198.18.80.1/32 protocol tcp port 80 10.0.0.81 del",
    "lb set interface nat4 in loop0",
    "vrrp vr add loop0 vr_id 7 priority 120 interval 300 no_preempt accept_mode unicast 10.0.0.77",
    "vrrp vr add loop0 vr_id 7 ipv6 fe80::78 2001:db8::78",
    "vrrp vr add loop0 vr_id 9 10.0.0.79",
    "vrrp vr del loop0 vr_id 9",
    "vrrp peers loop0 vr_id 7 10.0.0.8 10.0.0.9",
    "vrrp vr track-if add loop0 vr_id 7 loop1 priority 20",
    "vrrp vr track-route add loop0 vr_id 7 198.18.0.0/15 priority 30",
    "vrrp proto start loop0 vr_id 7",
    "session-sync timers hello 50 dead 200 refresh 30",
    "session-sync role vrrp loop0 vr_id 7 ipv6",
    "session-sync peer 192.0.2.9 local 192.0.2.1 no-authentication",
    "session-sync peer del",
    "session-sync peer 2001:db8::2 local 2001:db8::1 port 8791 key 000102030405060708090a0b0c0d0e0f",
    "lb set interface nat6 in loop0",
    "cnat translation add proto TCP vip 198.18.81.1 80 lb maglev to 10.0.0.9 7->10.0.0.81 8080 to ->10.0.0.82 8080 no-nat",
    "cnat translation add proto UDP vip 198.18.81.2 53 flow-hash 0x5 alloc-port no-return-session no-client to ->10.0.0.81 53",
    "cnat translation add proto UDP real loop0 v6 54 to loop1 v6->2001:db8::81 53",
    "cnat translation add proto UDP vip 198.18.81.3 53 to ->10.0.0.81 53",
    "cnat translation del 3",
    "set cnat snat-policy addr 198.18.81.9 2001:db8:81::9",
    "set cnat snat-policy addr loop0 table 7 no-client no-default",
    "set cnat snat-policy prefix 10.0.0.0/8",
    "set cnat snat-policy prefix 2001:db8::/32",
    "set cnat snat-policy prefix del 2001:db8::/32",
    "set cnat snat-policy if table include-v4 loop0",
    "set cnat snat-policy if table host loop1",
    "set cnat snat-policy if table k8s loop1",
    "set cnat snat-policy if del table k8s loop1",
    "set cnat snat-policy k8s",
    "set cnat feature loop0 enable",
    "bfd key set conf-key-id 7 type meticulous-keyed-sha1 secret 0123456789abcdef",
    "bfd key set conf-key-id 8 type keyed-sha1 secret 01",
    "bfd key del conf-key-id 8",
    "bfd udp tos 0",
    "bfd udp session add interface loop0 local-addr 10.0.0.1 peer-addr 10.0.0.9 desired-min-tx 50000 required-min-rx 60000 detect-mult 3 conf-key-id 7 bfd-key-id 1",
    "bfd udp session set-flags admin down interface loop0 local-addr 10.0.0.1 peer-addr 10.0.0.9",
    "bfd udp session mod interface loop0 local-addr 10.0.0.1 peer-addr 10.0.0.9 desired-min-tx 70000 required-min-rx 60000 detect-mult 5",
    "bfd udp session add multihop local-addr 2001:db8::1 peer-addr 2001:db8:f::1 desired-min-tx 50000 required-min-rx 60000 detect-mult 3",
    "bfd udp session auth activate multihop local-addr 2001:db8::1 peer-addr 2001:db8:f::1 conf-key-id 7 bfd-key-id 2",
    "bfd udp session auth deactivate multihop local-addr 2001:db8::1 peer-addr 2001:db8:f::1",
    "bfd udp session add multihop local-addr 2001:db8::1 peer-addr 2001:db8:f::2 desired-min-tx 50000 required-min-rx 60000 detect-mult 3",
    "bfd udp session del multihop local-addr 2001:db8::1 peer-addr 2001:db8:f::2",
    "bfd udp echo-source set interface loop1",
    "bfd udp echo-source del",
    "bfd udp echo-source set interface loop0",
    "set syslog sender collector 192.0.2.9 src 192.0.2.1 port 5514 max-msg-size 2048",
    "set syslog filter severity warning",
    "set ipfix exporter collector 192.0.2.9 src 192.0.2.1 path-mtu 1450 udp-checksum",
    "ipfix exporter add collector 2001:db8::9 src 2001:db8::1",
    "set ipfix classify stream domain 2 src-port 4740",
    "set interface state loop0 up",
    "set interface state loop0.100 up",
    "set interface ip address loop0.100 10.0.100.1/24",
    "set interface mtu 1300 loop0.7",
    "set interface name loop0.7 customer",
    "set interface tag loop0 north",
    "set interface tcp-mss-clamp loop0 ip4 enable ip4-mss 1400",
    "set interface unnumbered pg0 use loop0",
    "set ip flow-hash table 0 src dst symmetric",
    "set ip6 flow-hash table 0 src dst flowlabel",
    "set ip icmp rate-limit 1000 burst 50",
    "set ip6 icmp rate-limit 1000 burst 50",
    "set ip local-reassembly ip6",
    "set ip reassembly extended ip4 on",
    "set ip source-and-port-range-check vrf 9 172.16.1.0/24 range 23 - 100",
    "set ip source-and-port-range-check vrf 9 172.16.1.0/24 port 443",
    "set interface ip source-and-port-range-check loop0 tcp-out-vrf 9 udp-in-vrf 9",
    "ip container 172.16.9.9 loop0",
    "set ip neighbor-config ip4 limit 1000",
    "set ip pmtu 192.0.2.1 1400",
    "set ip pmtu-learning off",
    "set ip route counters enable table 7",
    "set ip6 route counters enable table 7",
    "set ip unreachables on",
    "set ip4-full-reassembly timeout 30000",
    "set ip6-full-reassembly timeout 30000",
    "set ip4-sv-reassembly timeout 30000",
    "set ip6-sv-reassembly timeout 30000",
    "set ip6 dad transmits 2",
    "set adj counters disable",
    "set punt ip4 udp port 53",
    "set bridge-domain default-learn-limit 5000",
    "create bridge-domain 20 learn 0 mac-age 5 bd-tag lab",
    "create bridge-domain 21",
    "create bridge-domain 22",
    "create bridge-domain 22 del",
    "set bridge-domain learn 20",
    "set bridge-domain forward 20 disable",
    "set bridge-domain flood 20 disable",
    "set bridge-domain uu-flood 20 disable",
    "set bridge-domain arp term 20",
    "set bridge-domain arp-ufwd 20",
    "set bridge-domain mac-age 20 7",
    "set bridge-domain learn-limit 20 1000",
    "set bridge-domain loop-protection 20 moves 5 block 60",
    "set bridge-domain arp entry 20 10.0.0.5 00:11:22:33:44:55",
    "set interface l2 bridge bvi3 20 bvi",
    "set interface l2 bridge pg2 20 3",
    "set interface l2 bridge pg3 20 uu-fwd",
    "set interface l2 learn pg2 disable",
    "set interface l2 forward pg2 disable",
    "set interface l2 flood pg2 disable",
    "set interface l2 storm-control pg2 broadcast 100 unknown-unicast 5000",
    "set interface l2 efp-filter pg2",
    "set interface l2 tag-rewrite pg2 push dot1ad 5 6",
    "set interface l2 pbb-tag-rewrite pg2 translate_pbb_stag 7 dmac 02:00:00:00:00:0a smac 02:00:00:00:00:0b s_id 70000 b_vlanid 9",
    "l2fib add 02:00:00:00:00:05 20 pg2 static",
    "l2fib add 02:00:00:00:00:06 20 filter",
    "l2fib del 02:00:00:00:00:06 20",
    "set interface l3 pg3",
    "set interface l2 xconnect pg3 pg4",
    "create packet-generator interface pg5",
    "create packet-generator interface pg6",
    "create bond mode lacp load-balance l34 id 4",
    "create bond mode active-backup id 5 hw-addr 02:fe:00:00:00:55",
    "create bond mode xor id 6",
    "delete bond BondEthernet6",
    "bond add BondEthernet4 pg5 passive",
    "bond add BondEthernet5 pg6",
    "set interface bond pg6 weight 7",
    "bond del pg5",
    "set lldp tx-hold 5 tx-interval 20",
    "set interface lldp pg6 port-desc uplink",
    "cdp enable",
    "l3xc add pg5 via 10.0.0.9 pg0",
    "set interface span pg5 destination pg6 rx",
    "pipe create instance 3",
    "pipe create instance 4",
    "pipe delete pipe4",
    "set interface name pipe3.1 inside",
    "set interface span pg2 l2 destination pg6",
    "set superpath off",
    "set urpf ip4 rx strict loop0",
    "set interface name loop1 north",
];

/// Commands about devices of the machine, and the test with real ones that saves and restores what they make.
const DEVICES: &[&str] = &[
    "bfd dataplane",
    "bfd dataplane off",
    "create host-interface",
    "create interface af_xdp",
    "create interface memif",
    "create tap",
    "create vhost-user socket",
    "delete host-interface",
    "delete interface af_xdp",
    "delete interface memif",
    "delete tap",
    "delete vhost-user",
    "fpm listen",
    "lcp create",
    "lcp delete",
    "set host-interface l4-cksum-offload",
    "set interface af_xdp",
    "set interface rx-mode",
    "set interface rx-placement",
    "set interface rx-queues",
    "set interface tx-queue",
    "set tap offload",
];
/// Commands about the daemon itself, of which a test starts one.
const DAEMON: &[&str] = &[
    "dslite set b4-tunnel-endpoint-address",
    "set ip6 dad autoremove",
    "set logging class",
    "set logging size",
    "set metrics disable",
    "set metrics listen",
];
const WITH_DAEMON: &str = include_str!("../tests/process.rs");
const WITH_DEVICES: &str = include_str!("../../../tests/netns/25-saved-configuration.sh");

/// The words before the first argument.
fn path(syntax: &str) -> String {
    let words = syntax.split_whitespace().take_while(|w| !w.starts_with(['<', '{', '[', '(']));
    words.collect::<Vec<_>>().join(" ")
}

/// The guide's list of commands that are not saved, by their first words.
fn not_saved() -> BTreeSet<String> {
    let guide = include_str!("../../../docs/guide/configuration.md");
    let list = guide.split("## What is not saved").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = list.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// The lines of each section in order: interfaces of a rebuilt router may have other numbers, by which they are written.
fn by_section(text: &str) -> Vec<Vec<&str>> {
    let mut sections: Vec<Vec<&str>> = text.split("# ").map(|section| section.lines().collect()).collect();
    for lines in &mut sections {
        lines.sort_unstable();
    }
    sections
}

#[test]
fn every_command_that_changes_the_router_is_saved_or_listed_as_one_that_is_not() {
    let listed = not_saved();
    let commands: BTreeSet<String> =
        crate::modules::all().flat_map(|m| m.commands).map(|c| path(c.syntax)).collect();
    let named = |path: &str, words: &str| path == words || path.starts_with(&format!("{words} "));
    let mut shown_by = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut router = router();
    let mut was = shown(&mut router);
    for line in LINES {
        let failed = router.cli(line).err();
        let now = shown(&mut router);
        match failed {
            Some(error) => wrong.push(format!("`{line}': {error}")),
            None if was == now => wrong.push(format!("`{line}' does not change the running configuration")),
            None => {}
        }
        was = now;
        let longest = commands.iter().filter(|path| named(line, path)).max_by_key(|path| path.len());
        shown_by.extend(longest.cloned());
    }
    assert_eq!(by_section(&shown(&mut rebuilt(&was))), by_section(&was));
    let elsewhere = [(DEVICES, WITH_DEVICES), (DAEMON, WITH_DAEMON)];
    for (words, text) in elsewhere.iter().flat_map(|(all, text)| all.iter().map(move |words| (*words, *text)))
    {
        let there = text.contains(words);
        assert!(there, "no test saves `{words}'");
        shown_by.insert(words.to_owned());
    }
    for path in &commands {
        let saved = shown_by.contains(path);
        let said = listed.iter().any(|words| named(path, words));
        if saved == said {
            let what = if saved {
                "is saved, and listed as not saved"
            } else {
                "is neither shown to be saved nor listed"
            };
            wrong.push(format!("`{path}' {what}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
