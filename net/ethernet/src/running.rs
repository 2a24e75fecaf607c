//! What rebuilds sub-interfaces.

use shoal_interface::{Exact, Inner, Interfaces, Match, TagKind};
use shoal_module::{Control, Phase, Running, word};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    running.each(interfaces.indices(), move |running, index| {
        let Some(sub) = interfaces.sub(index) else { return };
        // The ends of a pipe come with it.
        if interfaces.follows(index) || sub.takes == Match::End {
            return;
        }
        let (Ok(made_as), Ok(port)) = (interfaces.made_as(sub.port), interfaces.name(sub.port)) else {
            return;
        };
        let takes = words(sub.takes, sub.number);
        let line = format!("create sub-interfaces {} {}{takes}", word(&made_as), sub.number);
        // All have the name of their port when it comes into being, and follow it to that which it has now.
        running.line_at(Phase::SubInterfaces, index.0, line);
        interfaces.write_name(running, index, &format!("{port}.{}", sub.number));
    });
}

/// What a command says of the frames that a sub-interface takes, behind its number.
fn words(takes: Match, number: u32) -> String {
    let Match::Tags { kind, outer, inner, exact } = takes else {
        return if takes == Match::Default { " default".into() } else { " untagged".into() };
    };
    if takes == Match::exact_dot1q(outer) && u32::from(outer.number()) == number {
        return String::new();
    }
    let kind = if kind == TagKind::Dot1q { "dot1q" } else { "dot1ad" };
    let inner = match inner {
        Inner::None => String::new(),
        Inner::Any => " inner-dot1q any".into(),
        Inner::Id(id) => format!(" inner-dot1q {}", id.number()),
    };
    let exact = if exact == Exact::Yes { " exact-match" } else { "" };
    format!(" {kind} {}{inner}{exact}", outer.number())
}
