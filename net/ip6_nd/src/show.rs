//! What commands print.

use std::fmt;
use std::net::Ipv6Addr;

use serde::Serialize;
use shoal_interface::{IfFlags, Interfaces, SwIfIndex};
use shoal_ip6::Ip6;
use shoal_wire::ip6_address::is_link_local;

use crate::counters::{Kind, NdCounters};
use crate::{AddressState, Advertise, Dad, DefaultRoute, Nd};

fn word(standing: AddressState) -> &'static str {
    match standing {
        AddressState::Tentative => "tentative",
        AddressState::Ours => "preferred",
        AddressState::Duplicate => "duplicate",
    }
}

/// An address and whether it is ours.
#[derive(Serialize)]
pub(crate) struct OwnAddress {
    address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subnet: String,
    state: &'static str,
}

/// `show ip6 dad`.
#[derive(Serialize)]
pub(crate) struct DadView {
    transmits: u32,
    retransmit_delay: f64,
    addresses: Vec<Own>,
}

#[derive(Serialize)]
struct Own {
    interface: String,
    address: String,
    state: &'static str,
}

impl DadView {
    pub(crate) fn new(nd: &Nd, interfaces: &Interfaces) -> Self {
        let own = |dad: Dad| Own {
            interface: interfaces.name(dad.interface).unwrap_or_default(),
            address: dad.prefix.to_string(),
            state: word(dad.standing),
        };
        DadView {
            transmits: nd.dad_transmits(),
            retransmit_delay: nd.dad_retransmit().as_secs_f64(),
            addresses: nd.addresses().into_iter().map(own).collect(),
        }
    }
}

impl fmt::Display for DadView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "DAD Configuration:")?;
        writeln!(f, "  Enabled: {}", if self.transmits > 0 { "yes" } else { "no" })?;
        // What `set ip6 dad enable` would choose.
        writeln!(f, "  Transmits: {}", self.transmits.max(1))?;
        writeln!(f, "  Delay: {:.1} seconds", self.retransmit_delay)?;
        self.addresses.iter().try_for_each(|o| writeln!(f, "  {} {} {}", o.interface, o.address, o.state))
    }
}

/// An advertised prefix.
#[derive(Serialize)]
struct PrefixView {
    prefix: String,
    valid: u32,
    preferred: u32,
    on_link: bool,
    autoconfig: bool,
    advertised: bool,
}

/// Another router.
#[derive(Serialize)]
struct RouterView {
    address: Ipv6Addr,
    lifetime: u16,
    heard: u64,
    age: f64,
}

/// A virtual router that hosts hear advertisements from.
#[derive(Serialize)]
struct VirtualView {
    number: u8,
    /// The address that this router advertises by; null while another one does.
    advertises_as: Option<Ipv6Addr>,
}

/// What routers make of an interface.
#[derive(Serialize)]
struct Autoconf {
    default_route: bool,
    /// Addresses and for how many seconds more; `null` is forever.
    addresses: Vec<(String, Option<f64>)>,
}

/// One interface of `show ip6 interface`.
#[derive(Serialize)]
pub(crate) struct InterfaceView {
    name: String,
    admin_up: bool,
    enabled: bool,
    link_local: Vec<OwnAddress>,
    global: Vec<OwnAddress>,
    groups: Vec<Ipv6Addr>,
    /// Set when routers configure it.
    autoconfig: Option<Autoconf>,
    prefixes: Vec<PrefixView>,
    routers: Vec<RouterView>,
    /// Virtual routers, whose advertisements take the place of this router's own.
    virtual_routers: Vec<VirtualView>,
    mtu: u32,
    dad: bool,
    suppressed: bool,
    interval: (u32, u32),
    lifetime: u16,
    managed: bool,
    other: bool,
    ra_sent: u64,
    ra_received: u64,
    rs_received: u64,
    ns: (u64, u64),
    na: (u64, u64),
}

impl InterfaceView {
    pub(crate) fn new(nd: &Nd, interfaces: &Interfaces, ip6: &Ip6, interface: SwIfIndex) -> Option<Self> {
        let (data, name) = (interfaces.data(interface).ok()?, interfaces.name(interface).ok()?);
        let mine: Vec<_> = nd.addresses().into_iter().filter(|dad| dad.interface == interface).collect();
        let config = nd.ra_config(interface);
        let some = |link_local: bool| {
            let those = mine.iter().filter(|dad| is_link_local(dad.prefix.addr()) == link_local);
            let subnet = |d: &Dad| if link_local { String::new() } else { d.prefix.normalized().to_string() };
            let one = |d: &Dad| OwnAddress {
                address: d.prefix.addr().to_string(),
                subnet: subnet(d),
                state: word(d.standing),
            };
            those.map(one).collect()
        };
        let prefix = |(prefix, p): &(shoal_wire::Ip6Prefix, crate::Prefix)| PrefixView {
            prefix: prefix.normalized().to_string(),
            valid: p.valid_secs,
            preferred: p.preferred_secs,
            on_link: p.flags.contains(shoal_wire::nd::PrefixFlags::ON_LINK),
            autoconfig: p.flags.contains(shoal_wire::nd::PrefixFlags::AUTONOMOUS),
            advertised: p.advertise == Advertise::Yes,
        };
        let router = |(address, heard): (Ipv6Addr, crate::control::ReceivedAdvertisement)| RouterView {
            address,
            lifetime: heard.said.lifetime_secs,
            heard: heard.count,
            age: nd.age(heard.at).as_secs_f64(),
        };
        let counters: &NdCounters = nd.counters();
        let sum = |kind| counters.sum(kind, interface);
        Some(InterfaceView {
            name,
            enabled: ip6.on(interface).enabled(),
            admin_up: data.flags().has(IfFlags::ADMIN_UP),
            link_local: some(true),
            global: some(false),
            groups: ip6.groups(interface),
            autoconfig: nd.autoconfigured(interface).map(|(route, made)| Autoconf {
                default_route: route == DefaultRoute::Wanted,
                addresses: made
                    .iter()
                    .map(|m| (m.address.to_string(), m.left.map(|l| l.as_secs_f64())))
                    .collect(),
            }),
            prefixes: config.prefixes.iter().map(prefix).collect(),
            routers: nd.routers(interface).into_iter().map(router).collect(),
            virtual_routers: nd
                .virtual_routers(interface)
                .into_iter()
                .map(|(number, who)| VirtualView { number, advertises_as: who.map(|who| who.address) })
                .collect(),
            mtu: nd.link_mtu(interface),
            dad: nd.dad_transmits() > 0,
            suppressed: config.suppressed() || nd.autoconfigured(interface).is_some(),
            interval: config.interval,
            lifetime: config.lifetime_secs,
            managed: config.managed == Advertise::Yes,
            other: config.other == Advertise::Yes,
            ra_sent: sum(Kind::RouterAdvertisement).1,
            ra_received: sum(Kind::RouterAdvertisement).0,
            rs_received: sum(Kind::RouterSolicitation).0,
            ns: sum(Kind::NeighbourSolicitation),
            na: both(sum(Kind::NeighbourAdvertisement), sum(Kind::UnsolicitedAdvertisement)),
        })
    }
}

fn both(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (one.0 + other.0, one.1 + other.1)
}

fn able(on: bool) -> &'static str {
    if on { "enabled" } else { "disabled" }
}

impl fmt::Display for InterfaceView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.enabled {
            return writeln!(f, "IPv6 not enabled on {}", self.name);
        }
        writeln!(f, "{} is admin {}", self.name, if self.admin_up { "up" } else { "down" })?;
        for (title, addresses) in
            [("Global unicast address(es):", &self.global), ("Link-local address(es):", &self.link_local)]
        {
            if addresses.is_empty() {
                continue;
            }
            writeln!(f, "  {title}")?;
            for a in addresses {
                let state = if a.state == "preferred" { "" } else { a.state };
                let length =
                    a.subnet.rsplit_once('/').map_or_else(String::new, |(_, length)| format!("/{length}"));
                writeln!(f, "{}", format!("    {}{length} {state}", a.address).trim_end())?;
            }
        }
        writeln!(f, "  Joined group address(es):")?;
        self.groups.iter().try_for_each(|group| writeln!(f, "    {group}"))?;
        if !self.prefixes.is_empty() {
            writeln!(f, "  Advertised Prefixes:")?;
        }
        for p in &self.prefixes {
            let flags = [
                (!p.on_link, " off-link"),
                (!p.autoconfig, " no-autoconfig"),
                (!p.advertised, " no-advertise"),
            ];
            let flags: String = flags.iter().filter(|(on, _)| *on).map(|(_, word)| *word).collect();
            writeln!(f, "    {} valid {} preferred {}{flags}", p.prefix, p.valid, p.preferred)?;
        }
        writeln!(f, "  MTU is {}", self.mtu)?;
        writeln!(f, "  ND DAD is {}", able(self.dad))?;
        if self.suppressed {
            writeln!(f, "  ND router advertisements are suppressed")?;
        } else {
            let (min, max) = self.interval;
            writeln!(f, "  ND router advertisements are sent every {max} seconds (min interval is {min})")?;
            writeln!(f, "  ND router advertisements live for {} seconds", self.lifetime)?;
        }
        for VirtualView { number, advertises_as } in &self.virtual_routers {
            match advertises_as {
                Some(address) => writeln!(f, "  They come from {address}, virtual router {number}")?,
                None => writeln!(f, "  Those of virtual router {number} are another router's")?,
            }
        }
        if let Some(autoconf) = &self.autoconfig {
            let route = if autoconf.default_route { " and the default route" } else { "" };
            writeln!(f, "  Routers give this interface addresses{route}")?;
            for (address, left) in &autoconf.addresses {
                match left {
                    Some(secs) => writeln!(f, "    {address} for {secs:.0} seconds more")?,
                    None => writeln!(f, "    {address} forever")?,
                }
            }
        }
        let how = if self.managed { "DHCP" } else { "stateless autoconfig" };
        writeln!(f, "  Hosts use {how} for addresses")?;
        if self.other {
            writeln!(f, "  Hosts use DHCP for other configuration")?;
        }
        writeln!(f, "  ND router advertisements sent {}", self.ra_sent)?;
        writeln!(f, "  ND router advertisements received {}", self.ra_received)?;
        writeln!(f, "  ND router solicitations received {}", self.rs_received)?;
        writeln!(f, "  ND neighbor solicitations received {} sent {}", self.ns.0, self.ns.1)?;
        writeln!(f, "  ND neighbor advertisements received {} sent {}", self.na.0, self.na.1)?;
        for r in &self.routers {
            let RouterView { address, lifetime, heard, age } = r;
            writeln!(
                f,
                "  Router {address} lives for {lifetime} seconds, heard {heard} times, last {age:.1} s ago"
            )?;
        }
        Ok(())
    }
}

/// `show ip6 interface`.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct InterfacesView(pub(crate) Vec<InterfaceView>);

impl fmt::Display for InterfacesView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|view| view.fmt(f))
    }
}
