//! What rebuilds packet-generator interfaces. Streams and captures are tests that run, not configuration.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_interface::DEVICE_INPUT_ARC;
use shoal_module::{Control, Phase, Running, word};

use crate::node::mac_filter::MacFilter;
use crate::{Mode, Pg};
use shoal_graph::PacketNode;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(pg) = running.part::<Pg>(control) else { return };
    for (index, made) in pg.made() {
        let (Ok(name), Ok(data)) = (pg.interfaces.name(index), pg.interfaces.data(index)) else { continue };
        let made_as = format!("pg{}", made.id);
        let mut line = format!("create packet-generator interface {made_as}");
        if !data.mac().is_zero() {
            let _ = write!(line, " hw-addr {}", data.mac());
        }
        if let Some(size) = made.gso_size {
            let _ = write!(line, " gso-enabled gso-size {size}");
        }
        if made.coalesce {
            line.push_str(" coalesce-enabled");
        }
        if made.checksum_offload {
            line.push_str(" csum-offload-enabled");
        }
        if made.mode != Mode::Ethernet {
            let _ = write!(line, " mode {}", made.mode);
        }
        pg.interfaces.write_create(running, index, line, &made_as);
        let is_on = |(node, on): &(String, bool)| node == MacFilter::NAME && *on;
        let arcs = pg.graph.features(Some(index));
        if arcs.iter().any(|(arc, features)| *arc == DEVICE_INPUT_ARC && features.iter().any(is_on)) {
            let line = format!("packet-generator mac-filter {} on", word(&name));
            running.line_at(Phase::Settings, index.0, line);
        }
    }
}
