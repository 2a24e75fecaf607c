//! From a device's ports to a tester.

use std::path::Path;

use shoal_lab_plan::{Attachment, Link, Ports, Tester};

use crate::clock::MachineClock;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::port::{DpdkPort, InterfaceError, MemifPort, PacketPort, TapPort, Transport, XdpPort};

/// A tester at the two ports of a device, over whatever wire they say.
///
/// # Errors
///
/// A port cannot be attached to, or they are of different kinds.
pub fn attach(ports: &Ports, clock: &MachineClock, link: Link) -> Result<Box<dyn Tester>, EngineError> {
    let both = [&ports.left.attachment, &ports.right.attachment];
    match both {
        [Attachment::Memif { socket: left, id }, Attachment::Memif { socket: right, id: other }] => {
            Ok(tester([MemifPort::attach(left, *id)?, MemifPort::attach(right, *other)?], clock, link))
        }
        [Attachment::Interface { transport, name, .. }, Attachment::Interface { transport: other, .. }]
            if transport == other =>
        {
            match transport.as_str() {
                "af-packet" => Ok(tester(open(both, PacketPort::open)?, clock, link)),
                "af-xdp" => Ok(tester(open(both, XdpPort::open)?, clock, link)),
                unknown => {
                    let (name, asked) = (name.clone(), unknown.to_owned());
                    Err(InterfaceError::Transport { name, asked }.into())
                }
            }
        }
        [Attachment::Tap { .. }, Attachment::Tap { .. }] => {
            Ok(tester(open(both, TapPort::open)?, clock, link))
        }
        [
            Attachment::Dpdk { namespace: left, words },
            Attachment::Dpdk { namespace: right, words: others },
        ] => {
            let wanted = [(left.as_deref(), words.as_str()), (right.as_deref(), others.as_str())];
            Ok(tester(DpdkPort::open(wanted)?, clock, link))
        }
        [left, right] => Err(EngineError::Mixed { left: kind(left), right: kind(right) }),
    }
}

/// Opens both interfaces by name, in their namespaces.
fn open<T>(
    both: [&Attachment; 2],
    by: impl Fn(Option<&Path>, &str) -> Result<T, InterfaceError>,
) -> Result<[T; 2], EngineError> {
    let one = |attachment: &Attachment| match attachment {
        Attachment::Interface { namespace, name, .. } | Attachment::Tap { namespace, name } => {
            by(namespace.as_deref(), name).map_err(EngineError::from)
        }
        other => Err(EngineError::Mixed { left: kind(other), right: "interface" }),
    };
    let [left, right] = both;
    Ok([one(left)?, one(right)?])
}

fn tester<T: Transport + 'static>(
    [left, right]: [T; 2],
    clock: &MachineClock,
    link: Link,
) -> Box<dyn Tester> {
    Box::new(Engine::new(left, right, clock.clone()).with_link(link))
}

fn kind(attachment: &Attachment) -> &'static str {
    match attachment {
        Attachment::Memif { .. } => "memif",
        Attachment::Interface { transport, .. } if transport == "af-xdp" => "af-xdp",
        Attachment::Interface { .. } => "af-packet",
        Attachment::Tap { .. } => "tap",
        Attachment::Dpdk { .. } => "dpdk",
    }
}
