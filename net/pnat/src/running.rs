//! What rebuilds it. A binding that is attached nowhere is a client's, and not here.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};
use shoal_nat::Tuple;
use shoal_wire::IpProtocol;

use crate::{Fields, Pnat};

/// The words of a tuple; `proto` stands where the command has it.
fn words(line: &mut String, mask: Fields, tuple: &Tuple, proto: Option<u8>) {
    for (field, name, address) in [(Fields::SRC, "src", tuple.src), (Fields::DST, "dst", tuple.dst)] {
        if mask.has(field) {
            let _ = write!(line, " {name} {}", Ipv4Addr::from_bits(address));
        }
    }
    if let Some(proto) = proto.filter(|_| mask.has(Fields::PROTO)) {
        let _ = write!(line, " proto {}", IpProtocol(proto).0);
    }
    for (field, name, port) in [(Fields::SPORT, "sport", tuple.sport), (Fields::DPORT, "dport", tuple.dport)]
    {
        if mask.has(field) {
            let _ = write!(line, " {name} {port}");
        }
    }
}

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(pnat) = running.part::<Pnat>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for ((interface, place), _, of, rewrite) in pnat.attached() {
        let Ok(name) = interfaces.name(interface) else { continue };
        let mut line = format!("set pnat translation interface {} match", word(&name));
        words(&mut line, of.mask, &of.tuple, Some(of.protocol));
        line.push_str(" rewrite");
        words(&mut line, rewrite.mask, &rewrite.tuple, None);
        if rewrite.mask.has(Fields::COPY_BYTE) {
            let _ = write!(line, " copy byte at offset {} to {}", rewrite.from_offset, rewrite.to_offset);
        }
        if rewrite.mask.has(Fields::CLEAR_BYTE) {
            let _ = write!(line, " clear byte at offset {}", rewrite.clear_offset);
        }
        let _ = write!(line, " {place}");
        running.line(Phase::Policies, line);
    }
}
