//! What the router asks of the driver, decided.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shoal_plugin_sdk::{Arm, Burst, Driver, Level, Link, Opened, Setting, log};

use crate::bind::Bus;
use crate::config::{self, Offloads, Port, Stanza, Wanted, pci, plain};
use crate::nearest::nearest;
use crate::sys::{self, Info, Setup};
use crate::{eal, names, show};

/// `RTE_ETH_TX_OFFLOAD_*`: checksums of UDP and TCP; the cutting of TCP.
pub(crate) const TX_CHECKSUM: u64 = 1 << 2 | 1 << 3;
pub(crate) const TX_TSO: u64 = 1 << 5;
const TX_IP4_CHECKSUM: u64 = 1 << 1;
const TX_MULTI_SEGS: u64 = 1 << 15;

/// Virtual devices, for those who mistype one.
const VIRTUAL: [&str; 12] = [
    "net_af_packet",
    "net_af_xdp",
    "net_bonding",
    "net_failsafe",
    "net_memif",
    "net_null",
    "net_pcap",
    "net_ring",
    "net_tap",
    "net_vhost",
    "net_virtio_user",
    "net_vdev_netvsc",
];

/// Which device a position of the start-up file is.
enum Place {
    Named(Wanted),
    /// A port that the EAL has found by itself.
    Found(u16),
}

struct State {
    stanza: Option<Stanza>,
    /// The EAL's arguments, once it runs.
    arguments: Option<Vec<String>>,
    places: Vec<Place>,
    /// Ports that are interfaces: their names.
    open: BTreeMap<u16, String>,
    /// Ports that were reported to have no receive interrupts.
    told: BTreeSet<u16>,
}

/// The driver.
pub(crate) struct Dpdk(Mutex<State>);

/// A port that is closed again unless it is kept.
struct Probed(Option<u16>);

impl Probed {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Probed {
    fn drop(&mut self) {
        if let Some(port) = self.0 {
            let _ = sys::close(port);
        }
    }
}

impl Dpdk {
    pub(crate) const fn new() -> Self {
        Dpdk(Mutex::new(State {
            stanza: None,
            arguments: None,
            places: Vec::new(),
            open: BTreeMap::new(),
            told: BTreeSet::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The EAL's arguments, once it runs.
    pub(crate) fn arguments(&self) -> Option<Vec<String>> {
        self.state().arguments.clone()
    }

    /// Ports that are interfaces, and their names.
    pub(crate) fn names(&self) -> BTreeMap<u16, String> {
        self.state().open.clone()
    }
}

impl State {
    /// The EAL runs from here on.
    fn run(&mut self) -> Result<(), String> {
        if self.arguments.is_none() {
            // A device that is not named is not taken.
            let stanza = self.stanza.clone().unwrap_or(Stanza { no_pci: true, ..Stanza::default() });
            let arguments = eal::start(&stanza)?;
            log(Level::Notice, &format!("{} with {}", sys::version(), arguments.join(" ")));
            self.arguments = Some(arguments);
            self.stanza = Some(stanza);
        }
        Ok(())
    }

    fn open_named(&mut self, wanted: &Wanted) -> Result<Opened, String> {
        self.run()?;
        let stanza = self.stanza.clone().unwrap_or_default();
        let device = plain(&wanted.device);
        let on_bus = pci(device);
        if on_bus.is_some() && stanza.no_pci {
            return Err(format!(
                "{device} is on the PCI bus, which DPDK does not look at: write dpdk {{ dev {device} }} into the \
                 start-up file"
            ));
        }
        let mut devargs = wanted.device.clone();
        if let Some((domain, bus, slot, function)) = on_bus {
            let address = format!("{domain:04x}:{bus:02x}:{slot:02x}.{function:x}");
            Bus::system().bind(&address, stanza.uio_driver.as_deref())?;
            devargs = devargs.replacen(device, &address, 1);
        }
        large_frames(&devargs)?;
        let port = sys::probe(&devargs).map_err(|why| match why {
            Err(why) => why,
            Ok(e) if e.is_exists() => format!("{device} is an interface already, expected another device"),
            Ok(e) if on_bus.is_none() => {
                let kind = device.trim_end_matches(|c: char| c.is_ascii_digit());
                match nearest(kind, VIRTUAL).filter(|_| !VIRTUAL.contains(&kind)) {
                    Some(near) => format!("{device} is no virtual device of DPDK, did you mean `{near}'?"),
                    None => format!("{device} does not open: {e}"),
                }
            }
            Ok(e) if e.is_absent() => {
                format!(
                    "{device} does not open: {e}; no driver of DPDK takes it, or the system lets none have it"
                )
            }
            Ok(e) => format!("{device} does not open: {e}"),
        })?;
        let probed = Probed(Some(port));
        let settings = wanted.port.over(&stanza.default);
        let opened = self.open_port(port, &settings, &stanza, large_frames(&devargs)?)?;
        probed.keep();
        Ok(opened)
    }

    fn open_port(
        &mut self,
        port: u16,
        settings: &Port,
        stanza: &Stanza,
        jumbo: bool,
    ) -> Result<Opened, String> {
        let info = sys::info(port).map_err(|e| format!("port {port}: {e}"))?;
        let setup = setup(&info, settings, stanza, jumbo)?;
        sys::configure(port, &setup).map_err(|e| {
            let (rx, tx) = (setup.rx_queues, setup.tx_queues);
            format!("{} cannot be set up with {rx} receive and {tx} transmit queues: {e}", info.device)
        })?;
        let info = sys::info(port).map_err(|e| format!("port {port}: {e}"))?;
        let name = settings.name.clone().unwrap_or_else(|| names::name(&info, stanza.decimal_names));
        self.open.insert(port, name.clone());
        let workers = (0..usize::from(setup.rx_queues)).map(|n| {
            // As many workers as there are; queues take turns.
            let at = n.checked_rem(settings.workers.len())?;
            settings.workers.get(at).copied()
        });
        let has = |bits| info.tx_offloads & bits == bits;
        Ok(Opened {
            number: port.into(),
            name,
            kind: show::kind(&info),
            mac: if info.mac == [0; 6] { drawn_mac(port) } else { info.mac },
            mtu: info.mtu.into(),
            rx_workers: workers.collect(),
            tx_queues: setup.tx_queues.into(),
            checksum: has(TX_CHECKSUM),
            tso: has(TX_TSO | TX_CHECKSUM),
        })
    }
}

impl Dpdk {
    /// Says once of a port that was started that its queues do not wake their threads, unless it was not to be so.
    fn tell_interrupts(&self, port: u16) {
        let Ok(Info { device, interrupts: Some(n), no_interrupts: Some(why), .. }) = sys::info(port) else {
            return;
        };
        if self.state().told.insert(port) {
            let (has, others) = if n == 0 {
                ("no receive interrupts".to_owned(), "its")
            } else {
                (format!("receive interrupts for {n} queues only"), "other")
            };
            log(
                Level::Notice,
                &format!(
                    "{device} has {has}: {why}; {others} queues are looked at once a millisecond when idle"
                ),
            );
        }
    }
}

/// An address for a device that has none, as VPP draws them: locally administered, `02:fe` and four random bytes.
fn drawn_mac(port: u16) -> [u8; 6] {
    let [a, b, c, d, ..] = RandomState::new().hash_one(port).to_be_bytes();
    let mac = [2, 0xfe, a, b, c, d];
    // A ring needs to know no address.
    let _ = sys::set_mac(port, mac);
    mac
}

/// Transmit queues by default: one for each processor, up to eight. Threads share them if they are more.
fn usual_tx_queues(info: &Info) -> u16 {
    let processors = sys::cpus().split(',').count().clamp(1, 8) as u16;
    processors.min(info.max_tx_queues).max(1)
}

/// Drivers that cut large packets themselves and not always: net_tap has memory for the pieces of one packet, if that is not of
/// the largest in many parts, and says its queue is full for ever then. The router's own cutting is for them, unless `tso on`.
const CUTS_BADLY: [&str; 1] = ["net_tap"];

fn setup(info: &Info, settings: &Port, stanza: &Stanza, jumbo: bool) -> Result<Setup, String> {
    let device = &info.device;
    let queues = |what: &str, asked: Option<u16>, most: u16, usual: u16| match asked {
        Some(n) if n > most => Err(format!("{device}: {what} {n}, expected 1 to {most}")),
        Some(n) => Ok(n),
        None => Ok(usual),
    };
    if let Some(mtu) = settings.mtu {
        check_mtu(info, mtu.into())?;
    }
    let Offloads { multi_segs, tx_checksum, rx_checksum, tso } = stanza.offloads;
    let can = |bits| info.tx_capa & bits == bits;
    let tx_checksum = tx_checksum && can(TX_CHECKSUM);
    let wanted = settings.tso.unwrap_or(!CUTS_BADLY.contains(&info.driver.as_str()));
    let tso = tso && wanted && tx_checksum && can(TX_TSO | TX_IP4_CHECKSUM);
    if settings.tso == Some(true) && !tso {
        return Err(format!("{device} does not cut TCP packets, expected tso off"));
    }
    Ok(Setup {
        rx_queues: queues("num-rx-queues", settings.rx_queues, info.max_rx_queues.min(64), 1)?,
        tx_queues: queues(
            "num-tx-queues",
            settings.tx_queues,
            info.max_tx_queues.min(64),
            usual_tx_queues(info),
        )?,
        rx_desc: settings.rx_desc.unwrap_or(0),
        tx_desc: settings.tx_desc.unwrap_or(0),
        mtu: settings.mtu.unwrap_or(0),
        multi_segs: (multi_segs && can(TX_MULTI_SEGS)).into(),
        tx_checksum: tx_checksum.into(),
        rx_checksum: rx_checksum.into(),
        tso: tso.into(),
        jumbo: jumbo.into(),
        mbufs: stanza.mbufs,
        interrupts: settings.interrupts.unwrap_or(true).into(),
    })
}

/// Bytes of a part of a packet in the ordinary pool, and in the other.
const ORDINARY: u32 = 2048;
const JUMBO: u32 = 9728;

/// Whether a device writes frames longer than an ordinary part of a packet without asking how much room there is: packet
/// sockets do, up to their `framesz`.
fn large_frames(devargs: &str) -> Result<bool, String> {
    if !plain(devargs).starts_with("net_af_packet") {
        return Ok(false);
    }
    let size = devargs.split(',').filter_map(|arg| arg.strip_prefix("framesz=")).next_back();
    let Some(size) = size else { return Ok(false) };
    match size.parse::<u32>() {
        Ok(n) if n <= JUMBO => Ok(n > ORDINARY),
        _ => Err(format!("{}: framesz {size}, expected at most {JUMBO}", plain(devargs))),
    }
}

/// The largest packet that the jumbo pool's parts hold with its link layer.
const LARGEST: u32 = 9_702;

fn check_mtu(info: &Info, mtu: u32) -> Result<u16, String> {
    let (least, most) = (u32::from(info.min_mtu).max(64), u32::from(info.max_mtu).clamp(64, LARGEST));
    if (least..=most).contains(&mtu) {
        return Ok(mtu as u16);
    }
    let nearest = mtu.clamp(least, most);
    Err(format!("MTU {mtu} is not possible on {}: {least} to {most}, nearest {nearest}", info.device))
}

impl Driver for Dpdk {
    const NAME: &'static str = "dpdk";

    fn start(&self, settings: Option<&str>) -> Result<u32, String> {
        let Some(text) = settings else { return Ok(0) };
        let mut state = self.state();
        let mut stanza = config::stanza(text)?;
        let all = std::mem::take(&mut stanza.devices);
        // The EAL's arguments depend on whether any is named.
        state.stanza = Some(Stanza { devices: all.clone(), ..stanza });
        state.run()?;
        state.places = all.into_iter().map(Place::Named).collect();
        if state.places.is_empty() {
            state.places = sys::ports().into_iter().map(Place::Found).collect();
        }
        Ok(state.places.len() as u32)
    }

    fn open(&self, position: u32) -> Result<Opened, String> {
        let mut state = self.state();
        let place = state.places.get(position as usize).ok_or("there is no such device")?;
        match place {
            Place::Named(wanted) => {
                let wanted = wanted.clone();
                state.open_named(&wanted)
            }
            Place::Found(port) => {
                let port = *port;
                let stanza = state.stanza.clone().unwrap_or_default();
                state.open_port(port, &stanza.default.clone(), &stanza, false)
            }
        }
    }

    fn attach(&self, words: &str) -> Result<Opened, String> {
        let wanted = config::attach(words)?;
        self.state().open_named(&wanted)
    }

    fn close(&self, device: u32) {
        let port = device as u16;
        let mut state = self.state();
        state.open.remove(&port);
        state.told.remove(&port);
        drop(state);
        if let Err(why) = sys::close(port) {
            log(Level::Warn, &format!("port {port} does not close: {why}"));
        }
    }

    fn set(&self, device: u32, setting: Setting) -> Result<(), String> {
        let port = device as u16;
        let info = sys::info(port).map_err(|e| format!("port {port}: {e}"))?;
        let done = match setting {
            Setting::Admin(up) => sys::set_admin(port, up),
            Setting::Promiscuous(on) => sys::set_promiscuous(port, on),
            Setting::Mac(mac) => sys::set_mac(port, mac),
            Setting::Mtu(mtu) => {
                let mtu = check_mtu(&info, mtu)?;
                return sys::set_mtu(port, mtu).map_err(|e| {
                    format!("{} does not take MTU {mtu}: {e}; it keeps {}", info.device, info.mtu)
                });
            }
        };
        if done.is_ok() && setting == Setting::Admin(true) {
            self.tell_interrupts(port);
        }
        done.map_err(|e| {
            let what = match setting {
                Setting::Admin(true) => "start",
                Setting::Admin(false) => "stop",
                Setting::Promiscuous(_) => "change what frames it takes",
                Setting::Mac(_) => "take another address",
                Setting::Mtu(_) => "take another MTU",
            };
            let driver =
                if e.is_unsupported() { format!(", as {} cannot", info.driver) } else { String::new() };
            format!("{} does not {what}: {e}{driver}", info.device)
        })
    }

    fn link(&self, device: u32) -> Option<Link> {
        let sys::Link { up, gone, mbps, missed } = sys::link(device as u16)?;
        Some(Link { up, speed: mbps, gone, missed })
    }

    fn describe(&self, device: u32, detail: bool) -> String {
        if detail { show::counters(device as u16) } else { show::port(device as u16) }
    }

    fn poll(&self, device: u32, queue: u32, _thread: u32) -> u32 {
        sys::poll(device, queue)
    }

    fn wait(&self, device: u32, queue: u32) -> Option<RawFd> {
        sys::wait(device as u16, queue as u16)
    }

    fn arm(&self, device: u32, queue: u32, _thread: u32) -> Arm {
        sys::arm(device, queue)
    }

    fn disarm(&self, device: u32, queue: u32, _thread: u32) {
        sys::disarm(device, queue);
    }

    fn receive(&self, burst: &mut Burst<'_>) {
        sys::receive(burst);
    }

    fn send(&self, burst: &mut Burst<'_>) {
        sys::send(burst);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn packet_sockets_get_parts_as_large_as_their_frames() {
        assert_eq!(large_frames("net_af_packet0,iface=a"), Ok(false));
        assert_eq!(large_frames("net_af_packet0,iface=a,framesz=2048"), Ok(false));
        assert_eq!(large_frames("net_af_packet0,iface=a,framesz=9728,blocksz=77824"), Ok(true));
        assert!(large_frames("net_af_packet0,iface=a,framesz=16384").unwrap_err().contains("at most 9728"));
        assert!(large_frames("net_af_packet0,iface=a,framesz=2048,framesz=x").is_err());
        assert_eq!(large_frames("net_null0,framesz=99999"), Ok(false));
    }

    #[test]
    fn queues_and_mtu_are_what_the_device_has() {
        let info = Info { max_rx_queues: 2, max_tx_queues: 4, min_mtu: 68, max_mtu: 1500, ..Info::default() };
        let of = |port: &Port| setup(&info, port, &Stanza::default(), false);
        assert_eq!(of(&Port::default()).unwrap().rx_queues, 1);
        let wrong = |port: Port, said: &str| {
            let why = of(&port).unwrap_err();
            assert!(why.contains(said), "{why}");
        };
        wrong(Port { rx_queues: Some(3), ..Port::default() }, "num-rx-queues 3, expected 1 to 2");
        wrong(Port { tx_queues: Some(5), ..Port::default() }, "num-tx-queues 5, expected 1 to 4");
        wrong(Port { mtu: Some(9000), ..Port::default() }, "68 to 1500, nearest 1500");
        wrong(Port { tso: Some(true), ..Port::default() }, "expected tso off");
        assert_eq!(check_mtu(&Info { max_mtu: u16::MAX, ..info.clone() }, 9000), Ok(9000));
    }
}
