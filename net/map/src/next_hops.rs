//! Next hops of all packets that leave MAP, as an operator sets them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::{AdjIndex, Family};
use shoal_fib::{Fib, FibError, FibIndex, HeldPathList, Path};

/// A next hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextHop<A> {
    /// Its address.
    pub address: A,
    /// What leads to it, as the forwarding table has it.
    pub adj: AdjIndex,
}

/// Those that are set. Packets go where the forwarding table says without one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NextHops {
    /// Of IPv4 packets.
    pub ip4: Option<NextHop<Ipv4Addr>>,
    /// Of IPv6 packets.
    pub ip6: Option<NextHop<Ipv6Addr>>,
}

impl NextHops {
    /// The addresses of those that are set.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let ip4 = self.ip4.map(|hop| hop.address.into());
        ip4.into_iter().chain(self.ip6.map(|hop| hop.address.into()))
    }

    fn set(&mut self, address: IpAddr, adj: Option<AdjIndex>) {
        match address {
            IpAddr::V4(address) => self.ip4 = adj.map(|adj| NextHop { address, adj }),
            IpAddr::V6(address) => self.ip6 = adj.map(|adj| NextHop { address, adj }),
        }
    }
}

/// The paths to them: the forwarding table follows these as routes and neighbours change.
#[derive(Default)]
pub(crate) struct HeldNextHops {
    now: NextHops,
    ip4: Option<HeldPathList>,
    ip6: Option<HeldPathList>,
}

impl HeldNextHops {
    /// Those that are set.
    pub(crate) fn now(&self) -> NextHops {
        self.now
    }

    /// Sets those of the families of these addresses, or none of them any more. What has no user any more afterwards is to be
    /// given back when packets do not read it.
    ///
    /// # Errors
    /// One cannot be a next hop; nothing has changed.
    pub(crate) fn set(
        &mut self,
        fib: &Fib,
        addresses: &[IpAddr],
        on: bool,
    ) -> Result<Vec<HeldPathList>, FibError> {
        let mut made = Vec::new();
        for address in addresses.iter().filter(|_| on) {
            match fib.hold(Family::of(*address), &[Path::recursive(*address, FibIndex::DEFAULT)]) {
                Ok(held) => made.push(held),
                Err(error) => {
                    for held in made {
                        fib.release(held);
                    }
                    return Err(error);
                }
            }
        }
        let (mut made, mut unused) = (made.into_iter(), Vec::new());
        for address in addresses {
            let held = made.next();
            self.now.set(*address, held.as_ref().map(|held| fib.held(held).adj));
            let place = if address.is_ipv4() { &mut self.ip4 } else { &mut self.ip6 };
            unused.extend(std::mem::replace(place, held));
        }
        Ok(unused)
    }
}
