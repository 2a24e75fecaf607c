//! Neighbor discovery for IPv6 (RFC 4861): its five messages, their validity and how to build them.
//! The options are in [`nd_options`](crate::nd_options).
//!
//! Each message has a `check`: it takes the IPv6 header and the ICMPv6 message (cut to the payload
//! length) and gives back the message with its options, or the first rule that is broken. A message
//! that breaks one is discarded silently (RFC 4861 sections 6.1, 7.1 and 8.1). The checksum is not
//! looked at: ICMPv6 has verified it before it knew the type.
//!
//! ```
//! use shoal_wire::ip6_address::{link_local_of, solicited_node};
//! use shoal_wire::nd::NeighborSolicitation;
//! use shoal_wire::{Ip6Header, IpProtocol, MacAddress};
//!
//! let (mac, target) = (MacAddress([2, 0xfe, 0, 0, 0, 1]), "2001:db8::1".parse()?);
//! let (src, dst) = (link_local_of(mac), solicited_node(target));
//! let mut bytes = [0; 64];
//! let len = NeighborSolicitation::new(target).write(&mut bytes).source_link_layer(mac).finish(src, dst);
//! assert_eq!(len, Some(32));
//!
//! let ip = Ip6Header::new(src, dst, IpProtocol::ICMP6, 255, 32);
//! let (message, options) = NeighborSolicitation::check(&ip, &bytes[..32]).unwrap();
//! assert_eq!((message.target(), options.source_link_layer()), (target, Some(mac)));
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

use std::error::Error;
use std::fmt;
use std::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::ip6_address::{is_link_local, is_solicited_node};
use crate::nd_options::{NdOptions, NdWriter};
use crate::{Icmp6Header, Icmp6Type, Ip6Header};

/// The hop limit of every message: one that was routed has less (RFC 4861 section 3.1).
pub const HOP_LIMIT: u8 = 255;

/// The rule that a message breaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NdInvalid {
    /// The hop limit is not 255: the message comes from another link.
    HopLimit,
    /// The ICMP type is another message's.
    Type,
    /// The ICMP code is not 0.
    Code,
    /// The message is shorter than its fixed part.
    Length,
    /// An option has length zero or reaches past the message.
    Options,
    /// The source of an advertisement of a router, or of a redirect, is not link-local.
    Source,
    /// A solicitation from the unspecified address goes to no solicited-node group.
    Destination,
    /// The target is a multicast address, or that of a redirect neither link-local nor the destination.
    Target,
    /// The destination to redirect is a multicast address.
    RedirectedDestination,
    /// The source is unspecified but an option tells its link-layer address.
    SourceLinkLayer,
    /// An advertisement to a group claims to have been solicited.
    Solicited,
}

impl fmt::Display for NdInvalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HopLimit => "hop limit is not 255",
            Self::Type => "ICMP type of another message",
            Self::Code => "ICMP code is not 0",
            Self::Length => "message too short",
            Self::Options => "malformed option",
            Self::Source => "source address is not link-local",
            Self::Destination => {
                "source address is unspecified but the destination is no solicited-node group"
            }
            Self::Target => "bad target address",
            Self::RedirectedDestination => "redirected destination is multicast",
            Self::SourceLinkLayer => "source address is unspecified but has a link-layer address",
            Self::Solicited => "solicited advertisement to a group",
        })
    }
}

impl Error for NdInvalid {}

macro_rules! flags {
    ($(#[$doc:meta])* $name:ident { $($(#[$flag_doc:meta])* $flag:ident = $bit:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
        pub struct $name(pub u8);

        impl $name {
            $($(#[$flag_doc])* pub const $flag: Self = Self($bit);)*

            /// Every flag of `other` is set.
            #[inline(always)]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    };
}

flags! {
    /// The flags of a router advertisement (RFC 4861 section 4.2). Bits 0x18 are the router's
    /// preference (RFC 4191 section 2.2).
    RaFlags {
        /// M: addresses come by DHCPv6.
        MANAGED = 0x80;
        /// O: other configuration comes by DHCPv6.
        OTHER = 0x40;
        /// Preference: high.
        PREFERENCE_HIGH = 0x08;
        /// Preference: low.
        PREFERENCE_LOW = 0x18;
    }
}

flags! {
    /// The flags of a neighbor advertisement (RFC 4861 section 4.4).
    NaFlags {
        /// R: the sender is a router.
        ROUTER = 0x80;
        /// S: answers a solicitation of the destination.
        SOLICITED = 0x40;
        /// O: replaces a cached link-layer address.
        OVERRIDE = 0x20;
    }
}

flags! {
    /// The flags of a prefix information option (RFC 4861 section 4.6.2).
    PrefixFlags {
        /// L: addresses of the prefix are on the link.
        ON_LINK = 0x80;
        /// A: hosts may make addresses of the prefix.
        AUTONOMOUS = 0x40;
    }
}

/// Gives a message its constants, `check` and `write`.
macro_rules! message {
    ($name:ident, $kind:ident, $len:literal, $section:literal, $rules:expr) => {
        impl $name {
            /// Bytes before the options.
            pub const LEN: usize = $len;

            #[doc = concat!("The message and its options if every rule of RFC 4861 section ", $section, " holds.")]
            #[inline]
            pub fn check<'a>(ip: &Ip6Header, message: &'a [u8]) -> Result<(&'a Self, NdOptions<'a>), NdInvalid> {
                if ip.hop_limit() != HOP_LIMIT {
                    return Err(NdInvalid::HopLimit);
                }
                let (fixed, options) = Self::ref_from_prefix(message).map_err(|_| NdInvalid::Length)?;
                if fixed.header.kind() != Icmp6Type::$kind {
                    return Err(NdInvalid::Type);
                }
                if fixed.header.code() != 0 {
                    return Err(NdInvalid::Code);
                }
                let options = NdOptions::new(options).map_err(|_| NdInvalid::Options)?;
                let rules: fn(&Self, &Ip6Header, &NdOptions<'_>) -> Result<(), NdInvalid> = $rules;
                rules(fixed, ip, &options)?;
                Ok((fixed, options))
            }

            /// Starts to write the message into `out`; options follow, then
            /// [`finish`](NdWriter::finish).
            pub fn write<'a>(&self, out: &'a mut [u8]) -> NdWriter<'a> {
                NdWriter::new(out, self.as_bytes())
            }
        }
    };
}

fn require(holds: bool, rule: NdInvalid) -> Result<(), NdInvalid> {
    if holds { Ok(()) } else { Err(rule) }
}

/// "Which routers are here?" (RFC 4861 section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RouterSolicitation {
    header: Icmp6Header,
    reserved: U32,
}

message!(RouterSolicitation, ROUTER_SOLICITATION, 8, "6.1.1", |_, ip, options| {
    let anonymous = ip.src().is_unspecified();
    require(!anonymous || options.source_link_layer().is_none(), NdInvalid::SourceLinkLayer)
});

impl RouterSolicitation {
    /// The message; it has no fields.
    pub const fn new() -> Self {
        Self { header: Icmp6Header::new(Icmp6Type::ROUTER_SOLICITATION, 0), reserved: U32::ZERO }
    }
}

impl Default for RouterSolicitation {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for RouterSolicitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header.fmt(f)
    }
}

/// "I am a router" (RFC 4861 section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RouterAdvertisement {
    header: Icmp6Header,
    hop_limit: u8,
    flags: u8,
    router_lifetime: U16,
    reachable_time: U32,
    retrans_timer: U32,
}

message!(RouterAdvertisement, ROUTER_ADVERTISEMENT, 16, "6.1.2", |_, ip, _| {
    require(is_link_local(ip.src()), NdInvalid::Source)
});

impl RouterAdvertisement {
    /// An advertisement that leaves hop limit and timers to the hosts: zero is "unspecified".
    /// A lifetime of 0 seconds says "no default router".
    pub const fn new(flags: RaFlags, router_lifetime_secs: u16) -> Self {
        Self {
            header: Icmp6Header::new(Icmp6Type::ROUTER_ADVERTISEMENT, 0),
            hop_limit: 0,
            flags: flags.0,
            router_lifetime: U16::new(router_lifetime_secs),
            reachable_time: U32::ZERO,
            retrans_timer: U32::ZERO,
        }
    }

    /// The same with the hop limit that hosts should use; 0: no advice.
    pub const fn with_hop_limit(mut self, hop_limit: u8) -> Self {
        self.hop_limit = hop_limit;
        self
    }

    /// The same with the reachable time and the time between solicitations in milliseconds; 0: no
    /// advice.
    pub const fn with_timers_ms(mut self, reachable_time_ms: u32, retrans_timer_ms: u32) -> Self {
        self.reachable_time = U32::new(reachable_time_ms);
        self.retrans_timer = U32::new(retrans_timer_ms);
        self
    }

    /// The hop limit that hosts should use; 0: no advice.
    pub const fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// The flags.
    pub const fn flags(&self) -> RaFlags {
        RaFlags(self.flags)
    }

    /// How long the sender is a default router, in seconds; 0: it is none.
    pub const fn router_lifetime_secs(&self) -> u16 {
        self.router_lifetime.get()
    }

    /// How long a confirmed neighbor is reachable, in milliseconds; 0: no advice.
    pub const fn reachable_time_ms(&self) -> u32 {
        self.reachable_time.get()
    }

    /// Time between solicitations in milliseconds; 0: no advice.
    pub const fn retrans_timer_ms(&self) -> u32 {
        self.retrans_timer.get()
    }
}

impl fmt::Display for RouterAdvertisement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  hop limit {}, flags 0x{:02x}", self.header, self.hop_limit, self.flags)?;
        write!(f, ", router lifetime {}", self.router_lifetime_secs())?;
        write!(f, ", reachable time {}", self.reachable_time_ms())?;
        write!(f, ", retransmit timer {}", self.retrans_timer_ms())
    }
}

/// "Who has the target?", or "are you still there?" (RFC 4861 section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NeighborSolicitation {
    header: Icmp6Header,
    reserved: U32,
    target: [u8; 16],
}

message!(NeighborSolicitation, NEIGHBOR_SOLICITATION, 24, "7.1.1", |message, ip, options| {
    require(!message.target().is_multicast(), NdInvalid::Target)?;
    if !ip.src().is_unspecified() {
        return Ok(());
    }
    require(is_solicited_node(ip.dst()), NdInvalid::Destination)?;
    require(options.source_link_layer().is_none(), NdInvalid::SourceLinkLayer)
});

impl NeighborSolicitation {
    /// Asks for `target`.
    pub const fn new(target: Ipv6Addr) -> Self {
        let header = Icmp6Header::new(Icmp6Type::NEIGHBOR_SOLICITATION, 0);
        Self { header, reserved: U32::ZERO, target: target.octets() }
    }

    /// The address asked for.
    #[inline(always)]
    pub const fn target(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.target)
    }
}

impl fmt::Display for NeighborSolicitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  target address {}", self.header, self.target())
    }
}

/// "I have the target" (RFC 4861 section 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NeighborAdvertisement {
    header: Icmp6Header,
    flags: u8,
    reserved: [u8; 3],
    target: [u8; 16],
}

message!(NeighborAdvertisement, NEIGHBOR_ADVERTISEMENT, 24, "7.1.2", |message, ip, _| {
    require(!message.target().is_multicast(), NdInvalid::Target)?;
    let solicited = message.flags().contains(NaFlags::SOLICITED);
    require(!(solicited && ip.dst().is_multicast()), NdInvalid::Solicited)
});

impl NeighborAdvertisement {
    /// Says that `target` is the sender's.
    pub const fn new(target: Ipv6Addr, flags: NaFlags) -> Self {
        let header = Icmp6Header::new(Icmp6Type::NEIGHBOR_ADVERTISEMENT, 0);
        Self { header, flags: flags.0, reserved: [0; 3], target: target.octets() }
    }

    /// The flags.
    #[inline(always)]
    pub const fn flags(&self) -> NaFlags {
        NaFlags(self.flags)
    }

    /// The sender's address.
    #[inline(always)]
    pub const fn target(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.target)
    }
}

impl fmt::Display for NeighborAdvertisement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  target address {}", self.header, self.target())?;
        let mut separator = ", flags ";
        for (flag, name) in
            [(NaFlags::ROUTER, "ROUTER"), (NaFlags::SOLICITED, "SOLICITED"), (NaFlags::OVERRIDE, "OVERRIDE")]
        {
            if self.flags().contains(flag) {
                write!(f, "{separator}{name}")?;
                separator = " ";
            }
        }
        Ok(())
    }
}

/// "There is a better way to the destination" (RFC 4861 section 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Redirect {
    header: Icmp6Header,
    reserved: U32,
    target: [u8; 16],
    destination: [u8; 16],
}

// RFC 4861 8.1: that the source is the current first hop towards the destination is the caller's
// to check; it needs the routes.
message!(Redirect, REDIRECT, 40, "8.1, but that the sender is the first hop in use", |message, ip, _| {
    require(is_link_local(ip.src()), NdInvalid::Source)?;
    require(!message.destination().is_multicast(), NdInvalid::RedirectedDestination)?;
    require(is_link_local(message.target()) || message.target == message.destination, NdInvalid::Target)
});

impl Redirect {
    /// Says that `destination` is reached through `target`, or is itself on the link when both are
    /// the same.
    pub const fn new(target: Ipv6Addr, destination: Ipv6Addr) -> Self {
        let header = Icmp6Header::new(Icmp6Type::REDIRECT, 0);
        Self { header, reserved: U32::ZERO, target: target.octets(), destination: destination.octets() }
    }

    /// The better first hop.
    pub const fn target(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.target)
    }

    /// The destination that has one.
    pub const fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.destination)
    }
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  target address {}", self.header, self.target())?;
        write!(f, ", destination address {}", self.destination())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IpProtocol, MacAddress, icmp6};

    const MAC: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 1]);

    fn ip6(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn ip(src: &str, dst: &str) -> Ip6Header {
        Ip6Header::new(ip6(src), ip6(dst), IpProtocol::ICMP6, HOP_LIMIT, 0)
    }

    /// The bytes of `message` with a source link-layer address option.
    fn with_mac(message: &[u8]) -> Vec<u8> {
        [message, &[1, 1], &MAC.0].concat()
    }

    #[test]
    fn every_message_has_its_size_on_the_wire() {
        assert_eq!(size_of::<RouterSolicitation>(), RouterSolicitation::LEN);
        assert_eq!(size_of::<RouterAdvertisement>(), RouterAdvertisement::LEN);
        assert_eq!(size_of::<NeighborSolicitation>(), NeighborSolicitation::LEN);
        assert_eq!(size_of::<NeighborAdvertisement>(), NeighborAdvertisement::LEN);
        assert_eq!(size_of::<Redirect>(), Redirect::LEN);
    }

    #[test]
    fn rules_of_every_message_are_checked() {
        // RFC 4861 6.1.1: hop limit, code, length, options.
        let from = |hop_limit| {
            let mut ip = ip("fe80::1", "ff02::2");
            ip.set_hop_limit(hop_limit);
            ip
        };
        let good = with_mac(RouterSolicitation::new().as_bytes());
        let check = |ip: &Ip6Header, bytes: &[u8]| RouterSolicitation::check(ip, bytes).map(|_| ()).err();
        assert_eq!(check(&from(255), &good), None);
        assert_eq!(check(&from(254), &good), Some(NdInvalid::HopLimit));
        assert_eq!(check(&from(255), &good[..7]), Some(NdInvalid::Length));
        assert_eq!(check(&from(255), &good[..15]), Some(NdInvalid::Options));
        for (at, value, want) in
            [(0, 134, NdInvalid::Type), (1, 1, NdInvalid::Code), (9, 0, NdInvalid::Options)]
        {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(check(&from(255), &bad), Some(want));
        }
    }

    #[test]
    fn solicitations_from_the_unspecified_address_tell_no_link_layer_address() {
        // RFC 4861 6.1.1 and 7.1.1.
        let anonymous = ip("::", "ff02::1:ff00:1");
        let router = with_mac(RouterSolicitation::new().as_bytes());
        assert_eq!(RouterSolicitation::check(&anonymous, &router), Err(NdInvalid::SourceLinkLayer));
        assert!(RouterSolicitation::check(&anonymous, &router[..8]).is_ok());
        let neighbor = with_mac(NeighborSolicitation::new(ip6("2001:db8::1")).as_bytes());
        assert_eq!(NeighborSolicitation::check(&anonymous, &neighbor), Err(NdInvalid::SourceLinkLayer));
        assert!(NeighborSolicitation::check(&anonymous, &neighbor[..24]).is_ok());
        let elsewhere = NeighborSolicitation::check(&ip("::", "2001:db8::1"), &neighbor[..24]);
        assert_eq!(elsewhere, Err(NdInvalid::Destination));
        assert!(NeighborSolicitation::check(&ip("fe80::2", "2001:db8::1"), &neighbor).is_ok());
        let group = NeighborSolicitation::new(ip6("ff02::1"));
        assert_eq!(NeighborSolicitation::check(&anonymous, group.as_bytes()), Err(NdInvalid::Target));
    }

    #[test]
    fn advertisements_keep_their_rules() {
        // RFC 4861 6.1.2: only from a link-local address.
        let router = RouterAdvertisement::new(RaFlags::OTHER, 1800).with_hop_limit(64).with_timers_ms(1, 2);
        assert!(RouterAdvertisement::check(&ip("fe80::1", "ff02::1"), router.as_bytes()).is_ok());
        let routed = RouterAdvertisement::check(&ip("2001:db8::1", "ff02::1"), router.as_bytes());
        assert_eq!(routed, Err(NdInvalid::Source));
        // RFC 4861 7.1.2: hosts do not solicit for a group.
        let solicited = NeighborAdvertisement::new(ip6("fe80::1"), NaFlags::SOLICITED | NaFlags::ROUTER);
        let to_group = NeighborAdvertisement::check(&ip("fe80::1", "ff02::1"), solicited.as_bytes());
        assert_eq!(to_group, Err(NdInvalid::Solicited));
        assert!(NeighborAdvertisement::check(&ip("fe80::1", "fe80::2"), solicited.as_bytes()).is_ok());
        let group = NeighborAdvertisement::new(ip6("ff05::1"), NaFlags::OVERRIDE);
        let target = NeighborAdvertisement::check(&ip("fe80::1", "ff02::1"), group.as_bytes());
        assert_eq!(target, Err(NdInvalid::Target));
    }

    #[test]
    fn redirects_keep_their_rules() {
        // RFC 4861 8.1.
        let check = |src: &str, target: &str, destination: &str| {
            let redirect = Redirect::new(ip6(target), ip6(destination));
            Redirect::check(&ip(src, "2001:db8::9"), redirect.as_bytes()).map(|_| ()).err()
        };
        assert_eq!(check("fe80::1", "fe80::2", "2001:db8::5"), None);
        assert_eq!(check("fe80::1", "2001:db8::5", "2001:db8::5"), None);
        assert_eq!(check("fe80::1", "2001:db8::6", "2001:db8::5"), Some(NdInvalid::Target));
        assert_eq!(check("fe80::1", "fe80::2", "ff0e::5"), Some(NdInvalid::RedirectedDestination));
        assert_eq!(check("2001:db8::1", "fe80::2", "2001:db8::5"), Some(NdInvalid::Source));
    }

    #[test]
    fn prints_as_vpp_does() {
        let solicitation = NeighborSolicitation::new(ip6("2001:db8::1")).to_string();
        assert_eq!(solicitation, "ICMP neighbor_solicitation checksum 0x0\n  target address 2001:db8::1");
        let flags = NaFlags::SOLICITED | NaFlags::OVERRIDE;
        let advertisement = NeighborAdvertisement::new(ip6("fe80::1"), flags).to_string();
        assert!(advertisement.ends_with("address fe80::1, flags SOLICITED OVERRIDE"), "{advertisement}");
        let router = RouterAdvertisement::new(RaFlags::MANAGED, 1800).with_hop_limit(64).to_string();
        assert!(router.contains("\n  hop limit 64, flags 0x80, router lifetime 1800, reach"), "{router}");
        let redirect = Redirect::new(ip6("fe80::1"), ip6("::1")).to_string();
        assert!(redirect.ends_with("\n  target address fe80::1, destination address ::1"), "{redirect}");
        assert_eq!(RouterSolicitation::default().to_string(), "ICMP router_solicitation checksum 0x0");
    }

    #[test]
    fn what_is_written_has_a_right_checksum() {
        let (src, dst) = (ip6("fe80::1"), ip6("ff02::1"));
        let mut out = [0xff; 100];
        let len = NeighborAdvertisement::new(src, NaFlags::OVERRIDE)
            .write(&mut out)
            .target_link_layer(MAC)
            .finish(src, dst);
        assert_eq!(len, Some(32));
        assert!(icmp6::verify(src, dst, &out[..32]));
        let (message, options) = NeighborAdvertisement::check(&ip("fe80::1", "ff02::1"), &out[..32]).unwrap();
        assert_eq!((message.target(), options.target_link_layer()), (src, Some(MAC)));
        assert_eq!(RouterSolicitation::new().write(&mut out[..7]).finish(src, dst), None);
    }
}
