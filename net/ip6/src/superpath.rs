//! `ip6-superpath`: ethernet-input, and behind it the nodes of IPv4 and those of IPv6 up to the output node, as one.
//!
//! Interfaces on which IPv6 runs use it for both kinds of packets: only behind ethernet-input is it known which one a
//! packet is.

use std::rc::Rc;
use std::sync::Arc;

use shoal_ethernet::EthernetInput;
use shoal_graph::superpath::{Forward, Split, Then};
use shoal_interface::{IfFlags, Interfaces, OUTPUT_ARC, Output};
use shoal_ip4::Ip4Nodes;
use shoal_module::{Control, InitError};

use crate::Ip6Nodes;

/// The fused node's name.
pub const NAME: &str = "ip6-superpath";

/// Composes the chains and offers them to interfaces; after the graph was built.
pub(crate) fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let interfaces = control.get::<Interfaces>()?;
    let nodes = control.get::<Ip6Nodes>()?;
    let ethernet = Arc::clone(&*control.get::<Arc<EthernetInput>>()?);
    let output = || graph.arc(OUTPUT_ARC).map(|arc| Output { arc });
    let ip4 = control.get::<Ip4Nodes>()?.chain(output()?);
    let ip6 = Then(
        Arc::clone(&nodes.input),
        Forward(Arc::clone(&nodes.lookup), Arc::clone(&nodes.rewrite), output()?),
    );
    let node = graph.add_superpath(NAME, Split(ethernet, ip4, ip6))?;
    interfaces.set_superpath(IfFlags::IP6, node).map_err(|e| InitError::Other(e.to_string()))
}
