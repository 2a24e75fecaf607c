//! Many hosts that share few addresses: NAT44, endpoint dependent, with sessions that are established before anything is measured.

use std::net::Ipv4Addr;

use fastrand::Rng;
use shoal_interface::SwIfIndex;
use shoal_module::Control;
use shoal_nat44_ed::{Enable, Nat44, Purpose, Side};

use crate::Result;
use crate::full_table::{self, SEED};
use crate::router;

/// Hosts behind the receiving interface: 10.0.0.2 and on.
const HOSTS: u32 = 250;
const FIRST_HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Remote networks that they talk to, one route each.
const REMOTE: u32 = 256;
/// The lowest port of a host: those below are not given out.
const FIRST_PORT: u32 = 1024;
/// The address that hosts share.
const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// NAT between the interfaces, with room for so many sessions, and routes to all remote networks.
pub fn translate(control: &Control, [input, output]: [SwIfIndex; 2], flows: u32) -> Result<()> {
    router::routes(control, output, REMOTE)?;
    let nat = control.get::<Nat44>()?;
    nat.enable_nat(Enable { sessions: flows.max(Enable::SESSIONS), ..Enable::default() })?;
    nat.set_side(input, Side::Inside, true)?;
    nat.set_side(output, Side::Outside, true)?;
    Ok(nat.add_addresses((SHARED, SHARED), Purpose::Pool, None)?)
}

/// Sessions that there are.
pub fn sessions(control: &Control) -> Result<usize> {
    Ok(control.get::<Nat44>()?.counts()?.values().sum())
}

/// One packet of each flow, in random order.
pub fn packets(flows: u32) -> Vec<Vec<u8>> {
    let mut order: Vec<u32> = (0..flows).collect();
    Rng::with_seed(SEED).shuffle(&mut order);
    order.into_iter().map(packet).collect()
}

fn packet(flow: u32) -> Vec<u8> {
    let host = Ipv4Addr::from_bits(FIRST_HOST.to_bits() + flow % HOSTS);
    let port = FIRST_PORT + flow / HOSTS;
    let remote = Ipv4Addr::from_bits(router::FIRST.to_bits() + ((flow % REMOTE) << 8) + 2);
    full_table::packet4((host, port as u16), remote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_differ() {
        let all: std::collections::BTreeSet<Vec<u8>> = packets(100_000).into_iter().collect();
        assert_eq!(all.len(), 100_000);
    }
}
