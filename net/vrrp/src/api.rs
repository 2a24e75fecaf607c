//! Messages: `vrrp.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::net::IpAddr;
use std::rc::Rc;

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_message::{Count, InterfaceIndex, MacAddress, Message, Retval, Value};
use shoal_module::Control;
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request, Subscribers};

use crate::packet::Version;
use crate::{Change, Config, Info, State, VrKey, Vrrp, VrrpError};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "vrrp",
    folder: Folder::Plugins,
    version: "1.1.1",
    messages: &[
        ApiMessage::request::<VrrpVrAddDel>(),
        ApiMessage::request::<VrrpVrUpdate>(),
        ApiMessage::sent::<VrrpVrUpdateReply>(),
        ApiMessage::request::<VrrpVrDel>(),
        ApiMessage::dump::<VrrpVrDump>(),
        ApiMessage::sent::<VrrpVrDetails>(),
        ApiMessage::request::<VrrpVrStartStop>(),
        ApiMessage::request::<VrrpVrSetPeers>(),
        ApiMessage::dump::<VrrpVrPeerDump>(),
        ApiMessage::sent::<VrrpVrPeerDetails>(),
        ApiMessage::request::<VrrpVrTrackIfAddDel>(),
        ApiMessage::dump::<VrrpVrTrackIfDump>(),
        ApiMessage::sent::<VrrpVrTrackIfDetails>(),
        ApiMessage::sent::<VrrpVrEvent>(),
        ApiMessage::request::<WantVrrpVrEvents>(),
    ],
};

/// A number that stands for all, or for none yet.
const ANY: u32 = u32::MAX;

fn vrrp(call: &Call) -> Result<Rc<Vrrp>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// What a virtual router does.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("VRRP_API_VR_PREEMPT", 1)]
#[entry("VRRP_API_VR_ACCEPT", 2)]
#[entry("VRRP_API_VR_UNICAST", 4)]
#[entry("VRRP_API_VR_IPV6", 8)]
pub struct VrrpVrFlags(pub u32);

impl VrrpVrFlags {
    const PREEMPT: u32 = 1;
    const ACCEPT: u32 = 2;
    const UNICAST: u32 = 4;
    const IPV6: u32 = 8;

    fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    fn of(config: &Config) -> Self {
        let all = [
            (config.preempt, Self::PREEMPT),
            (config.accept, Self::ACCEPT),
            (config.unicast, Self::UNICAST),
            (config.key.family == Family::Ip6, Self::IPV6),
        ];
        VrrpVrFlags(all.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum())
    }
}

/// What this router is to a virtual router.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("VRRP_API_VR_STATE_INIT", 0)]
#[entry("VRRP_API_VR_STATE_BACKUP", 1)]
#[entry("VRRP_API_VR_STATE_MASTER", 2)]
#[entry("VRRP_API_VR_STATE_INTF_DOWN", 3)]
pub struct VrrpVrState(pub u32);

impl From<State> for VrrpVrState {
    fn from(state: State) -> Self {
        VrrpVrState(state.number())
    }
}

/// What a virtual router is known by.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct VrrpVrKey {
    pub sw_if_index: InterfaceIndex,
    pub vr_id: u8,
    pub is_ipv6: u8,
}

/// What is configured of it.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct VrrpVrConf {
    pub sw_if_index: InterfaceIndex,
    pub vr_id: u8,
    pub priority: u8,
    pub interval: u16,
    pub flags: VrrpVrFlags,
}

/// What tracked interfaces do to its priority.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct VrrpVrTracking {
    pub interfaces_dec: u32,
    pub priority: u8,
}

/// How it stands.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct VrrpVrRuntime {
    pub state: VrrpVrState,
    pub master_adv_int: u16,
    pub skew: u16,
    pub master_down_int: u16,
    pub mac: MacAddress,
    pub tracking: VrrpVrTracking,
}

/// An interface that is tracked.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct VrrpVrTrackIf {
    pub sw_if_index: InterfaceIndex,
    pub priority: u8,
}

fn key(sw_if_index: InterfaceIndex, vr_id: u8, is_ip6: bool) -> VrKey {
    let family = if is_ip6 { Family::Ip6 } else { Family::Ip4 };
    VrKey { interface: SwIfIndex(sw_if_index.0), vr_id, family }
}

/// Makes a virtual router, or deletes it.
#[derive(Message)]
#[message(request)]
pub struct VrrpVrAddDel {
    pub is_add: u8,
    pub sw_if_index: InterfaceIndex,
    pub vr_id: u8,
    pub priority: u8,
    pub interval: u16,
    pub flags: VrrpVrFlags,
    pub n_addrs: Count<u8>,
    #[counted_by(n_addrs)]
    pub addrs: Vec<IpAddr>,
}

fn config(conf: VrrpVrConf, addresses: Vec<IpAddr>) -> Config {
    let VrrpVrConf { sw_if_index, vr_id, priority, interval, flags } = conf;
    Config {
        key: key(sw_if_index, vr_id, flags.has(VrrpVrFlags::IPV6)),
        priority,
        interval,
        preempt: flags.has(VrrpVrFlags::PREEMPT),
        accept: flags.has(VrrpVrFlags::ACCEPT),
        unicast: flags.has(VrrpVrFlags::UNICAST),
        version: Version::V3,
        addresses,
    }
}

impl Request for VrrpVrAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let Self { is_add, sw_if_index, vr_id, priority, interval, flags, addrs, .. } = self;
        let vrrp = vrrp(call)?;
        let config = config(VrrpVrConf { sw_if_index, vr_id, priority, interval, flags }, addrs);
        if is_add == 0 {
            return Ok(vrrp.del(vrrp.find(config.key)?)?);
        }
        vrrp.add(config)?;
        Ok(())
    }
}

/// Makes a virtual router (index with all bits set), or gives one another configuration where it stands.
#[derive(Message)]
#[message(request, reply = VrrpVrUpdateReply)]
pub struct VrrpVrUpdate {
    pub vrrp_index: u32,
    pub sw_if_index: InterfaceIndex,
    pub vr_id: u8,
    pub priority: u8,
    pub interval: u16,
    pub flags: VrrpVrFlags,
    pub n_addrs: Count<u8>,
    #[counted_by(n_addrs)]
    pub addrs: Vec<IpAddr>,
}

/// Its number.
#[derive(Message)]
#[message(reply)]
pub struct VrrpVrUpdateReply {
    pub retval: i32,
    pub vrrp_index: u32,
}

impl Request for VrrpVrUpdate {
    fn handle(self, call: &Call) -> Result<VrrpVrUpdateReply, Retval> {
        let Self { vrrp_index, sw_if_index, vr_id, priority, interval, flags, addrs, .. } = self;
        let vrrp = vrrp(call)?;
        let config = config(VrrpVrConf { sw_if_index, vr_id, priority, interval, flags }, addrs);
        let vrrp_index = if vrrp_index == ANY {
            vrrp.add(config)?
        } else {
            let version = vrrp.info(vrrp_index).map_or(Version::V3, |info| info.config.version);
            vrrp.update(vrrp_index, Config { version, ..config })?;
            vrrp_index
        };
        Ok(VrrpVrUpdateReply { retval: 0, vrrp_index })
    }
}

/// Deletes a virtual router.
#[derive(Message)]
#[message(request)]
pub struct VrrpVrDel {
    pub vrrp_index: u32,
}

impl Request for VrrpVrDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(vrrp(call)?.del(self.vrrp_index)?)
    }
}

/// Asks for virtual routers of an interface, or of all.
#[derive(Message)]
#[message(request, details = VrrpVrDetails)]
pub struct VrrpVrDump {
    pub sw_if_index: InterfaceIndex,
}

/// A virtual router.
#[derive(Message)]
#[message(reply)]
pub struct VrrpVrDetails {
    pub config: VrrpVrConf,
    pub runtime: VrrpVrRuntime,
    pub n_addrs: Count<u8>,
    #[counted_by(n_addrs)]
    pub addrs: Vec<IpAddr>,
}

/// Whether an interface stands for all of them: VPP takes 0, too.
fn is_any(InterfaceIndex(interface): InterfaceIndex) -> bool {
    interface == ANY || interface == 0
}

fn all(call: &Call) -> Vec<Info> {
    vrrp(call).map(|vrrp| vrrp.list()).unwrap_or_default()
}

impl Dump for VrrpVrDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = VrrpVrDetails> + 'static {
        let (is_all, wanted) = (is_any(self.sw_if_index), self.sw_if_index.0);
        let all = all(call).into_iter();
        all.filter(move |info| is_all || info.config.key.interface.0 == wanted).map(|info| {
            let (config, machine) = (&info.config, &info.machine);
            VrrpVrDetails {
                config: VrrpVrConf {
                    sw_if_index: InterfaceIndex(config.key.interface.0),
                    vr_id: config.key.vr_id,
                    priority: config.priority,
                    interval: config.interval,
                    flags: VrrpVrFlags::of(config),
                },
                runtime: VrrpVrRuntime {
                    state: machine.state.into(),
                    master_adv_int: machine.master_interval,
                    skew: machine.skew(),
                    master_down_int: machine.master_down(),
                    mac: MacAddress(config.key.mac().0),
                    tracking: VrrpVrTracking {
                        interfaces_dec: machine.lowered,
                        priority: machine.adjusted(),
                    },
                },
                n_addrs: Count::default(),
                addrs: config.addresses.clone(),
            }
        })
    }
}

/// Starts a virtual router, or stops it.
#[derive(Message)]
#[message(request)]
pub struct VrrpVrStartStop {
    pub sw_if_index: InterfaceIndex,
    pub vr_id: u8,
    pub is_ipv6: u8,
    pub is_start: u8,
}

impl Request for VrrpVrStartStop {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (vrrp, key) = (vrrp(call)?, key(self.sw_if_index, self.vr_id, self.is_ipv6 != 0));
        Ok(if self.is_start != 0 { vrrp.start(key) } else { vrrp.stop(key) }?)
    }
}

/// Sets the routers that a unicast virtual router tells.
#[derive(Message)]
#[message(request)]
pub struct VrrpVrSetPeers {
    pub sw_if_index: InterfaceIndex,
    pub vr_id: u8,
    pub is_ipv6: u8,
    pub n_addrs: Count<u8>,
    #[counted_by(n_addrs)]
    pub addrs: Vec<IpAddr>,
}

impl Request for VrrpVrSetPeers {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (vrrp, key) = (vrrp(call)?, key(self.sw_if_index, self.vr_id, self.is_ipv6 != 0));
        let info = vrrp.info(vrrp.find(key)?).ok_or(Retval::NO_SUCH_ENTRY)?;
        match (info.config.unicast, info.machine.state) {
            (true, State::Initialize) if self.addrs.is_empty() => Err(Retval::INVALID_DST_ADDRESS),
            // VPP changes them while it does nothing only.
            (true, State::Initialize) => Ok(vrrp.set_peers(key, self.addrs)?),
            (true, _) => Err(Retval::RSRC_IN_USE),
            (false, _) => Err(Retval::INVALID_ARGUMENT),
        }
    }
}

/// Asks for the routers that a virtual router tells; all bits set in the interface: those of all virtual routers.
#[derive(Message)]
#[message(request, details = VrrpVrPeerDetails)]
pub struct VrrpVrPeerDump {
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: u8,
    pub vr_id: u8,
}

/// The routers that a virtual router tells.
#[derive(Message)]
#[message(indexed)]
pub struct VrrpVrPeerDetails {
    pub sw_if_index: InterfaceIndex,
    pub vr_id: u8,
    pub is_ipv6: u8,
    pub n_peer_addrs: Count<u8>,
    #[counted_by(n_peer_addrs)]
    pub peer_addrs: Vec<IpAddr>,
}

impl Dump for VrrpVrPeerDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = VrrpVrPeerDetails> + 'static {
        let is_all = is_any(self.sw_if_index);
        let wanted = key(self.sw_if_index, self.vr_id, self.is_ipv6 != 0);
        let is_asked = move |info: &Info| {
            if is_all { !info.peers.is_empty() } else { info.config.key == wanted }
        };
        all(call).into_iter().filter(is_asked).map(|info| {
            let key = info.config.key;
            VrrpVrPeerDetails {
                sw_if_index: InterfaceIndex(key.interface.0),
                vr_id: key.vr_id,
                is_ipv6: (key.family == Family::Ip6).into(),
                n_peer_addrs: Count::default(),
                peer_addrs: info.peers,
            }
        })
    }
}

/// Has interfaces that are down lower the priority of a virtual router, or no longer.
#[derive(Message)]
#[message(request)]
pub struct VrrpVrTrackIfAddDel {
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: u8,
    pub vr_id: u8,
    pub is_add: u8,
    pub n_ifs: Count<u8>,
    #[counted_by(n_ifs)]
    pub ifs: Vec<VrrpVrTrackIf>,
}

impl Request for VrrpVrTrackIfAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (vrrp, key) = (vrrp(call)?, key(self.sw_if_index, self.vr_id, self.is_ipv6 != 0));
        vrrp.find(key).map_err(|_| Retval::INVALID_VALUE)?;
        if self.ifs.iter().any(|tracked| tracked.sw_if_index == self.sw_if_index) {
            // A virtual router does not track its own interface.
            return Err(Retval::INVALID_SW_IF_INDEX_2);
        }
        let all: Vec<(SwIfIndex, u8)> =
            self.ifs.iter().map(|tracked| (SwIfIndex(tracked.sw_if_index.0), tracked.priority)).collect();
        if self.is_add != 0 {
            return Ok(vrrp.track_interfaces(key, &all)?);
        }
        // As VPP: what is not tracked need not be taken away.
        for (interface, _) in all {
            match vrrp.untrack_interfaces(key, &[interface]) {
                Ok(()) | Err(VrrpError::NotTracked(_)) => {}
                Err(why) => return Err(why.into()),
            }
        }
        Ok(())
    }
}

/// Asks for the interfaces that a virtual router, or each of them, tracks.
#[derive(Message)]
#[message(request, details = VrrpVrTrackIfDetails)]
pub struct VrrpVrTrackIfDump {
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: u8,
    pub vr_id: u8,
    pub dump_all: u8,
}

/// Interfaces that a virtual router tracks.
#[derive(Message)]
#[message(indexed)]
pub struct VrrpVrTrackIfDetails {
    pub sw_if_index: InterfaceIndex,
    pub vr_id: u8,
    pub is_ipv6: u8,
    pub n_ifs: Count<u8>,
    #[counted_by(n_ifs)]
    pub ifs: Vec<VrrpVrTrackIf>,
}

impl Dump for VrrpVrTrackIfDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = VrrpVrTrackIfDetails> + 'static {
        let is_all = self.dump_all != 0;
        let wanted = key(self.sw_if_index, self.vr_id, self.is_ipv6 != 0);
        let is_asked = move |info: &Info| {
            if is_all { !info.interfaces.is_empty() } else { info.config.key == wanted }
        };
        all(call).into_iter().filter(is_asked).map(|info| {
            let key = info.config.key;
            let tracked = |(interface, priority): (SwIfIndex, u8)| VrrpVrTrackIf {
                sw_if_index: InterfaceIndex(interface.0),
                priority,
            };
            VrrpVrTrackIfDetails {
                sw_if_index: InterfaceIndex(key.interface.0),
                vr_id: key.vr_id,
                is_ipv6: (key.family == Family::Ip6).into(),
                n_ifs: Count::default(),
                ifs: info.interfaces.into_iter().map(tracked).collect(),
            }
        })
    }
}

/// A state has changed.
#[derive(Message)]
#[message(event)]
pub struct VrrpVrEvent {
    pub vr: VrrpVrKey,
    pub old_state: VrrpVrState,
    pub new_state: VrrpVrState,
}

/// Wants to know of each change of a state, or no longer.
#[derive(Message)]
#[message(request, events = VrrpVrEvent)]
pub struct WantVrrpVrEvents {
    pub enable_disable: bool,
    pub pid: u32,
}

/// The clients that want events.
#[derive(Default)]
struct Watchers(Subscribers);

fn event(change: &Change) -> VrrpVrEvent {
    let VrKey { interface, vr_id, family } = change.key;
    VrrpVrEvent {
        vr: VrrpVrKey {
            sw_if_index: InterfaceIndex(interface.0),
            vr_id,
            is_ipv6: (family == Family::Ip6).into(),
        },
        old_state: change.old.into(),
        new_state: change.new.into(),
    }
}

pub(crate) fn follow(control: &Rc<Control>, vrrp: &Vrrp) {
    let watchers = control.put(Watchers::default());
    let weak = Rc::downgrade(control);
    vrrp.observe(move |change| {
        if let Some(control) = weak.upgrade() {
            watchers.0.publish(&control, |()| true, &event(change));
        }
    });
}

impl Request for WantVrrpVrEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let watchers = call.get::<Watchers>().map_err(|_| Retval::UNSPECIFIED)?;
        watchers.0.set(call, self.pid, (), self.enable_disable)
    }
}
