//! Router advertisements of this router. RFC 4861 6.2; defaults are VPP's.

use std::net::Ipv6Addr;
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_wire::ip6_address::{ALL_NODES, is_link_local};
use shoal_wire::nd::{HOP_LIMIT, PrefixFlags, RaFlags, RouterAdvertisement};
use shoal_wire::nd_options::PrefixInformation;
use shoal_wire::{Ip6Prefix, IpProtocol, MacAddress};

use super::Nd;
use super::speakers::VirtualSpeaker;
use crate::NdError;
use crate::counters::Kind;
use crate::frame::{HEADERS, LONGEST, MessageRoute};

/// MIN_DELAY_BETWEEN_RAS (RFC 4861 section 10).
const BETWEEN: Duration = Duration::from_secs(3);
/// MAX_RA_DELAY_TIME.
const MOST_DELAY: Duration = Duration::from_millis(500);
/// Prefixes that fit an advertisement of the smallest MTU.
const MOST_PREFIXES: usize = 36;

/// An advertised prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// On the link, and good for addresses.
    pub flags: PrefixFlags,
    /// How long it is valid, in seconds; `u32::MAX` is forever.
    pub valid_secs: u32,
    /// How long addresses of it are preferred.
    pub preferred_secs: u32,
    /// Whether it is in advertisements at all.
    pub advertise: Advertise,
}

/// Whether an advertisement is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advertise {
    /// It is.
    Yes,
    /// It is not.
    No,
}

impl Default for Prefix {
    fn default() -> Self {
        let flags = PrefixFlags::ON_LINK | PrefixFlags::AUTONOMOUS;
        // RFC 4861 6.2.1: 30 and 7 days.
        Prefix { flags, valid_secs: 2_592_000, preferred_secs: 604_800, advertise: Advertise::Yes }
    }
}

/// What is advertised on an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RaConfig {
    /// M: addresses come by DHCPv6.
    pub managed: Advertise,
    /// O: other configuration does.
    pub other: Advertise,
    /// Whether advertisements are sent at all.
    pub send: Advertise,
    /// Whether they tell the link-layer address.
    pub link_layer: Advertise,
    /// Whether a solicitation is answered to its sender alone.
    pub unicast: Advertise,
    /// How long hosts may use this router, in seconds; 0: not at all.
    pub lifetime_secs: u16,
    /// How many advertisements at the start are sent, and how far apart in seconds at most.
    pub initial: (u32, u32),
    /// Least and most time between two, in seconds.
    pub interval: (u32, u32),
    /// The hop limit hosts should use.
    pub hop_limit: u8,
    /// Prefixes of the link.
    pub prefixes: Vec<(Ip6Prefix, Prefix)>,
}

impl Default for RaConfig {
    fn default() -> Self {
        RaConfig {
            managed: Advertise::No,
            other: Advertise::No,
            send: Advertise::Yes,
            link_layer: Advertise::Yes,
            unicast: Advertise::No,
            lifetime_secs: 600,
            initial: (3, 16),
            interval: (150, 200),
            hop_limit: 64,
            prefixes: Vec::new(),
        }
    }
}

impl RaConfig {
    /// The flags hosts see.
    pub fn flags(&self) -> RaFlags {
        let flag = |on: Advertise, flag| if on == Advertise::Yes { flag } else { RaFlags::default() };
        flag(self.managed, RaFlags::MANAGED) | flag(self.other, RaFlags::OTHER)
    }

    /// Whether nothing is sent.
    pub fn suppressed(&self) -> bool {
        self.send == Advertise::No
    }

    /// RFC 4861 6.2.1: the bounds of each value.
    fn check(&self) -> Result<(), NdError> {
        let (min, max) = self.interval;
        let range = |what, value: u32, least: u32, most: u32| {
            let fits = (least..=most).contains(&value);
            if fits { Ok(()) } else { Err(NdError::Range { what, value, least, most }) }
        };
        range("longest interval", max, 4, 1800)?;
        range("shortest interval", min, 3, (max * 3 / 4).max(3))?;
        if self.lifetime_secs != 0 {
            range("lifetime", self.lifetime_secs.into(), max, 9000)?;
        }
        range("number of initial advertisements", self.initial.0, 0, 3)?;
        range("interval of initial advertisements", self.initial.1, 1, 16)?;
        for (prefix, p) in &self.prefixes {
            if prefix.addr().is_multicast() || is_link_local(prefix.addr()) {
                return Err(NdError::NoPrefix(*prefix));
            }
            if p.preferred_secs > p.valid_secs {
                let (preferred, valid) = (p.preferred_secs, p.valid_secs);
                return Err(NdError::Lifetimes { prefix: *prefix, preferred, valid });
            }
        }
        if self.prefixes.len() > MOST_PREFIXES { Err(NdError::Full(MOST_PREFIXES)) } else { Ok(()) }
    }
}

/// Advertisements of an interface.
#[derive(Default)]
pub(super) struct Radv {
    config: RaConfig,
    pub(super) next: Option<Time>,
    last: Option<Time>,
    last_to_all: Option<Time>,
    initial_left: u32,
    sent: u32,
    solicited: u32,
    unanswered: u32,
    /// The one host that the next one goes to.
    to: Option<(Ipv6Addr, MacAddress)>,
}

/// How far advertisements of an interface are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Course {
    /// When the last one was sent.
    pub last: Option<Time>,
    /// When the last one to all was sent.
    pub last_to_all: Option<Time>,
    /// When the next one is due.
    pub next: Option<Time>,
    /// How many of those at the beginning are left.
    pub initial_left: u32,
    /// How many were sent.
    pub sent: u32,
    /// How many hosts asked.
    pub solicited: u32,
    /// How many questions had no answer of their own.
    pub unanswered: u32,
}

impl Nd {
    /// How far advertisements of an interface are.
    pub fn ra_course(&self, interface: SwIfIndex) -> Course {
        let course = |r: &Radv| Course {
            last: r.last,
            last_to_all: r.last_to_all,
            next: r.next,
            initial_left: r.initial_left,
            sent: r.sent,
            solicited: r.solicited,
            unanswered: r.unanswered,
        };
        self.radv.borrow().get(&interface).map(course).unwrap_or_default()
    }

    /// What is advertised on an interface.
    pub fn ra_config(&self, interface: SwIfIndex) -> RaConfig {
        self.radv.borrow().get(&interface).map(|r| r.config.clone()).unwrap_or_default()
    }

    /// Changes what is advertised on an interface; hosts hear it soon.
    ///
    /// # Errors
    /// There is no such Ethernet interface, or a value is out of range; nothing is changed then.
    pub fn set_ra_config(&self, interface: SwIfIndex, config: RaConfig) -> Result<(), NdError> {
        let name = self.interfaces.name(interface)?;
        if !self.interfaces.data(interface)?.flags().has(IfFlags::ETHERNET) {
            return Err(NdError::NotEthernet(name));
        }
        config.check()?;
        let old = self.ra_config(interface);
        if config.suppressed() && !old.suppressed() && !self.is_host(interface) {
            // RFC 4861 6.2.5: hosts stop using a router that stops.
            self.advertise(interface, &RaConfig { lifetime_secs: 0, ..old }, None);
        }
        self.radv.borrow_mut().entry(interface).or_default().config = config;
        self.follow_link_local(interface);
        Ok(())
    }

    /// Says once that hosts should no longer use this router, which keeps advertising its prefixes.
    ///
    /// # Errors
    /// As [`Nd::set_ra_config`].
    pub fn cease(&self, interface: SwIfIndex) -> Result<(), NdError> {
        let config = RaConfig { lifetime_secs: 0, ..self.ra_config(interface) };
        self.set_ra_config(interface, config)
    }

    pub(crate) fn link_mtu(&self, interface: SwIfIndex) -> u32 {
        let of = |d: shoal_interface::IfData| if d.mtu_ip6 == 0 { d.mtu } else { d.mtu_ip6 };
        self.interfaces.data(interface).map_or(0, |data| of(data).into())
    }

    fn may_advertise(&self, interface: SwIfIndex) -> bool {
        let spoken = !self.speakers(interface).is_empty();
        // RFC 4861 6.2.2: where it lets itself be configured as a host it is none of the link's routers.
        spoken && self.is_up(interface) && !self.ra_config(interface).suppressed() && !self.is_host(interface)
    }

    /// An interface is about to be a host's. RFC 4861 6.2.5: hosts that heard of this router hear that it is one no
    /// more.
    pub(super) fn stop_advertising(&self, interface: SwIfIndex) {
        let said = self.radv.borrow().get(&interface).is_some_and(|radv| radv.last.is_some());
        if said && self.may_advertise(interface) {
            self.advertise(interface, &RaConfig { lifetime_secs: 0, ..self.ra_config(interface) }, None);
        }
    }

    /// Starts or stops advertisements: there are some as long as there is a link-local address to send them from.
    pub(super) fn follow_link_local(&self, interface: SwIfIndex) {
        let (may, now) = (self.may_advertise(interface), self.now());
        let mut all = self.radv.borrow_mut();
        if !may {
            if let Some(radv) = all.get_mut(&interface) {
                (radv.next, radv.to) = (None, None);
            }
            return;
        }
        let radv = all.entry(interface).or_default();
        radv.initial_left = radv.config.initial.0;
        radv.next = Some(soonest(radv.last, now));
        radv.to = None;
        drop(all);
        self.ring();
    }

    /// A host asks. RFC 4861 6.2.6: it is answered within half a second, but not all the time.
    pub(super) fn router_solicited(&self, interface: SwIfIndex, from: Ipv6Addr, mac: MacAddress) {
        if !self.may_advertise(interface) {
            return;
        }
        let now = self.now();
        let mut all = self.radv.borrow_mut();
        let radv = all.entry(interface).or_default();
        radv.solicited = radv.solicited.wrapping_add(1);
        let due = soonest(radv.last, now);
        if radv.next.is_none_or(|next| next > due) {
            let alone = radv.config.unicast == Advertise::Yes && !from.is_unspecified();
            radv.next = Some(due);
            radv.to = alone.then_some((from, mac));
        } else {
            // More than one asks: all get the answer.
            radv.to = None;
            radv.unanswered = radv.unanswered.wrapping_add(1);
        }
        drop(all);
        self.ring();
    }

    pub(super) fn tick_advertisements(&self, now: Time) {
        let due: Vec<SwIfIndex> = {
            let all = self.radv.borrow();
            all.iter().filter(|(_, r)| r.next.is_some_and(|at| at <= now)).map(|(i, _)| *i).collect()
        };
        for interface in due {
            let (config, to) = {
                let mut all = self.radv.borrow_mut();
                let Some(radv) = all.get_mut(&interface) else { continue };
                let (min, max) = radv.config.interval;
                let mut wait = f64::from(min) + fastrand::f64() * f64::from(max - min.min(max));
                if radv.initial_left > 0 {
                    radv.initial_left -= 1;
                    wait = wait.min(radv.config.initial.1.into());
                }
                radv.next = Some(now.after(Duration::from_secs_f64(wait)));
                radv.last = Some(now);
                radv.sent = radv.sent.wrapping_add(1);
                if radv.to.is_none() {
                    radv.last_to_all = Some(now);
                }
                (radv.config.clone(), radv.to.take())
            };
            self.advertise(interface, &config, to);
        }
    }

    /// Sends an advertisement, from each that hosts hear.
    fn advertise(&self, interface: SwIfIndex, config: &RaConfig, to: Option<(Ipv6Addr, MacAddress)>) {
        if self.is_up(interface) {
            let all = self.speakers(interface);
            for speaker in all {
                self.advertise_as(interface, speaker, config, to);
            }
        }
    }

    fn advertise_as(
        &self,
        interface: SwIfIndex,
        VirtualSpeaker { address: src, mac }: VirtualSpeaker,
        config: &RaConfig,
        to: Option<(Ipv6Addr, MacAddress)>,
    ) {
        let way = match to {
            Some((dst, dst_mac)) => MessageRoute { src_mac: mac, dst_mac, src, dst },
            None => MessageRoute::to_group(mac, src, ALL_NODES),
        };
        let mut out = [0; LONGEST];
        let Some(place) = out.get_mut(HEADERS..) else { return };
        let ra =
            RouterAdvertisement::new(config.flags(), config.lifetime_secs).with_hop_limit(config.hop_limit);
        let mut message = ra.write(place);
        if config.link_layer == Advertise::Yes {
            message = message.source_link_layer(mac);
        }
        message = message.mtu(self.link_mtu(interface));
        let said = config.prefixes.iter().filter(|(_, p)| p.advertise == Advertise::Yes);
        // What the operator says of a prefix counts.
        let is_said = |prefix: Ip6Prefix| config.prefixes.iter().any(|(other, _)| *other == prefix);
        let delegated = self.delegated_prefixes(interface);
        let given = delegated.iter().filter(|(prefix, _)| !is_said(*prefix));
        for (prefix, p) in said.chain(given).take(MOST_PREFIXES) {
            let option = PrefixInformation::new(*prefix, p.flags, p.valid_secs, p.preferred_secs);
            message = message.prefix_information(&option);
        }
        let Some(len) = message.finish(way.src, way.dst) else { return };
        let written = way.write(&mut out, IpProtocol::ICMP6, HOP_LIMIT, len);
        if let (Some(()), Some(bytes)) = (written, out.get(..HEADERS + len))
            && self.send(interface, bytes)
        {
            self.counters.count_tx(Kind::RouterAdvertisement, 0, interface);
        }
    }
}

/// When the next advertisement may be sent: after a random moment, and not too soon after the last one.
fn soonest(last: Option<Time>, now: Time) -> Time {
    let delay = MOST_DELAY.mul_f64(fastrand::f64());
    let from = last.map_or(now, |last| last.after(BETWEEN).max(now));
    from.after(delay)
}
