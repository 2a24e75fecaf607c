//! `ip4-superpath`: ethernet-input, ip4-input, ip4-lookup, ip4-rewrite and the output node as one.

use std::rc::Rc;
use std::sync::Arc;

use shoal_ethernet::EthernetInput;
use shoal_graph::superpath::{Forward, Link, Then};
use shoal_interface::{IfFlags, Interfaces, OUTPUT_ARC, Output};
use shoal_module::{Control, InitError};

use crate::Ip4Nodes;

/// The fused node's name.
pub const NAME: &str = "ip4-superpath";

impl Ip4Nodes {
    /// The nodes behind ethernet-input as a chain.
    pub fn chain(&self, output: Output) -> impl Link + use<> {
        let forward = Forward(Arc::clone(&self.lookup), Arc::clone(&self.rewrite), output);
        Then(Arc::clone(&self.input), forward)
    }
}

/// Composes the chain and offers it to interfaces; after the graph was built.
pub(crate) fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let interfaces = control.get::<Interfaces>()?;
    let nodes = control.get::<Ip4Nodes>()?;
    let ethernet = Arc::clone(&*control.get::<Arc<EthernetInput>>()?);
    let chain = Then(ethernet, nodes.chain(Output { arc: graph.arc(OUTPUT_ARC)? }));
    let node = graph.add_superpath(NAME, chain)?;
    interfaces.set_superpath(IfFlags::IP4, node).map_err(|e| InitError::Other(e.to_string()))
}
