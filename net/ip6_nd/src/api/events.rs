//! `want_ip6_ra_events`, `want_ip6_dad_events`: what other routers say, and what becomes of own addresses.

use std::net::Ipv6Addr;
use std::rc::Rc;

use shoal_message::{Count, InterfaceIndex, Message, Prefix, Retval, Value};
use shoal_module::Control;
use shoal_module::api::{Call, Request, Subscribers};

use crate::fact::{AdvertisedLink, Prefixes};
use crate::observe::Observed;
use crate::{AddressState, Key, Nd};

/// The clients that want events, and which.
#[derive(Default)]
struct Watchers {
    advertisements: Subscribers,
    addresses: Subscribers,
}

pub(super) fn follow(control: &Rc<Control>, nd: &Nd) {
    let watchers = control.put(Watchers::default());
    let control_of = Rc::downgrade(control);
    nd.observe(move |what| {
        let Some(control) = control_of.upgrade() else { return };
        match what {
            Observed::Advertised { from, said, prefixes } => {
                if !watchers.advertisements.is_empty() {
                    let event = Ip6RaEvent::new(*from, said, prefixes);
                    watchers.advertisements.publish(&control, |()| true, &event);
                }
            }
            Observed::Address { key, standing, asked, transmits } => {
                let event = Ip6DadEvent {
                    state: match standing {
                        AddressState::Tentative => Ip6DadState::Tentative,
                        AddressState::Ours => Ip6DadState::Preferred,
                        AddressState::Duplicate => Ip6DadState::Duplicate,
                    },
                    sw_if_index: InterfaceIndex(key.0.0),
                    address: key.1,
                    dad_count: u8::try_from(*asked).unwrap_or(u8::MAX),
                    dad_transmits: u8::try_from(*transmits).unwrap_or(u8::MAX),
                };
                watchers.addresses.publish(&control, |()| true, &event);
            }
        }
    });
}

fn watchers(call: &Call) -> Result<Rc<Watchers>, Retval> {
    call.get::<Watchers>().map_err(|_| Retval::UNSPECIFIED)
}

/// Wants to know of router advertisements that are received, or no longer.
#[derive(Message)]
#[message(request, events = Ip6RaEvent)]
pub struct WantIp6RaEvents {
    pub enable: bool,
    /// What is put into the events.
    pub pid: u32,
}

impl Request for WantIp6RaEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        watchers(call)?.advertisements.set(call, self.pid, (), self.enable)
    }
}

/// A router advertised itself.
#[derive(Message)]
#[message(event)]
pub struct Ip6RaEvent {
    /// The link.
    pub sw_if_index: InterfaceIndex,
    pub router_addr: Ipv6Addr,
    /// The hop limit that hosts should use; 0 for no advice.
    pub current_hop_limit: u8,
    /// As in the packet.
    pub flags: u8,
    pub router_lifetime_in_sec: u16,
    /// 0 for no advice.
    pub neighbor_reachable_time_in_msec: u32,
    /// 0 for no advice.
    pub time_in_msec_between_retransmitted_neighbor_solicitations: u32,
    pub n_prefixes: Count<u32>,
    #[counted_by(n_prefixes)]
    pub prefixes: Vec<Ip6RaPrefixInfo>,
}

/// A prefix that a router advertised.
#[derive(Value, Clone, Copy, Debug, PartialEq)]
pub struct Ip6RaPrefixInfo {
    pub prefix: Prefix,
    /// As in the packet.
    pub flags: u8,
    /// In seconds; all bits set for ever.
    pub valid_time: u32,
    /// In seconds; all bits set for ever.
    pub preferred_time: u32,
}

impl Ip6RaEvent {
    fn new((interface, from): Key, said: &AdvertisedLink, prefixes: &Prefixes) -> Self {
        let info = prefixes.iter().flatten().filter_map(|info| {
            let prefix = info.prefix()?;
            Some(Ip6RaPrefixInfo {
                prefix: Prefix { address: prefix.addr().into(), len: prefix.len() },
                flags: info.flags().0,
                valid_time: info.valid_lifetime_secs(),
                preferred_time: info.preferred_lifetime_secs(),
            })
        });
        Ip6RaEvent {
            sw_if_index: InterfaceIndex(interface.0),
            router_addr: from,
            current_hop_limit: said.hop_limit,
            flags: said.flags.0,
            router_lifetime_in_sec: said.lifetime_secs,
            neighbor_reachable_time_in_msec: said.reachable_ms,
            time_in_msec_between_retransmitted_neighbor_solicitations: said.retransmit_ms,
            n_prefixes: Count::default(),
            prefixes: info.collect(),
        }
    }
}

/// Wants to know whether this router's new addresses are its alone, or no longer.
#[derive(Message)]
#[message(request, events = Ip6DadEvent)]
pub struct WantIp6DadEvents {
    pub enable_disable: bool,
    /// What is put into the events.
    pub pid: u32,
}

impl Request for WantIp6DadEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        watchers(call)?.addresses.set(call, self.pid, (), self.enable_disable)
    }
}

/// Whether an address is this router's alone.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(width = u8)]
pub enum Ip6DadState {
    /// Nothing is known.
    #[entry("IP6_DAD_STATE_IDLE")]
    Idle = 0,
    /// The link is being asked.
    #[entry("IP6_DAD_STATE_TENTATIVE")]
    Tentative = 1,
    /// It is.
    #[entry("IP6_DAD_STATE_PREFERRED")]
    Preferred = 2,
    /// Another station has it.
    #[entry("IP6_DAD_STATE_DUPLICATE")]
    Duplicate = 3,
}

/// What became of an address of this router.
#[derive(Message)]
#[message(event)]
pub struct Ip6DadEvent {
    pub state: Ip6DadState,
    /// The link.
    pub sw_if_index: InterfaceIndex,
    pub address: Ipv6Addr,
    /// How often the link has been asked.
    pub dad_count: u8,
    /// How often it is asked at most.
    pub dad_transmits: u8,
}
