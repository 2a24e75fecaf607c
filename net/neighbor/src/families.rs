//! All families' neighbours, whatever their addresses: what commands go through.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use shoal_adj::{AdjIndex, Family};
use shoal_interface::SwIfIndex;
use shoal_module::Control;
use shoal_wire::MacAddress;

use crate::counters::Messages;
use crate::table::{FibEntry, Limits, Origin};
use crate::{Address, Flush, Info, NeighbourError, Neighbours, NewLimits, Protocol};

/// The neighbours of one family.
pub trait AnyNeighbours {
    /// How many there are.
    fn count(&self) -> usize;
    /// All, by interface and address.
    fn list(&self) -> Vec<Info<IpAddr>>;
    /// As [`Neighbours::list_after`]; nothing if the address is of another family.
    fn list_after(&self, after: Option<(SwIfIndex, IpAddr)>, most: usize) -> Vec<Info<IpAddr>>;
    /// As [`Neighbours::adjacency`]; nothing if the address is of another family.
    fn adjacency(&self, key: (SwIfIndex, IpAddr)) -> Option<AdjIndex>;
    /// As [`Neighbours::is_given`]; no if the address is of another family.
    fn is_given(&self, key: (SwIfIndex, IpAddr)) -> bool;
    /// As [`Neighbours::begin_replacement`].
    fn begin_replacement(&self);
    /// As [`Neighbours::end_replacement`].
    fn end_replacement(&self);
    /// As [`Neighbours::set_many`].
    ///
    /// # Errors
    /// As there, or the address is of another family.
    fn set_many(
        &self,
        first: (SwIfIndex, IpAddr),
        mac: MacAddress,
        count: u32,
        origin: Origin,
        fib_entry: FibEntry,
    ) -> Result<(), NeighbourError>;
    /// As [`Neighbours::remove_many`].
    ///
    /// # Errors
    /// As there, or the address is of another family.
    fn remove_many(&self, first: (SwIfIndex, IpAddr), count: u32) -> Result<(), NeighbourError>;
    /// As [`Neighbours::flush`].
    fn flush(&self, interface: Option<SwIfIndex>, which: Flush);
    /// The name of the protocol, and how many of its messages came in and went out on an interface.
    fn messages(&self, interface: SwIfIndex) -> (&'static str, Vec<Messages>);
    /// As [`Neighbours::limits`].
    fn limits(&self) -> Limits;
    /// As [`Neighbours::set_limits`].
    fn set_limits(&self, new: NewLimits);
}

fn own<A: Address>(address: IpAddr) -> Result<A, NeighbourError> {
    A::of(address).ok_or(NeighbourError::NoProtocol(Family::of(address)))
}

fn any<A: Address>(info: Info<A>) -> Info<IpAddr> {
    let Info { interface, address, neighbour, age, state, role } = info;
    Info { interface, address: address.into(), neighbour, age, state, role }
}

impl<P: Protocol> AnyNeighbours for Neighbours<P> {
    fn count(&self) -> usize {
        Neighbours::len(self)
    }

    fn list(&self) -> Vec<Info<IpAddr>> {
        Neighbours::list(self).into_iter().map(any).collect()
    }

    fn list_after(&self, after: Option<(SwIfIndex, IpAddr)>, most: usize) -> Vec<Info<IpAddr>> {
        let after = match after {
            None => None,
            Some((interface, address)) => match P::Addr::of(address) {
                Some(address) => Some((interface, address)),
                None => return Vec::new(),
            },
        };
        Neighbours::list_after(self, after, most).into_iter().map(any).collect()
    }

    fn is_given(&self, (interface, address): (SwIfIndex, IpAddr)) -> bool {
        P::Addr::of(address).is_some_and(|address| Neighbours::is_given(self, (interface, address)))
    }

    fn adjacency(&self, (interface, address): (SwIfIndex, IpAddr)) -> Option<AdjIndex> {
        Neighbours::adjacency(self, (interface, P::Addr::of(address)?))
    }

    fn begin_replacement(&self) {
        Neighbours::begin_replacement(self);
    }

    fn end_replacement(&self) {
        Neighbours::end_replacement(self);
    }

    fn set_many(
        &self,
        (interface, first): (SwIfIndex, IpAddr),
        mac: MacAddress,
        count: u32,
        origin: Origin,
        fib_entry: FibEntry,
    ) -> Result<(), NeighbourError> {
        Neighbours::set_many(self, (interface, own(first)?), mac, count, origin, fib_entry)
    }

    fn remove_many(&self, (interface, first): (SwIfIndex, IpAddr), count: u32) -> Result<(), NeighbourError> {
        Neighbours::remove_many(self, interface, own(first)?, count)
    }

    fn flush(&self, interface: Option<SwIfIndex>, which: Flush) {
        Neighbours::flush(self, interface, which);
    }

    fn messages(&self, interface: SwIfIndex) -> (&'static str, Vec<Messages>) {
        (P::NAME, self.protocol().messages(interface))
    }

    fn limits(&self) -> Limits {
        Neighbours::limits(self)
    }

    fn set_limits(&self, new: NewLimits) {
        Neighbours::set_limits(self, new);
    }
}

/// The families that have a protocol.
#[derive(Default)]
pub struct Families(RefCell<BTreeMap<Family, Rc<dyn AnyNeighbours>>>);

impl Families {
    /// Those of a router.
    pub fn of(control: &Control) -> Rc<Families> {
        control.get::<Families>().unwrap_or_else(|_| control.put(Families::default()))
    }

    /// A family's protocol says where its neighbours are.
    pub fn add(&self, family: Family, neighbours: Rc<dyn AnyNeighbours>) {
        self.0.borrow_mut().insert(family, neighbours);
    }

    /// The neighbours of a family.
    ///
    /// # Errors
    /// It has no protocol here.
    pub fn get(&self, family: Family) -> Result<Rc<dyn AnyNeighbours>, NeighbourError> {
        self.0.borrow().get(&family).cloned().ok_or(NeighbourError::NoProtocol(family))
    }

    /// All families, with their neighbours.
    pub fn all(&self) -> Vec<(Family, Rc<dyn AnyNeighbours>)> {
        self.0.borrow().iter().map(|(family, n)| (*family, Rc::clone(n))).collect()
    }
}
