//! What daemons and Shoal are configured with.

use std::fmt::Write as _;
use std::path::Path;

use super::bed::{LINKS, PORTS};
use crate::wires::mac;

/// The system of the daemon.
const OWN: u32 = 65_000;
/// The peer's.
pub(super) const PEER: u32 = 65_001;
/// Where Shoal takes FPM.
pub(super) const FPM_PORT: u16 = 2620;

/// BIRD: a session for each link and family, and the kernel's table unless it is alone.
pub(super) fn bird(installs: bool) -> String {
    let mut text = format!("router id {};\nprotocol device {{ }}\n", LINKS[0].device4);
    if installs {
        for family in ["ipv4", "ipv6"] {
            let _ = writeln!(
                text,
                "protocol kernel {{ {family} {{ import none; export all; }}; merge paths on; }}"
            );
        }
    }
    text += "template bgp peer { connect retry time 1; connect delay time 1; error wait time 1, 2; }\n";
    for (link, n) in LINKS.iter().zip(1..) {
        for (own, other, family) in [
            (link.device4.to_string(), link.peer4.to_string(), "ipv4"),
            (link.device6.to_string(), link.peer6.to_string(), "ipv6"),
        ] {
            let _ = writeln!(
                text,
                "protocol bgp {family}_{n} from peer {{ local {own} as {OWN}; neighbor {other} as {PEER}; \
                 {family} {{ import all; export none; }}; }}"
            );
        }
    }
    text
}

/// FRR's zebra.
pub(super) fn zebra(fpm: bool) -> String {
    let fpm = if fpm { format!("fpm address 127.0.0.1 port {FPM_PORT}\n") } else { String::new() };
    format!("hostname zebra\n{fpm}")
}

/// FRR's bgpd.
pub(super) fn bgpd() -> String {
    let mut text =
        format!("router bgp {OWN}\n bgp router-id {}\n no bgp ebgp-requires-policy\n", LINKS[0].device4);
    let each = |text: &mut String, line: &dyn Fn(&str) -> String| {
        for link in &LINKS {
            for peer in [link.peer4.to_string(), link.peer6.to_string()] {
                text.push_str(&line(&peer));
            }
        }
    };
    each(&mut text, &|peer| {
        format!(" neighbor {peer} remote-as {PEER}\n neighbor {peer} timers connect 1\n")
    });
    for (family, ours) in [("ipv4", false), ("ipv6", true)] {
        let _ = writeln!(text, " address-family {family} unicast");
        each(&mut text, &|peer| {
            let no = if peer.contains(':') == ours { "" } else { "no " };
            format!("  {no}neighbor {peer} activate\n")
        });
        text += " exit-address-family\n";
    }
    text
}

/// Shoal's start-up file.
pub(super) fn startup(run: &Path, lib: &Path, setup: &Path) -> String {
    format!(
        "unix {{ nodaemon nosyslog runtime-dir {} exec {} }}\n\
         configuration {{ directory {} restore off }}\n\
         cpu {{ workers 1 }}\nlinux-cp {{ lcp-sync }}\n",
        run.display(),
        setup.display(),
        lib.display(),
    )
}

/// Shoal's ports, with images in the daemon's namespace.
pub(super) fn setup(beside: &str, fpm: bool) -> String {
    let mut text = String::new();
    for (port, n) in PORTS.iter().zip(0..) {
        let name = port.name;
        let _ = write!(
            text,
            "create host-interface name {name} hw-addr {}\nset interface state host-{name} up\n\
             set interface ip address host-{name} {}/24\nlcp create host-{name} host-if e{n} netns {beside}\n\
             set interface ip address host-{name} {}/64\n",
            mac(port.mac),
            port.address4,
            port.address6
        );
    }
    if fpm {
        let _ = writeln!(text, "fpm listen 127.0.0.1:{FPM_PORT} netns {beside}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_is_activated_where_it_belongs() {
        let text = bgpd();
        assert_eq!(text.matches("remote-as 65001").count(), 4);
        let (four, six) = text.split_once(" address-family ipv6").unwrap();
        assert!(
            four.contains("  neighbor 10.0.2.2 activate\n  no neighbor 2001:db8:2::2 activate\n"),
            "{text}"
        );
        assert!(
            six.contains("  no neighbor 10.0.3.2 activate\n  neighbor 2001:db8:3::2 activate\n"),
            "{text}"
        );
    }

    #[test]
    fn a_daemon_that_is_alone_installs_nothing() {
        assert!(!bird(false).contains("protocol kernel"));
        assert_eq!(bird(true).matches("merge paths on").count(), 2);
        assert!(
            bird(true).contains("ipv6_2 from peer { local 2001:db8:3::1 as 65000; neighbor 2001:db8:3::2")
        );
    }

    #[test]
    fn fpm_is_configured_where_it_is_used() {
        assert!(zebra(true).contains("127.0.0.1 port 2620") && !zebra(false).contains("fpm"));
        assert!(setup("x", true).contains("fpm listen 127.0.0.1:2620 netns x"));
        assert!(!setup("x", false).contains("fpm"));
        assert_eq!(setup("x", false).matches("lcp create").count(), 3);
    }
}
