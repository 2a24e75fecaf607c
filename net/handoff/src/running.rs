//! What rebuilds which interfaces are spread over which workers.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};
use shoal_wire::hash::Symmetry;

use crate::{DefaultPlacement, Depth, Handoff, Label, Workers};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(handoff), Some(interfaces)) =
        (running.part::<Handoff>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    if handoff.unsaid() != handoff.unsaid_at_start() {
        let default = if handoff.unsaid() == DefaultPlacement::Auto { "auto" } else { "off" };
        running.line(Phase::System, format!("set handoff default {default}"));
    }
    for (index, workers, rules) in handoff.said() {
        let Ok(name) = interfaces.name(index) else { continue };
        let workers = match workers {
            None => " disable".to_owned(),
            Some(Workers::Auto) => " auto".to_owned(),
            Some(Workers::These(list)) => {
                let list: Vec<String> = list.iter().map(u32::to_string).collect();
                format!(" workers {}", list.join(","))
            }
        };
        let words = [
            (rules.symmetry == Symmetry::Symmetric, " symmetrical"),
            (rules.depth == Depth::Outer, " outer"),
            (rules.label == Label::Counts, " flow-label"),
        ];
        let words: String = words.into_iter().filter(|(said, _)| *said).map(|(_, word)| word).collect();
        let line = format!("set interface handoff {}{workers}{words}", word(&name));
        running.line_at(Phase::Settings, index.0, line);
    }
}
