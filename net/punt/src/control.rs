//! The control plane: what is punted, where to and how much of it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::Family;
use shoal_fib::{Fib, Held, Path};
use shoal_graph::{EVERYBODY, Edge, Graph};
use shoal_icmp::limiter::Rate;
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip::{ListenerTable, Listeners};
use shoal_ip4::Ip4Family;
use shoal_ip6::Ip6Family;
use shoal_module::{Control, InitError};
use shoal_wire::IpProtocol;

use crate::node::{Kind, V4, V6};
use crate::{PuntError, Shared};

/// What of the packets for this router is punted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum L4 {
    /// Packets to a port of UDP.
    Udp(u16),
    /// Packets to all ports of UDP that nobody here listens to.
    AllUdp,
    /// A port of TCP, which is not possible.
    Tcp(u16),
    /// All of TCP.
    AllTcp,
    /// Another protocol.
    Protocol(u8),
}

/// Whether it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// From now on.
    Punted,
    /// No more.
    NotPunted,
}

/// By which interface packets came in: one, or all of which nothing else is said.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rx {
    /// All others.
    All,
    /// This one.
    Interface(SwIfIndex),
}

/// One kind of packets that is punted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Registered {
    /// Whose.
    pub family: Family,
    /// Which.
    pub l4: L4,
}

/// One way of punted packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redirect {
    /// By which interface they came in.
    pub rx: Rx,
    /// Where they go.
    pub paths: Rc<[Path]>,
}

/// What there is of one family.
struct Side {
    family: Family,
    listeners: Arc<Listeners>,
    shared: Shared,
    edge: Cell<Edge>,
    /// Ports that were given to the punt node because of [`L4::AllUdp`], so that all of them can be given back.
    all_udp: Cell<bool>,
    registered: RefCell<BTreeSet<L4>>,
    redirects: RefCell<BTreeMap<Rx, Held>>,
    rate: Cell<Option<Rate>>,
}

/// What the host gets.
pub struct Punt {
    graph: Rc<Graph>,
    fib: Rc<Fib>,
    interfaces: Rc<Interfaces>,
    sides: [Side; 2],
}

impl L4 {
    fn words(self) -> String {
        match self {
            L4::Udp(port) => format!("UDP port {port}"),
            L4::AllUdp => "UDP".into(),
            L4::Tcp(port) => format!("TCP port {port}"),
            L4::AllTcp => "TCP".into(),
            L4::Protocol(protocol) => format!("protocol {protocol}"),
        }
    }
}

impl Side {
    fn new(family: Family, listeners: Arc<Listeners>, shared: Shared) -> Side {
        Side {
            family,
            listeners,
            shared,
            edge: Cell::new(Edge::DROP),
            all_udp: Cell::new(false),
            registered: RefCell::default(),
            redirects: RefCell::default(),
            rate: Cell::new(None),
        }
    }

    fn taken(&self, l4: L4) -> PuntError {
        PuntError::Taken { what: l4.words(), family: self.family.name() }
    }

    fn set_udp(&self, port: u16, to: Option<Edge>) {
        self.listeners.set_udp(port, to);
    }

    /// Gives a port to the punt node, if it is nobody's.
    fn take_port(&self, port: u16) -> bool {
        let free = self.listeners.udp(port).is_none_or(|edge| edge == self.edge.get());
        if free {
            self.set_udp(port, Some(self.edge.get()));
        }
        free
    }

    /// Gives a port back that the punt node has.
    fn give_port(&self, port: u16) {
        if self.listeners.udp(port) == Some(self.edge.get()) {
            self.set_udp(port, None);
        }
    }

    fn punt(&self, l4: L4) -> Result<(), PuntError> {
        let protocol = |n: u8| {
            let protocol = IpProtocol(n);
            if self.listeners.protocol(protocol).is_some_and(|edge| edge != self.edge.get()) {
                return Err(self.taken(l4));
            }
            self.listeners.set_protocol(protocol, Some(self.edge.get()));
            Ok(())
        };
        match l4 {
            L4::Udp(port) if !self.take_port(port) => return Err(self.taken(l4)),
            L4::Udp(_) => {}
            L4::AllUdp => {
                (0..=u16::MAX).for_each(|port| {
                    self.take_port(port);
                });
                self.all_udp.set(true);
            }
            L4::Tcp(port) => return Err(PuntError::TcpPort(port)),
            L4::AllTcp => protocol(IpProtocol::TCP.0)?,
            L4::Protocol(n) => protocol(n)?,
        }
        self.registered.borrow_mut().insert(l4);
        Ok(())
    }

    fn stop(&self, l4: L4) -> Result<(), PuntError> {
        if let L4::Tcp(port) = l4 {
            return Err(PuntError::TcpPort(port));
        }
        if !self.registered.borrow_mut().remove(&l4) {
            return Err(PuntError::NotPunted { what: l4.words(), family: self.family.name() });
        }
        let named = |port| self.registered.borrow().contains(&L4::Udp(port));
        match l4 {
            L4::Udp(port) if !self.all_udp.get() => self.give_port(port),
            L4::Udp(_) | L4::Tcp(_) => {}
            L4::AllUdp => {
                self.all_udp.set(false);
                (0..=u16::MAX).filter(|port| !named(*port)).for_each(|port| self.give_port(port));
            }
            L4::AllTcp => self.listeners.set_protocol(IpProtocol::TCP, None),
            L4::Protocol(n) => self.listeners.set_protocol(IpProtocol(n), None),
        }
        Ok(())
    }
}

impl Punt {
    pub(crate) fn new(control: &Rc<Control>, shared: [Shared; 2]) -> Result<Self, InitError> {
        let listeners4 = control.get::<ListenerTable<Ip4Family>>()?.shared();
        let listeners6 = control.get::<ListenerTable<Ip6Family>>()?.shared();
        let [ip4, ip6] = shared;
        Ok(Punt {
            graph: control.graph()?,
            fib: control.get()?,
            interfaces: control.get()?,
            sides: [Side::new(Family::Ip4, listeners4, ip4), Side::new(Family::Ip6, listeners6, ip6)],
        })
    }

    pub(crate) fn set_edges(&self, edges: [Edge; 2]) {
        self.sides.iter().zip(edges).for_each(|(side, edge)| side.edge.set(edge));
    }

    fn side(&self, family: Family) -> &Side {
        let [ip4, ip6] = &self.sides;
        match family {
            Family::Ip4 => ip4,
            Family::Ip6 => ip6,
        }
    }

    /// Packets for this router of one kind are the host's from now on, or no more.
    ///
    /// # Errors
    /// They are somebody else's, cannot be, or were not the host's.
    pub fn set(&self, what: Registered, standing: Standing) -> Result<(), PuntError> {
        if let L4::Protocol(n) = what.l4
            && [IpProtocol::UDP, IpProtocol::TCP, IpProtocol::ICMP, IpProtocol::ICMP6]
                .contains(&IpProtocol(n))
        {
            return Err(PuntError::Protocol(n));
        }
        let side = self.side(what.family);
        match standing {
            Standing::Punted => side.punt(what.l4),
            Standing::NotPunted => side.stop(what.l4),
        }
    }

    /// All that is punted.
    pub fn registered(&self) -> Vec<Registered> {
        let of = |side: &Side| {
            let all = side.registered.borrow();
            all.iter().map(|l4| Registered { family: side.family, l4: *l4 }).collect::<Vec<_>>()
        };
        self.sides.iter().flat_map(of).collect()
    }

    /// Punted packets that came in by an interface, or by those of which nothing is said, take these paths.
    ///
    /// # Errors
    /// There is no such interface, or a path cannot be.
    pub fn redirect(&self, family: Family, rx: Rx, paths: &[Path]) -> Result<(), PuntError> {
        let interface = self.known(rx)?;
        let side = self.side(family);
        let held = self.fib.hold(family, paths)?;
        let way = self.fib.held(&held).adj;
        if let Err(e) = self.enable(family, true, side.rate.get().is_some()) {
            self.fib.release(held);
            return Err(e);
        }
        side.shared.ways.set(interface, Some(way));
        let old = side.redirects.borrow_mut().insert(rx, held);
        if let Some(old) = old {
            self.fib.release(old);
        }
        Ok(())
    }

    /// They do no more.
    ///
    /// # Errors
    /// They did not.
    pub fn end_redirect(&self, family: Family, rx: Rx) -> Result<(), PuntError> {
        let interface = self.known(rx)?;
        let side = self.side(family);
        let held = side.redirects.borrow_mut().remove(&rx);
        let Some(held) = held else {
            return Err(PuntError::NotRedirected { rx: self.name(rx) });
        };
        side.shared.ways.set(interface, None);
        self.fib.release(held);
        let some = !side.redirects.borrow().is_empty();
        self.enable(family, some, side.rate.get().is_some())
    }

    fn known(&self, rx: Rx) -> Result<Option<SwIfIndex>, PuntError> {
        match rx {
            Rx::All => Ok(None),
            Rx::Interface(interface) => {
                self.interfaces.data(interface)?;
                Ok(Some(interface))
            }
        }
    }

    /// The interface's name, or `all`.
    pub fn name(&self, rx: Rx) -> String {
        match rx {
            Rx::All => "all".into(),
            Rx::Interface(interface) => self.interfaces.name(interface).unwrap_or_else(|_| "deleted".into()),
        }
    }

    /// All redirects of a family.
    pub fn redirects(&self, family: Family) -> Vec<Redirect> {
        let all = self.side(family).redirects.borrow();
        all.iter().map(|(rx, held)| Redirect { rx: *rx, paths: self.fib.held(held).paths }).collect()
    }

    /// No more packets of a family are punted than this; `None`: as many as there are.
    ///
    /// # Errors
    /// It would be none.
    pub fn set_rate(&self, family: Family, rate: Option<Rate>) -> Result<(), PuntError> {
        if rate.is_some_and(|rate| rate.per_second == 0 || rate.burst == 0) {
            return Err(PuntError::NoRate);
        }
        let side = self.side(family);
        if let Some(rate) = rate {
            side.shared.limiter.set(rate);
        }
        let redirects = !side.redirects.borrow().is_empty();
        self.enable(family, redirects, rate.is_some())?;
        side.rate.set(rate);
        Ok(())
    }

    /// How many packets of a family may be punted.
    pub fn rate(&self, family: Family) -> Option<Rate> {
        self.side(family).rate.get()
    }

    /// Switches the features of a family's arc on and off.
    fn enable(&self, family: Family, redirect: bool, policer: bool) -> Result<(), PuntError> {
        let (arc, nodes) = match family {
            Family::Ip4 => (V4::ARC, [(V4::REDIRECT, redirect), (V4::POLICER, policer)]),
            Family::Ip6 => (V6::ARC, [(V6::REDIRECT, redirect), (V6::POLICER, policer)]),
        };
        for (node, on) in nodes {
            self.graph.enable_feature(arc, node, EVERYBODY, on)?;
        }
        Ok(())
    }

    /// An interface goes: nothing comes in by it any more.
    pub(crate) fn forget(&self, interface: SwIfIndex) {
        for family in Family::ALL {
            // Most have none.
            let _ = self.end_redirect(family, Rx::Interface(interface));
        }
    }
}
