//! From a device's ports to a tester.

use shoal_lab_plan::{Attachment, Link, Ports, Tester};

use crate::clock::MachineClock;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::port::{InterfaceError, MemifPort, PacketPort, TapPort, Transport, XdpPort};

/// A tester at the two ports of a device, over whatever wire they say.
///
/// # Errors
///
/// A port cannot be attached to, or they are of different kinds.
pub fn attach(ports: &Ports, clock: &MachineClock, link: Link) -> Result<Box<dyn Tester>, EngineError> {
    let (left, right) = (&ports.left.attachment, &ports.right.attachment);
    match (left, right) {
        (Attachment::Memif { socket: a, id: i }, Attachment::Memif { socket: b, id: j }) => {
            Ok(tester(MemifPort::attach(a, *i)?, MemifPort::attach(b, *j)?, clock, link))
        }
        (
            Attachment::Interface { namespace: m, name: a, transport: s },
            Attachment::Interface { namespace: n, name: b, transport: t },
        ) if s == t => match s.as_str() {
            "af-packet" => Ok(tester(
                PacketPort::open(m.as_deref(), a)?,
                PacketPort::open(n.as_deref(), b)?,
                clock,
                link,
            )),
            "af-xdp" => {
                Ok(tester(XdpPort::open(m.as_deref(), a)?, XdpPort::open(n.as_deref(), b)?, clock, link))
            }
            other => {
                let (name, asked) = (a.clone(), other.to_owned());
                Err(InterfaceError::Transport { name, asked }.into())
            }
        },
        (Attachment::Tap { namespace: m, name: a }, Attachment::Tap { namespace: n, name: b }) => {
            Ok(tester(TapPort::open(m.as_deref(), a)?, TapPort::open(n.as_deref(), b)?, clock, link))
        }
        _ => Err(EngineError::Mixed { left: kind(left), right: kind(right) }),
    }
}

fn tester<T: Transport + 'static>(left: T, right: T, clock: &MachineClock, link: Link) -> Box<dyn Tester> {
    Box::new(Engine::new(left, right, clock.clone()).with_link(link))
}

fn kind(attachment: &Attachment) -> &'static str {
    match attachment {
        Attachment::Memif { .. } => "memif",
        Attachment::Interface { transport, .. } if transport == "af-xdp" => "af-xdp",
        Attachment::Interface { .. } => "af-packet",
        Attachment::Tap { .. } => "tap",
    }
}
