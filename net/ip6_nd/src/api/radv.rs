//! `sw_interface_ip6nd_ra_*`: advertisements to hosts of a link.

use shoal_interface::{IfFlags, Interfaces, SwIfIndex};
use shoal_ip6::Ip6;
use shoal_message::{Count, InterfaceIndex, Message, Prefix, Retval, Value};
use shoal_module::api::{Call, Dump, Request};
use shoal_wire::Ip6Prefix;
use shoal_wire::nd::PrefixFlags;

use super::{interface, nd};
use crate::{Advertise, Nd, NdError, RaConfig};

/// Sets what hosts on a link are told by router advertisements. What is 0 stays as it is.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceIp6ndRaConfig {
    /// The link.
    pub sw_if_index: InterfaceIndex,
    /// No advertisements are sent.
    pub suppress: u8,
    /// Hosts get addresses by DHCPv6.
    pub managed: u8,
    /// Hosts get other settings by DHCPv6.
    pub other: u8,
    /// The link-layer address is not told.
    pub ll_option: u8,
    /// A host that asks is answered alone.
    pub send_unicast: u8,
    /// Hosts should no longer use this router.
    pub cease: u8,
    /// What is set here goes back to its default.
    pub is_no: bool,
    /// Whether the lifetime is set.
    pub default_router: u8,
    /// Most seconds between two advertisements.
    pub max_interval: u32,
    /// Least seconds between two advertisements.
    pub min_interval: u32,
    /// For how many seconds hosts may use this router.
    pub lifetime: u32,
    /// How many advertisements are sent sooner at the beginning.
    pub initial_count: u32,
    /// Most seconds between those.
    pub initial_interval: u32,
}

impl Request for SwInterfaceIp6ndRaConfig {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (interface, nd) = (interface(call, self.sw_if_index)?, nd(call)?);
        let (mut config, default) = (nd.ra_config(interface), RaConfig::default());
        let (said, unsaid) =
            if self.is_no { (Advertise::No, Advertise::Yes) } else { (Advertise::Yes, Advertise::No) };
        for (word, value, to) in [
            (self.suppress, unsaid, &mut config.send),
            (self.managed, said, &mut config.managed),
            (self.other, said, &mut config.other),
            (self.ll_option, unsaid, &mut config.link_layer),
            (self.send_unicast, said, &mut config.unicast),
        ] {
            if word != 0 {
                *to = value;
            }
        }
        if self.is_no {
            self.go_back(&mut config, &default);
        } else {
            self.set(&mut config)?;
        }
        nd.set_ra_config(interface, config)?;
        if self.cease != 0 && !self.is_no {
            nd.cease(interface)?;
        }
        Ok(())
    }
}

impl SwInterfaceIp6ndRaConfig {
    fn go_back(&self, config: &mut RaConfig, default: &RaConfig) {
        if self.max_interval != 0 || self.min_interval != 0 {
            config.interval = default.interval;
        }
        if self.default_router != 0 || self.cease != 0 {
            config.lifetime_secs = default.lifetime_secs;
        }
        if self.initial_count != 0 {
            config.initial.0 = default.initial.0;
        }
        if self.initial_interval != 0 {
            config.initial.1 = default.initial.1;
        }
    }

    fn set(&self, config: &mut RaConfig) -> Result<(), Retval> {
        if self.max_interval != 0 {
            config.interval = ((self.max_interval.saturating_mul(3) / 4).max(3), self.max_interval);
        }
        if self.min_interval != 0 {
            config.interval.0 = self.min_interval;
        }
        if self.default_router != 0 {
            config.lifetime_secs = u16::try_from(self.lifetime).map_err(|_| Retval::INVALID_VALUE)?;
        } else if config.lifetime_secs != 0 {
            // RFC 4861 6.2.1: no less than the interval, which clients set alone.
            let least = u16::try_from(config.interval.1).map_err(|_| Retval::INVALID_VALUE)?;
            config.lifetime_secs = config.lifetime_secs.max(least);
        }
        if self.initial_count != 0 {
            config.initial.0 = self.initial_count;
        }
        if self.initial_interval != 0 {
            config.initial.1 = self.initial_interval;
        }
        Ok(())
    }
}

/// Tells hosts on a link of a prefix, or no longer.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceIp6ndRaPrefix {
    /// The link.
    pub sw_if_index: InterfaceIndex,
    pub prefix: Prefix,
    /// The lifetimes are 30 and 7 days.
    pub use_default: bool,
    /// It is kept and not told.
    pub no_advertise: bool,
    /// Its addresses are not advertised as on the link.
    pub off_link: bool,
    /// Hosts do not make addresses of it.
    pub no_autoconfig: bool,
    /// As `off_link`.
    pub no_onlink: bool,
    /// It is told no longer.
    pub is_no: bool,
    /// For how many seconds it is valid; all bits set for ever.
    pub val_lifetime: u32,
    /// For how many seconds addresses made of it are preferred.
    pub pref_lifetime: u32,
}

impl Request for SwInterfaceIp6ndRaPrefix {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (interface, nd) = (interface(call, self.sw_if_index)?, nd(call)?);
        let std::net::IpAddr::V6(address) = self.prefix.address else { return Err(Retval::INVALID_VALUE) };
        let prefix = Ip6Prefix::new(address, self.prefix.len).map_err(|_| Retval::INVALID_VALUE)?;
        let (prefix, mut config) = (prefix.normalized(), nd.ra_config(interface));
        let before = config.prefixes.len();
        config.prefixes.retain(|(old, _)| *old != prefix);
        if !self.is_no {
            config.prefixes.push((prefix, self.settings()));
        } else if config.prefixes.len() == before {
            return Err(NdError::Unknown(prefix, interface.to_string()).into());
        }
        Ok(nd.set_ra_config(interface, config)?)
    }
}

impl SwInterfaceIp6ndRaPrefix {
    fn settings(&self) -> crate::Prefix {
        let mut settings = crate::Prefix::default();
        if !self.use_default {
            (settings.valid_secs, settings.preferred_secs) = (self.val_lifetime, self.pref_lifetime);
        }
        let mut flags = PrefixFlags::default();
        if !self.off_link && !self.no_onlink {
            flags = flags | PrefixFlags::ON_LINK;
        }
        if !self.no_autoconfig {
            flags = flags | PrefixFlags::AUTONOMOUS;
        }
        settings.flags = flags;
        if self.no_advertise {
            settings.advertise = Advertise::No;
        }
        settings
    }
}

/// Asks what hosts are told, on one link or all.
#[derive(Message)]
#[message(request, details = SwInterfaceIp6ndRaDetails)]
pub struct SwInterfaceIp6ndRaDump {
    /// The link; all bits set for all.
    pub sw_if_index: InterfaceIndex,
}

/// What hosts on a link are told. Times are in seconds; those of a moment count from the router's start.
#[derive(Message)]
#[message(reply)]
pub struct SwInterfaceIp6ndRaDetails {
    pub sw_if_index: InterfaceIndex,
    /// The hop limit that hosts should use.
    pub cur_hop_limit: u8,
    pub adv_managed_flag: bool,
    pub adv_other_flag: bool,
    pub adv_router_lifetime: u16,
    /// 0: hosts use their own.
    pub adv_neighbor_reachable_time: u32,
    /// 0: hosts use their own.
    pub adv_retransmit_interval: u32,
    pub adv_link_mtu: u32,
    /// Whether advertisements are sent.
    pub send_radv: bool,
    /// Whether hosts are told not to use this router.
    pub cease_radv: bool,
    pub send_unicast: bool,
    pub adv_link_layer_address: bool,
    pub max_radv_interval: f64,
    pub min_radv_interval: f64,
    /// When the last one was sent; 0 for never.
    pub last_radv_time: f64,
    /// When the last one to all was sent; 0 for never.
    pub last_multicast_time: f64,
    /// When the next one is due; 0 for never.
    pub next_multicast_time: f64,
    pub initial_adverts_count: u32,
    pub initial_adverts_interval: f64,
    /// Whether those of the beginning have been sent.
    pub initial_adverts_sent: bool,
    pub n_advertisements_sent: u32,
    pub n_solicitations_rcvd: u32,
    /// Of those, how many brought no answer of their own.
    pub n_solicitations_dropped: u32,
    pub n_prefixes: Count<u32>,
    #[counted_by(n_prefixes)]
    pub prefixes: Vec<Ip6ndRaPrefix>,
}

/// An advertised prefix.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct Ip6ndRaPrefix {
    pub prefix: Prefix,
    pub onlink_flag: bool,
    pub autonomous_flag: bool,
    pub val_lifetime: u32,
    pub pref_lifetime: u32,
    /// 0: its lifetime restarts with each advertisement.
    pub valid_lifetime_expires: f64,
    /// 0, as above.
    pub pref_lifetime_expires: f64,
    /// Whether its lifetimes run down.
    pub decrement_lifetime_flag: bool,
    /// Whether it is kept and not told.
    pub no_advertise: bool,
}

impl Dump for SwInterfaceIp6ndRaDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwInterfaceIp6ndRaDetails> + 'static {
        let (nd, interfaces) = (call.get::<Nd>().ok(), call.get::<Interfaces>().ok());
        let ip6 = call.get::<Ip6>().map(|ip6| ip6.interfaces()).unwrap_or_default();
        let all = self.sw_if_index == InterfaceIndex::NONE;
        let wanted = ip6.into_iter().filter(move |i| all || i.0 == self.sw_if_index.0);
        wanted.filter_map(move |interface| {
            let data = interfaces.as_ref()?.data(interface).ok()?;
            // Elsewhere there are no hosts to tell.
            data.flags().has(IfFlags::ETHERNET).then_some(())?;
            Some(details(nd.as_ref()?, interface))
        })
    }
}

fn details(nd: &Nd, interface: SwIfIndex) -> SwInterfaceIp6ndRaDetails {
    let (config, course) = (nd.ra_config(interface), nd.ra_course(interface));
    let yes = |what: Advertise| what == Advertise::Yes;
    let moment = |at: Option<shoal_graph::clock::Time>| at.map_or(0.0, |at| at.0 as f64 / 1e9);
    let prefix = |(prefix, settings): &(Ip6Prefix, crate::Prefix)| Ip6ndRaPrefix {
        prefix: Prefix { address: prefix.addr().into(), len: prefix.len() },
        onlink_flag: settings.flags.contains(PrefixFlags::ON_LINK),
        autonomous_flag: settings.flags.contains(PrefixFlags::AUTONOMOUS),
        val_lifetime: settings.valid_secs,
        pref_lifetime: settings.preferred_secs,
        valid_lifetime_expires: 0.0,
        pref_lifetime_expires: 0.0,
        decrement_lifetime_flag: false,
        no_advertise: !yes(settings.advertise),
    };
    SwInterfaceIp6ndRaDetails {
        sw_if_index: InterfaceIndex(interface.0),
        cur_hop_limit: config.hop_limit,
        adv_managed_flag: yes(config.managed),
        adv_other_flag: yes(config.other),
        adv_router_lifetime: config.lifetime_secs,
        adv_neighbor_reachable_time: 0,
        adv_retransmit_interval: 0,
        adv_link_mtu: nd.link_mtu(interface),
        send_radv: yes(config.send),
        cease_radv: config.lifetime_secs == 0,
        send_unicast: yes(config.unicast),
        adv_link_layer_address: yes(config.link_layer),
        max_radv_interval: config.interval.1.into(),
        min_radv_interval: config.interval.0.into(),
        last_radv_time: moment(course.last),
        last_multicast_time: moment(course.last_to_all),
        next_multicast_time: moment(course.next),
        initial_adverts_count: config.initial.0,
        initial_adverts_interval: config.initial.1.into(),
        initial_adverts_sent: course.last.is_some() && course.initial_left == 0,
        n_advertisements_sent: course.sent,
        n_solicitations_rcvd: course.solicited,
        n_solicitations_dropped: course.unanswered,
        n_prefixes: Count::default(),
        prefixes: config.prefixes.iter().map(prefix).collect(),
    }
}
