//! Where messages go, and which.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use shoal_adj::Family;
use shoal_datagram::{Checksum, Datagram, MOST};
use shoal_fib::{Fib, FibError};
use shoal_graph::Graph;
use shoal_graph::counter::Simple;
use shoal_module::{Control, InitError};

use crate::message::{Message, Severity};

/// The port of collectors, and the one messages come from (RFC 5426, 3.3).
pub const PORT: u16 = 514;
/// Bytes that every collector takes (RFC 5424, 6.1).
pub const LEAST_SIZE: u32 = 480;
/// Bytes of the longest message.
pub const MOST_SIZE: u32 = MOST as u32;
/// Routers a message may pass, as VPP's.
const TTL: u8 = 255;

/// Why a setting was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyslogError {
    /// No collector.
    #[error("collector address required")]
    NoCollector,
    /// No source.
    #[error("src address required")]
    NoSource,
    /// An address is none of a host.
    #[error("{0} is not the address of a host")]
    NoHost(Ipv4Addr),
    /// Port 0.
    #[error("0 is no port of a collector, nearest {PORT}")]
    Port,
    /// Too short for what every collector takes.
    #[error("too small max-msg-size value, minimum is {LEAST_SIZE}")]
    TooSmall(u32),
    /// Longer than a datagram.
    #[error("too large max-msg-size value, maximum is {MOST_SIZE}")]
    TooLarge(u32),
    /// There is no such table.
    #[error(transparent)]
    Fib(#[from] FibError),
}

/// Where messages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sender {
    /// The collector's address.
    pub collector: Ipv4Addr,
    /// The collector's port.
    pub port: u16,
    /// From which address.
    pub source: Ipv4Addr,
    /// The table in which the collector is looked for, by its number.
    pub vrf: u32,
    /// Bytes of a message at most.
    pub max_size: u32,
}

impl Sender {
    /// To a collector, as is usual.
    pub const fn new(collector: Ipv4Addr, source: Ipv4Addr) -> Self {
        Sender { collector, port: PORT, source, vrf: 0, max_size: LEAST_SIZE }
    }
}

/// Whether messages are sent, as any thread may ask: 0 if none is, else one more than the number of the least severity.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<AtomicU8>);

impl Gate {
    /// Whether a message would be sent.
    #[inline(always)]
    pub fn passes(&self, severity: Severity) -> bool {
        (severity as u8) < self.0.load(Ordering::Relaxed)
    }
}

/// What became of messages.
struct Counts {
    sent: Simple,
    filtered: Simple,
    too_long: Simple,
    failed: Simple,
}

/// Syslog of this router.
pub struct Syslog {
    graph: Rc<Graph>,
    fib: Rc<Fib>,
    gate: Gate,
    sender: RefCell<Option<Sender>>,
    filter: RefCell<Severity>,
    counts: Counts,
}

impl Syslog {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let counter = |name: &str| {
            let counter = graph.counters().simple(&format!("/syslog/{name}"), 1)?;
            counter.ensure(1);
            Ok::<_, InitError>(counter)
        };
        let counts = Counts {
            sent: counter("sent")?,
            filtered: counter("filtered")?,
            too_long: counter("too-long")?,
            failed: counter("failed")?,
        };
        Ok(Rc::new(Syslog {
            fib: control.get::<Fib>()?,
            gate: Gate::default(),
            sender: RefCell::default(),
            filter: RefCell::new(Severity::Informational),
            counts,
            graph,
        }))
    }

    fn renew_gate(&self) {
        let on = self.sender.borrow().is_some();
        let value = if on { *self.filter.borrow() as u8 + 1 } else { 0 };
        self.gate.0.store(value, Ordering::Relaxed);
    }

    /// What threads ask before they tell anything.
    pub fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// Sends messages to a collector from now on.
    ///
    /// # Errors
    /// An address is missing or none of a host, the port is 0, the size is none of a message, or there is no such table.
    pub fn set_sender(&self, sender: Sender) -> Result<(), SyslogError> {
        if sender.collector.is_unspecified() {
            return Err(SyslogError::NoCollector);
        }
        if sender.source.is_unspecified() {
            return Err(SyslogError::NoSource);
        }
        for address in [sender.collector, sender.source] {
            if address.is_multicast() || address.is_broadcast() {
                return Err(SyslogError::NoHost(address));
            }
        }
        if sender.port == 0 {
            return Err(SyslogError::Port);
        }
        if sender.max_size < LEAST_SIZE {
            return Err(SyslogError::TooSmall(sender.max_size));
        }
        if sender.max_size > MOST_SIZE {
            return Err(SyslogError::TooLarge(sender.max_size));
        }
        self.fib.index_of(Family::Ip4, sender.vrf)?;
        *self.sender.borrow_mut() = Some(sender);
        self.renew_gate();
        Ok(())
    }

    /// Sends no more messages.
    pub fn disable(&self) {
        *self.sender.borrow_mut() = None;
        self.renew_gate();
    }

    /// Where messages go, if anywhere.
    pub fn sender(&self) -> Option<Sender> {
        *self.sender.borrow()
    }

    /// Sends only messages of this severity and worse ones.
    pub fn set_filter(&self, least: Severity) {
        *self.filter.borrow_mut() = least;
        self.renew_gate();
    }

    /// The least severity of messages that are sent.
    pub fn filter(&self) -> Severity {
        *self.filter.borrow()
    }

    /// Sends a message, if there is a collector and the filter lets it pass. Whatever becomes of it is counted.
    pub fn send(&self, message: Message) {
        let Some(sender) = self.sender() else { return };
        if !self.gate.passes(message.severity()) {
            return self.counts.filtered.add(0, 0, 1);
        }
        let clock = self.graph.clock();
        let (at, process) = (clock.wall(clock.now()), std::process::id());
        let Some(line) = message.bytes(sender.source, process, at, sender.max_size as usize) else {
            return self.counts.too_long.add(0, 0, 1);
        };
        let Ok(table) = self.fib.index_of(Family::Ip4, sender.vrf) else {
            return self.counts.failed.add(0, 0, 1);
        };
        let datagram = Datagram {
            source: (IpAddr::V4(sender.source), PORT),
            destination: (IpAddr::V4(sender.collector), sender.port),
            table,
            hops: TTL,
            tos: 0,
            // RFC 5426, 3.6: checksums are not switched off.
            checksum: Checksum::Computed,
        };
        match datagram.send(&self.graph, line.as_bytes()) {
            Ok(()) => self.counts.sent.add(0, 0, 1),
            Err(e) => {
                tracing::debug!("a syslog message was not sent: {e}");
                self.counts.failed.add(0, 0, 1);
            }
        }
    }
}
