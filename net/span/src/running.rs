//! What rebuilds mirrors.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::{Mirror, MirrorDirections, Span};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(span) = running.part::<Span>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for Mirror { source, destination, device, l2 } in span.list() {
        let (Ok(from), Ok(to)) = (interfaces.name(source), interfaces.name(destination)) else { continue };
        for (level, ways) in [("", device), ("l2 ", l2)] {
            if ways != MirrorDirections::NONE {
                let (from, to, ways) = (word(&from), word(&to), ways.name());
                let line = format!("set interface span {from} {level}destination {to} {ways}");
                running.line_at(Phase::Policies, source.0, line);
            }
        }
    }
}
