//! Addresses and ports that are given out: which, and in what order they are tried.

use shoal_flow::Handle;
use shoal_graph::clock::Time;
use shoal_interface::SwIfIndex;
use shoal_nat::tuple::{ICMP, UDP};
use shoal_nat44::ports::{fold, has_ports, range};

use crate::bindings::Endpoint;
use crate::config::{Config, PoolAddress};
use crate::decide::DropReason;

use crate::sessions::{Refusal, Session, Sessions};

/// Ports tried of one address, beside the host's own.
const TRIES: usize = 24;
/// Addresses tried. The work of a packet is bounded, however many are taken.
const ADDRESSES: usize = 4;

/// A session that was made, or why none was.
pub type InjectedPacket = Result<Handle, DropReason>;

/// What is wanted.
pub struct Ports<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Now.
    pub now: Time,
    /// The worker.
    pub thread: usize,
    /// The session: its outside source, or inside destination, is still to be given.
    pub session: Session,
    /// Of an output feature: where the packet goes out.
    pub tx: Option<SwIfIndex>,
}

/// What an attempt came to.
enum PortAttempt {
    Made(Handle),
    Taken,
    Full,
}

impl Ports<'_> {
    /// Gives the session a shared address and one of its ports.
    ///
    /// # Errors
    /// All that were tried are taken.
    pub fn dynamic(&self, sessions: &mut Sessions) -> InjectedPacket {
        let Session { inside, inside_table, protocol, .. } = self.session;
        if let Some(outside) = sessions.bindings().of_host((inside.src, inside.sport), protocol, inside_table)
        {
            return self.again(sessions, outside);
        }
        let mut left = ADDRESSES;
        for wish in [AddressChoice::Network, AddressChoice::Table, AddressChoice::Any] {
            for pool in self.in_order().filter(|pool| self.fits(pool, wish)) {
                match self.of_address(sessions, pool.address) {
                    PortAttempt::Made(handle) => return Ok(handle),
                    PortAttempt::Full => return Err(DropReason::MaxSessions),
                    PortAttempt::Taken => left -= 1,
                }
                if left == 0 {
                    return Err(DropReason::OutOfPorts);
                }
            }
        }
        Err(DropReason::OutOfPorts)
    }

    /// RFC 4787, REQ-1, and 5382, REQ-1: the host's port has the outside port that it has towards other remote hosts.
    fn again(&self, sessions: &mut Sessions, (address, port): Endpoint) -> InjectedPacket {
        match self.create(sessions, self.from(address, port)) {
            PortAttempt::Made(handle) => Ok(handle),
            PortAttempt::Taken => Err(DropReason::CannotTranslate),
            PortAttempt::Full => Err(DropReason::MaxSessions),
        }
    }

    /// The pool, from the address that VPP takes for the host, backwards. RFC 4787, REQ-2: a host keeps its address.
    fn in_order(&self) -> impl Iterator<Item = &PoolAddress> {
        let pool = &self.config.pool;
        let start = fold(self.session.inside.src) as usize % pool.len().max(1);
        let (later, sooner) = pool.split_at_checked(start).map_or((&[][..], &[][..]), |(a, b)| (a, b));
        later.iter().rev().chain(sooner.iter().rev())
    }

    fn fits(&self, pool: &PoolAddress, wish: AddressChoice) -> bool {
        let Session { inside_table, outside, .. } = self.session;
        let of_table = pool.table == Some(inside_table);
        let of_network = (of_table || pool.table.is_none())
            && pool.network.is_some_and(|(interface, network, mask)| match self.tx {
                Some(tx) => tx == interface,
                None => outside.dst & mask == network,
            });
        match wish {
            AddressChoice::Network => of_network,
            AddressChoice::Table => of_table && !of_network,
            AddressChoice::Any => pool.table.is_none() && !of_network,
        }
    }

    fn range(&self) -> (u16, u32) {
        range(self.config.nth(self.thread).unwrap_or(0), self.config.workers.len())
    }

    fn of_address(&self, sessions: &mut Sessions, address: u32) -> PortAttempt {
        let host_port = self.session.inside.sport;
        if !has_ports(self.session.protocol) {
            return self.try_port(sessions, address, host_port);
        }
        let (first, count) = self.range();
        let is_ours = u32::from(host_port).checked_sub(first.into()).is_some_and(|offset| offset < count);
        let mut tried = PortAttempt::Taken;
        if is_ours {
            // RFC 4787, REQ-3, and 7857: the host's own port, if it is free.
            tried = self.try_port(sessions, address, host_port);
        }
        for _ in 0..TRIES {
            if !matches!(tried, PortAttempt::Taken) {
                break;
            }
            let offset = self.alike(sessions.random.below(count), first, count);
            tried = self.try_port(sessions, address, first.wrapping_add(offset as u16));
        }
        tried
    }

    /// RFC 4787, REQ-4: of UDP, an even port for an even one, and an odd one for an odd one.
    fn alike(&self, offset: u32, first: u16, count: u32) -> u32 {
        let is_odd = (u32::from(first) + offset) & 1 == 1;
        let differs = is_odd != (self.session.inside.sport & 1 == 1);
        let other = if is_odd { offset.checked_sub(1) } else { offset.checked_add(1) };
        let other = other.filter(|other| *other < count);
        if self.session.protocol == UDP && differs { other.unwrap_or(offset) } else { offset }
    }

    /// The session, with this outside address and port.
    fn from(&self, address: u32, port: u16) -> Session {
        let mut session = self.session;
        session.outside.src = address;
        session.outside.sport = port;
        if session.protocol == ICMP {
            session.outside.dport = port;
        }
        session
    }

    fn try_port(&self, sessions: &mut Sessions, address: u32, port: u16) -> PortAttempt {
        // A port of a mapping is given to no other session.
        if self.config.mappings.exact(address, port, self.session.protocol).is_some() {
            return PortAttempt::Taken;
        }
        self.create(sessions, self.from(address, port))
    }

    fn create(&self, sessions: &mut Sessions, session: Session) -> PortAttempt {
        if !sessions.is_free(&session) {
            return PortAttempt::Taken;
        }
        match sessions.create(session, self.now) {
            Ok(handle) => PortAttempt::Made(handle),
            Err(Refusal::Taken) => PortAttempt::Taken,
            Err(Refusal::Full) => PortAttempt::Full,
        }
    }

    /// Gives the session, which begins outside, an address and a port that stand for its outside host. The entry that is named
    /// is the inside one.
    ///
    /// # Errors
    /// All that were tried are taken.
    pub fn twice(&self, sessions: &mut Sessions, wanted: Option<u32>) -> InjectedPacket {
        let twice = &self.config.twice;
        let fallback = || {
            let at = self.session.outside.dst as usize % twice.len().max(1);
            twice.get(at).map(|pool| pool.address)
        };
        let exact = wanted.filter(|wanted| self.config.is_twice(*wanted));
        let address = exact.or_else(fallback).ok_or(DropReason::OutOfPorts)?;
        self.hide(sessions, address)
    }

    /// Gives the session, which begins outside and whose inside tuple another session has, another port of its outside host:
    /// nothing else tells the two apart inside.
    ///
    /// # Errors
    /// All that were tried are taken.
    pub fn another(&self, sessions: &mut Sessions) -> InjectedPacket {
        self.hide(sessions, self.session.inside.dst)
    }

    fn hide(&self, sessions: &mut Sessions, address: u32) -> InjectedPacket {
        let (first, count) = self.range();
        for _ in 0..TRIES {
            let mut session = self.session;
            let port = first.wrapping_add(sessions.random.below(count) as u16);
            session.inside.dst = address;
            session.inside.dport = if has_ports(session.protocol) { port } else { 0 };
            match self.create(sessions, session) {
                PortAttempt::Made(handle) => return Ok(handle),
                PortAttempt::Full => return Err(DropReason::MaxSessions),
                PortAttempt::Taken => {}
            }
        }
        Err(DropReason::OutOfPorts)
    }
}

/// What is looked for in the pool, one after the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AddressChoice {
    /// An address of the network the packet goes to.
    Network,
    /// One for the host's table.
    Table,
    /// One for all.
    Any,
}
