//! What rebuilds it.

use std::fmt::Write as _;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::config::Settings;
use crate::domain::Parameters;
use crate::{Map, Mode};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(map) = running.part::<Map>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let mut line = |line: String| running.line(Phase::Policies, line);
    settings(&map.settings(), &mut line);
    for hop in map.next_hops().addresses() {
        let family = if hop.is_ipv4() { "ip4" } else { "ip6" };
        line(format!("map params pre-resolve {family}-nh {hop}"));
    }
    for shown in map.all() {
        let Parameters { ip4, ip6, ip6_src, ea_bits, psid_offset, psid_length, mtu, tag } =
            &shown.domain.parameters;
        let tag = if tag.is_empty() { String::new() } else { format!(" tag {}", word(tag)) };
        let mut text = format!("map add domain{tag} ip4-pfx {ip4} ip6-pfx {ip6} ip6-src {ip6_src}");
        for (name, value) in [
            ("ea-bits-len", u16::from(*ea_bits)),
            ("psid-offset", u16::from(*psid_offset)),
            ("psid-len", u16::from(*psid_length)),
            ("mtu", *mtu),
        ] {
            if value > 0 {
                let _ = write!(text, " {name} {value}");
            }
        }
        // Rules name it by its number.
        let _ = write!(text, " index {}", shown.index);
        line(text);
        for (psid, address) in &*shown.rules {
            line(format!("map add rule index {} psid {psid} ip6-dst {address}", shown.index));
        }
    }
    for (interface, mode) in map.interfaces() {
        let Ok(name) = interfaces.name(interface) else { continue };
        let kind = if mode == Mode::Translate { " map-t" } else { "" };
        line(format!("map interface {}{kind}", word(&name)));
    }
}

/// Parameters that are not as they are at first.
fn settings(now: &Settings, line: &mut impl FnMut(String)) {
    let usual = Settings::default();
    if now.frag_inner != usual.frag_inner || now.frag_ignore_df != usual.frag_ignore_df {
        let which = if now.frag_inner { "inner" } else { "outer" };
        let df = if now.frag_ignore_df { " ignore-df" } else { "" };
        line(format!("map params fragment {which}{df}"));
    }
    if let Some(source) = now.icmp_source {
        line(format!("map params icmp source-address {source}"));
    }
    if now.icmp6_unreachables {
        line("map params icmp6 unreachables on".into());
    }
    if (now.security_check, now.security_check_fragments)
        != (usual.security_check, usual.security_check_fragments)
    {
        let check = if now.security_check { "enable" } else { "disable" };
        let fragments = if now.security_check_fragments { "on" } else { "off" };
        line(format!("map params security-check {check} fragments {fragments}"));
    }
    if now.tcp_mss != 0 {
        line(format!("map params tcp-mss {}", now.tcp_mss));
    }
    if !now.tc_copy {
        line(format!("map params traffic-class {}", now.tc_class));
    }
}
