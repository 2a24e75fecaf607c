//! A router whose input nodes send each packet to the interface it names, or back to where it came from.

use std::rc::Rc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_interface::SwIfIndex;
use shoal_module::{Control, InitError, Module};

#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    #[node("interface-output")]
    Output,
}

#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// empty
    Empty,
}

#[derive(TraceLine)]
#[line("{bytes} bytes, flags {flags}, l4 {l4}")]
pub struct Trace {
    bytes: usize,
    flags: u32,
    l4: i16,
}

pub struct Back;

impl PacketNode for Back {
    const NAME: &'static str = "ethernet-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let (bytes, l4) = (pkt.len(), pkt.meta().l4);
        let flags = pkt.flags().without(Flags::TRACED).0;
        cx.trace(pkt, || Trace { bytes, flags, l4 });
        if pkt.is_empty() {
            return Err(Error::Empty);
        }
        if pkt.tx() == SwIfIndex::NONE {
            pkt.meta_mut().tx = pkt.rx();
        }
        Ok(Next::Output)
    }
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    for name in ["ethernet-input", "ip4-input", "ip6-input"] {
        graph.add_packet_named(name, Back)?;
    }
    Ok(())
}

pub static BACK: Module = Module { name: "back", description: "sends packets back", init, ..Module::NONE };
