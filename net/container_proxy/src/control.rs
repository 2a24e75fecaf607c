//! The control plane: whose packets are taken.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use shoal_fib::{Family, Fib, FibError, FibIndex, Path, Source, Via};
use shoal_interface::{InterfaceError, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::IpPrefix;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// There is no such interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The route was refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// It is not there.
    #[error("{0} behind {1} is no container's that this router takes packets for")]
    NotProxied(IpPrefix, String),
}

/// A prefix and the table its route is in.
type Key = (FibIndex, IpPrefix);

/// Whose packets are taken.
pub struct ContainerProxy {
    interfaces: Rc<Interfaces>,
    fib: Rc<Fib>,
    all: RefCell<BTreeMap<Key, SwIfIndex>>,
}

impl ContainerProxy {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Self, InitError> {
        Ok(ContainerProxy { interfaces: control.get()?, fib: control.get()?, all: RefCell::default() })
    }

    /// The prefix in the table of an interface, without bits behind its length.
    fn key(&self, prefix: IpPrefix, interface: SwIfIndex) -> Result<Key, ProxyError> {
        let data = self.interfaces.data(interface)?;
        let (family, host) = (Family::of(prefix.addr()), prefix.len() == prefix.max_len());
        let table = if family == Family::Ip4 { data.fib_ip4 } else { data.fib_ip6 };
        let network =
            if host { prefix } else { IpPrefix::new(prefix.network(), prefix.len()).unwrap_or(prefix) };
        Ok((FibIndex(table), network))
    }

    /// Takes packets to a prefix behind an interface.
    ///
    /// # Errors
    /// There is no such interface, or the route is refused.
    pub fn add(&self, prefix: IpPrefix, interface: SwIfIndex) -> Result<(), ProxyError> {
        let (table, prefix) = self.key(prefix, interface)?;
        let path = Path::from(Via::Local { interface: Some(interface), address: prefix.addr() });
        self.fib.add(table, prefix, Source::Proxy, &[path])?;
        self.all.borrow_mut().insert((table, prefix), interface);
        Ok(())
    }

    /// Takes them no longer.
    ///
    /// # Errors
    /// There is no such interface, or it did not.
    pub fn remove(&self, prefix: IpPrefix, interface: SwIfIndex) -> Result<(), ProxyError> {
        let name = self.interfaces.name(interface)?;
        let (table, network) = self.key(prefix, interface)?;
        // The interface may have another table by now.
        let mine = |(key, i): (&Key, &SwIfIndex)| (*i == interface && key.1 == network).then_some(*key);
        let key = match self.all.borrow().get(&(table, network)) {
            Some(_) => Some((table, network)),
            None => self.all.borrow().iter().find_map(mine),
        };
        let key = key.ok_or(ProxyError::NotProxied(prefix, name))?;
        self.drop_route(key);
        Ok(())
    }

    fn drop_route(&self, key: Key) {
        self.all.borrow_mut().remove(&key);
        if let Err(e) = self.fib.remove(key.0, key.1, Source::Proxy) {
            tracing::warn!("the route to the container {} stays: {e}", key.1);
        }
    }

    /// Whether packets to a prefix behind an interface are taken.
    pub fn is_set(&self, prefix: IpPrefix, interface: SwIfIndex) -> bool {
        let key = self.key(prefix, interface).ok();
        key.is_some_and(|key| self.all.borrow().get(&key) == Some(&interface))
    }

    /// All prefixes and their interfaces.
    pub fn list(&self) -> Vec<(IpPrefix, SwIfIndex)> {
        self.all.borrow().iter().map(|((_, prefix), interface)| (*prefix, *interface)).collect()
    }

    /// An interface goes, and what is behind it.
    pub(crate) fn forget(&self, interface: SwIfIndex) {
        let mine: Vec<Key> =
            self.all.borrow().iter().filter(|(_, i)| **i == interface).map(|(key, _)| *key).collect();
        for key in mine {
            self.drop_route(key);
        }
    }
}
