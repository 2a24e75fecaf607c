//! Switching instead of routing: a cross-connect, and a bridge domain with many stations.

use shoal_bridge::{Bridges, Provision, Role, Settings};
use shoal_interface::SwIfIndex;
use shoal_l2::{L2, Mode};
use shoal_module::Control;
use shoal_wire::MacAddress;

use crate::Result;
use crate::full_table;

/// The number of the bridge domain.
const DOMAIN: u32 = 1;
/// The station that sends.
const SOURCE: MacAddress = full_table::HOST;

/// A station behind the sending interface.
fn station(n: u32) -> MacAddress {
    MacAddress::from_u64(0x02_00_01_00_00_00 + u64::from(n))
}

/// What one interface receives the other sends, and the other way round.
pub fn cross(control: &Control, [input, output]: [SwIfIndex; 2]) -> Result<()> {
    let l2 = control.get::<L2>()?;
    l2.set_mode(input, Mode::Xconnect(output))?;
    Ok(l2.set_mode(output, Mode::Xconnect(input))?)
}

/// A bridge domain of both, and so many stations behind the sending one.
pub fn bridge(control: &Control, [input, output]: [SwIfIndex; 2], stations: u32) -> Result<()> {
    let bridges = control.get::<Bridges>()?;
    bridges.create(DOMAIN, Settings::default())?;
    for member in [input, output] {
        bridges.join(member, DOMAIN, 0, Role::Normal)?;
    }
    bridges.provision(SOURCE, DOMAIN, input, Provision::Movable)?;
    (0..stations).try_for_each(|n| bridges.provision(station(n), DOMAIN, output, Provision::Movable))?;
    Ok(())
}

/// One frame from each of so many stations that are not known yet, to the first one that is.
pub fn newcomers(stations: u32) -> Vec<Vec<u8>> {
    let newcomer = |n: u32| MacAddress::from_u64(0x02_00_02_00_00_00 + u64::from(n));
    (0..stations).map(|n| full_table::frame(newcomer(n), station(0))).collect()
}

/// The frames of a stream, to random ones of so many stations.
pub fn frames(stations: u32) -> Vec<Vec<u8>> {
    full_table::frames_to(|rng| station(rng.u32(..stations)))
}
