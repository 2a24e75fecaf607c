//! One packet-generator interface: what its control and its nodes share.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_graph::QueueId;
use shoal_interface::{Device, SwIfIndex};
use shoal_wire::pcap::LinkType;

use crate::CreateInterface;
use crate::capture::Capture;
use crate::receive::Receive;
use crate::sink::Sink;

/// What the packets of an interface begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// An Ethernet header.
    #[default]
    Ethernet,
    /// An IPv4 header.
    Ip4,
    /// An IPv6 header.
    Ip6,
}

impl Mode {
    /// The node received packets go to.
    pub fn node(self) -> &'static str {
        match self {
            Mode::Ethernet => "ethernet-input",
            Mode::Ip4 => "ip4-input",
            Mode::Ip6 => "ip6-input",
        }
    }

    /// How capture files are marked.
    pub(crate) fn link_type(self) -> LinkType {
        match self {
            Mode::Ethernet => LinkType::ETHERNET,
            Mode::Ip4 | Mode::Ip6 => LinkType::RAW_IP,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mode::Ethernet => "ethernet",
            Mode::Ip4 => "ip4",
            Mode::Ip6 => "ip6",
        })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ethernet" => Ok(Mode::Ethernet),
            "ip4" => Ok(Mode::Ip4),
            "ip6" => Ok(Mode::Ip6),
            _ => Err(format!("`{text}' is no mode: ethernet, ip4 or ip6")),
        }
    }
}

/// What packets need of an interface.
pub(crate) struct Port {
    pub(crate) mode: Mode,
    /// Bytes of payload in each piece of a large packet, 0 when the interface takes none.
    pub(crate) gso_size: u16,
    /// Whether checksums of received packets are left open.
    pub(crate) checksum_offload: bool,
    /// Whether it merges small packets into large ones, when it takes those.
    pub(crate) coalesce: AtomicBool,
    /// Whether a capture runs or a sink is there, so that the locks are taken only then.
    pub(crate) watched: AtomicBool,
    outlets: Mutex<Outlets>,
    waiting: AtomicUsize,
    injected: Mutex<VecDeque<Vec<u8>>>,
}

/// Where sent packets are shown before they are freed.
#[derive(Default)]
pub(crate) struct Outlets {
    pub(crate) capture: Option<Capture>,
    pub(crate) sink: Option<Arc<Sink>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Port {
    pub(crate) fn new(made: &CreateInterface) -> Arc<Self> {
        Arc::new(Port {
            mode: made.mode,
            gso_size: made.gso_size.unwrap_or(0),
            checksum_offload: made.checksum_offload,
            coalesce: AtomicBool::new(made.coalesce),
            watched: AtomicBool::new(false),
            outlets: Mutex::default(),
            waiting: AtomicUsize::new(0),
            injected: Mutex::default(),
        })
    }

    /// What its device says of received packets.
    pub(crate) fn receive(&self) -> Receive {
        Receive { checksum: self.checksum_offload, gso_size: self.gso_size }
    }

    pub(crate) fn outlets(&self) -> MutexGuard<'_, Outlets> {
        lock(&self.outlets)
    }

    /// Changes what is watched.
    pub(crate) fn watch<R>(&self, change: impl FnOnce(&mut Outlets) -> R) -> R {
        let mut outlets = self.outlets();
        let result = change(&mut outlets);
        self.watched.store(outlets.capture.is_some() || outlets.sink.is_some(), Ordering::Relaxed);
        result
    }

    pub(crate) fn inject(&self, packet: Vec<u8>) {
        let mut injected = lock(&self.injected);
        injected.push_back(packet);
        self.waiting.store(injected.len(), Ordering::Relaxed);
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn take_injected(&self) -> Option<Vec<u8>> {
        let mut injected = lock(&self.injected);
        let packet = injected.pop_front();
        self.waiting.store(injected.len(), Ordering::Relaxed);
        packet
    }
}

/// An interface as the control plane keeps it.
pub(crate) struct Interface {
    pub(crate) index: SwIfIndex,
    pub(crate) port: Arc<Port>,
    /// The queue for injected packets, from the first of them on.
    pub(crate) injects: Cell<Option<QueueId>>,
    pub(crate) made: CreateInterface,
}

pub(crate) struct PgDevice {
    pub(crate) id: u32,
    pub(crate) port: Arc<Port>,
}

impl Device for PgDevice {
    fn class(&self) -> &'static str {
        "pg"
    }

    fn describe(&self) -> String {
        let gso = match self.port.gso_size {
            0 => "off".to_owned(),
            n => format!(
                "gso-size {n}{}",
                if self.port.coalesce.load(Ordering::Relaxed) { ", coalesce" } else { "" }
            ),
        };
        format!("Packet Generator\ninstance {}, mode {}, gso {gso}", self.id, self.port.mode)
    }
}
