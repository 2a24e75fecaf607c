//! All superpaths of this router: the one place where the types of all their nodes are known.
//!
//! A superpath is a row of [`start`]: what it is for, what it costs, and its chain, from the first node to the last. What
//! features it covers the chain says itself: those that are a [`Stage`](shoal_graph::superpath::Stage) of it. Which
//! interface takes which one is decided by [`Interfaces`] whenever features change.
//!
//! | superpath | for | covers |
//! |---|---|---|
//! | `ip4-superpath` | Ethernet interfaces with IPv4 only | no feature |
//! | `ip-superpath` | Ethernet interfaces with IPv6, or both | no feature |
//! | `ip4-nat44-superpath`, `ip-nat44-superpath` | the same as these two, where packets are translated | NAT44-ED |
//! | `ip4-nat44-ei-superpath`, `ip-nat44-ei-superpath` | the same | NAT44-EI |
//! | `ip4-cnat-superpath`, `ip-cnat-superpath` | the same | cloud NAT, in and out |
//! | `ip-nat64-superpath` | the same, with both families | NAT64 |
//! | `ip-map-t-superpath`, `ip-map-e-superpath` | the same | MAP-T, MAP-E |
//! | `ip-dslite-superpath` | the same, while routes lead to DS-Lite's end of tunnels | no feature |
//! | `ip-feature-superpath` | Ethernet interfaces with features | NAT44-ED, reverse path forwarding, MSS clamping, policy routing, limits of sources |
//! | `ip-feature-nat44-ei-superpath` | the same | the same, with NAT44-EI in the place of NAT44-ED |
//! | `l2-xconnect-superpath` | cross-connected interfaces, also with tags that are rewritten | no feature |
//! | `l2-bridge-superpath` | members of bridges, frames between known stations | no feature |
//! | `ip4-only-superpath`, `ip6-only-superpath` | interfaces without a link header | the same as `ip-feature-superpath` |
//! | `ip4-only-nat44-ei-superpath` | the same | the same, with NAT44-EI in the place of NAT44-ED |
//!
//! Sub-interfaces take them as ports do: `ethernet-vlan-superpath`, in front of a port that has some, sorts its frames by their
//! tags. It is `net/ethernet`'s.
#![forbid(unsafe_code)]

mod routed;
mod switched;

use std::rc::Rc;
use std::sync::Arc;

use shoal_dslite::AFTR_NODE;
use shoal_ethernet::{EthernetInput, SwitchedInput};
use shoal_graph::superpath::{Chained, Line, Split};
use shoal_interface::{IfFlags, Interfaces, Medium, Superpath};
use shoal_module::{Control, InitError, Module};

use routed::Parts;

/// The module; its place is behind all whose nodes it composes.
pub static MODULE: Module = Module {
    name: "superpaths",
    description: "Fused paths of common nodes and features",
    start,
    ..Module::NONE
};

/// IPv4 on Ethernet interfaces without features.
pub const IP4: Superpath =
    Superpath { name: "ip4-superpath", medium: Medium::Ethernet, serves: &[IfFlags::IP4], cost: 30 };

/// Both families on Ethernet interfaces without features.
pub const IP: Superpath = Superpath {
    name: "ip-superpath",
    medium: Medium::Ethernet,
    serves: &[IfFlags::IP4, IfFlags::IP6],
    cost: 31,
};

/// IPv4 on Ethernet interfaces where NAT44-ED is the only feature.
pub const IP4_NAT44: Superpath =
    Superpath { name: "ip4-nat44-superpath", medium: Medium::Ethernet, serves: &[IfFlags::IP4], cost: 35 };

/// Both families on such interfaces.
pub const IP_NAT44: Superpath = Superpath {
    name: "ip-nat44-superpath",
    medium: Medium::Ethernet,
    serves: &[IfFlags::IP4, IfFlags::IP6],
    cost: 36,
};

/// IPv4 on Ethernet interfaces where NAT44-EI is the only feature.
pub const IP4_NAT44_EI: Superpath =
    Superpath { name: "ip4-nat44-ei-superpath", medium: Medium::Ethernet, serves: &[IfFlags::IP4], cost: 35 };

/// Both families on such interfaces.
pub const IP_NAT44_EI: Superpath = Superpath {
    name: "ip-nat44-ei-superpath",
    medium: Medium::Ethernet,
    serves: &[IfFlags::IP4, IfFlags::IP6],
    cost: 36,
};

/// IPv4 on Ethernet interfaces where cloud NAT is the only feature.
pub const IP4_CNAT: Superpath =
    Superpath { name: "ip4-cnat-superpath", medium: Medium::Ethernet, serves: &[IfFlags::IP4], cost: 35 };

/// Both families on such interfaces.
pub const IP_CNAT: Superpath = Superpath {
    name: "ip-cnat-superpath",
    medium: Medium::Ethernet,
    serves: &[IfFlags::IP4, IfFlags::IP6],
    cost: 36,
};

/// Both families on Ethernet interfaces where NAT64 is the only feature.
pub const IP_NAT64: Superpath = Superpath {
    name: "ip-nat64-superpath",
    medium: Medium::Ethernet,
    serves: &[IfFlags::IP4, IfFlags::IP6],
    cost: 37,
};

/// Both families on Ethernet interfaces where MAP-T is the only feature.
pub const IP_MAP_T: Superpath = Superpath {
    name: "ip-map-t-superpath",
    medium: Medium::Ethernet,
    serves: &[IfFlags::IP4, IfFlags::IP6],
    cost: 37,
};

/// Both families on Ethernet interfaces where MAP-E is the only feature.
pub const IP_MAP_E: Superpath = Superpath {
    name: "ip-map-e-superpath",
    medium: Medium::Ethernet,
    serves: &[IfFlags::IP4, IfFlags::IP6],
    cost: 37,
};

/// Both families on Ethernet interfaces without features, of an AFTR of DS-Lite.
pub const IP_DSLITE: Superpath = Superpath {
    name: "ip-dslite-superpath",
    medium: Medium::Ethernet,
    serves: &[IfFlags::IP4, IfFlags::IP6],
    cost: 37,
};

/// Both families on Ethernet interfaces with features.
pub const IP_FEATURES: Superpath = Superpath {
    name: "ip-feature-superpath",
    medium: Medium::Ethernet,
    serves: &[IfFlags::IP4, IfFlags::IP6],
    cost: 40,
};

/// Both families on Ethernet interfaces with features, NAT44-EI among them.
pub const IP_FEATURES_EI: Superpath = Superpath {
    name: "ip-feature-nat44-ei-superpath",
    medium: Medium::Ethernet,
    serves: &[IfFlags::IP4, IfFlags::IP6],
    cost: 41,
};

/// IPv4 on interfaces without a link header.
pub const IP4_ONLY: Superpath =
    Superpath { name: "ip4-only-superpath", medium: Medium::Ip, serves: &[IfFlags::IP4], cost: 30 };

/// The same with features, NAT44-EI among them.
pub const IP4_ONLY_EI: Superpath =
    Superpath { name: "ip4-only-nat44-ei-superpath", medium: Medium::Ip, serves: &[IfFlags::IP4], cost: 31 };

/// IPv6 on interfaces without a link header.
pub const IP6_ONLY: Superpath =
    Superpath { name: "ip6-only-superpath", medium: Medium::Ip, serves: &[IfFlags::IP6], cost: 30 };

/// Cross-connected interfaces.
pub const XCONNECT: Superpath = Superpath {
    name: "l2-xconnect-superpath",
    medium: Medium::Layer2,
    serves: &[IfFlags::XCONNECT],
    cost: 10,
};

/// Members of bridges, for frames between known stations.
pub const BRIDGE: Superpath =
    Superpath { name: "l2-bridge-superpath", medium: Medium::Layer2, serves: &[IfFlags::BRIDGED], cost: 20 };

/// Composes the superpaths whose nodes are part of this router.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let Ok(ethernet) = control.get::<Arc<EthernetInput>>() else { return Ok(()) };
    let (interfaces, parts) = (control.get::<Interfaces>()?, Parts::of(control));
    let ethernet = || Arc::clone(&*ethernet);
    let offer = |superpath: Superpath, added: Result<(), _>| {
        if let Err(e) = added {
            // A plugin's features may have changed the order of an arc.
            tracing::warn!("no {}: {e}", superpath.name);
        }
    };
    if let Some(chain) = parts.xconnect()? {
        let input = Arc::new(SwitchedInput(ethernet()));
        offer(XCONNECT, interfaces.add_superpath(XCONNECT, Line(Chained(input, chain))));
    }
    if let Some(chain) = parts.bridge()? {
        let input = Arc::new(SwitchedInput(ethernet()));
        offer(BRIDGE, interfaces.add_superpath(BRIDGE, Line(Chained(input, chain))));
    }
    if let Some(ip4) = parts.ip4()? {
        offer(IP4, interfaces.add_superpath(IP4, Line(Chained(ethernet(), ip4))));
    }
    if let (Some(ip4), Some(ip6)) = (parts.ip4()?, parts.ip6()?) {
        offer(IP, interfaces.add_superpath(IP, Split(ethernet(), ip4, ip6)));
    }
    if let Some(ip4) = parts.ip4_translated(parts.ed())? {
        offer(IP4_NAT44, interfaces.add_superpath(IP4_NAT44, Line(Chained(ethernet(), ip4))));
    }
    if let (Some(ip4), Some(ip6)) = (parts.ip4_translated(parts.ed())?, parts.ip6()?) {
        offer(IP_NAT44, interfaces.add_superpath(IP_NAT44, Split(ethernet(), ip4, ip6)));
    }
    if let Some(ip4) = parts.ip4_translated(parts.ei())? {
        offer(IP4_NAT44_EI, interfaces.add_superpath(IP4_NAT44_EI, Line(Chained(ethernet(), ip4))));
    }
    if let (Some(ip4), Some(ip6)) = (parts.ip4_translated(parts.ei())?, parts.ip6()?) {
        offer(IP_NAT44_EI, interfaces.add_superpath(IP_NAT44_EI, Split(ethernet(), ip4, ip6)));
    }
    if let Some(ip4) = parts.ip4_cnat()? {
        offer(IP4_CNAT, interfaces.add_superpath(IP4_CNAT, Line(Chained(ethernet(), ip4))));
    }
    if let (Some(ip4), Some(ip6)) = (parts.ip4_cnat()?, parts.ip6_cnat()?) {
        offer(IP_CNAT, interfaces.add_superpath(IP_CNAT, Split(ethernet(), ip4, ip6)));
    }
    if let Some((ip4, ip6)) = parts.nat64()? {
        offer(IP_NAT64, interfaces.add_superpath(IP_NAT64, Split(ethernet(), ip4, ip6)));
    }
    if let Some((ip4, ip6)) = parts.map_t()? {
        offer(IP_MAP_T, interfaces.add_superpath(IP_MAP_T, Split(ethernet(), ip4, ip6)));
    }
    if let Some((ip4, ip6)) = parts.map_e()? {
        offer(IP_MAP_E, interfaces.add_superpath(IP_MAP_E, Split(ethernet(), ip4, ip6)));
    }
    if let Some((ip4, ip6)) = parts.dslite()? {
        let chain = Split(ethernet(), ip4, ip6);
        offer(IP_DSLITE, interfaces.add_superpath_by_route(IP_DSLITE, AFTR_NODE, chain));
    }
    if let (Some(ip4), Some(ip6)) = (parts.ip4_with_features(parts.ed())?, parts.ip6_with_features()?) {
        offer(IP_FEATURES, interfaces.add_superpath(IP_FEATURES, Split(ethernet(), ip4, ip6)));
    }
    if let Some(nat) = parts.ei()
        && let (Some(ip4), Some(ip6)) = (parts.ip4_with_features(Some(nat))?, parts.ip6_with_features()?)
    {
        offer(IP_FEATURES_EI, interfaces.add_superpath(IP_FEATURES_EI, Split(ethernet(), ip4, ip6)));
    }
    if let Some(ip4) = parts.ip4_with_features(parts.ed())? {
        offer(IP4_ONLY, interfaces.add_superpath(IP4_ONLY, Line(ip4)));
    }
    if let Some(nat) = parts.ei()
        && let Some(ip4) = parts.ip4_with_features(Some(nat))?
    {
        offer(IP4_ONLY_EI, interfaces.add_superpath(IP4_ONLY_EI, Line(ip4)));
    }
    if let Some(ip6) = parts.ip6_with_features()? {
        offer(IP6_ONLY, interfaces.add_superpath(IP6_ONLY, Line(ip6)));
    }
    Ok(())
}
