//! Reports as text: lines of at most 100 columns, colours on a terminal only.

use std::fmt::Write;

use crate::advice::{Advice, State};
use crate::findings::{Finding, Verdict};
use crate::ports::{Kind, Link, Port};
use crate::report::Report;
use crate::tune::{Applied, Name, State as TuneState, Undone};

const COLUMNS: usize = 100;

/// What is written, and whether in colours.
pub(crate) struct Page {
    text: String,
    colours: bool,
}

#[derive(Clone, Copy)]
enum Colour {
    Bold,
    Red,
    Green,
    Yellow,
}

impl Page {
    pub fn new(colours: bool) -> Self {
        Self { text: String::new(), colours }
    }

    pub fn finish(self) -> String {
        self.text
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Bold => "1",
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
        };
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn heading(&mut self, text: &str) {
        let line = self.paint(Colour::Bold, text);
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// A word in its column, then text that goes on below itself. The word may be painted.
    fn row(&mut self, indent: usize, label: (&str, Option<Colour>), width: usize, text: &str) {
        let start = indent + width;
        let painted = label.1.map_or_else(|| label.0.to_owned(), |colour| self.paint(colour, label.0));
        let pad = width.saturating_sub(label.0.chars().count());
        let _ = write!(self.text, "{:indent$}{painted}{:pad$}", "", "");
        for (i, line) in wrap(text, COLUMNS.saturating_sub(start)).iter().enumerate() {
            if i > 0 {
                let _ = write!(self.text, "{:start$}", "");
            }
            self.text.push_str(line);
            self.text.push('\n');
        }
    }
}

/// Breaks text at blanks; a word longer than a line is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest = word;
        while let Some(line) = lines.last_mut() {
            let used = line.chars().count();
            let blank = usize::from(used > 0);
            if used + blank + rest.chars().count() <= width {
                if blank == 1 {
                    line.push(' ');
                }
                line.push_str(rest);
                break;
            }
            if used == 0 {
                let cut = rest.char_indices().nth(width).map_or(rest.len(), |(at, _)| at);
                let (head, tail) = rest.split_at(cut);
                line.push_str(head);
                rest = tail;
            }
            lines.push(String::new());
        }
    }
    lines
}

pub(crate) fn doctor(report: &Report, page: &mut Page) {
    page.heading("Ports (commands are the router's: at its prompt, or after `shoalctl`)");
    for row in &report.ports {
        port(page, &row.port, &row.advice);
    }
    for row in &report.cards {
        let about = format!("{}  {}  no interface", row.card.model, row.card.bus);
        page.row(2, ("-", Some(Colour::Bold)), 17, &about);
        advice(page, &row.advice);
    }
    if report.more_ports > 0 {
        page.row(2, ("...", None), 17, &format!("and {} more interfaces, not listed", report.more_ports));
    }
    for remark in &report.remarks {
        page.row(2, ("", None), 0, remark);
    }
    page.text.push('\n');
    page.heading("Machine");
    for finding in &report.findings {
        self::finding(page, finding);
    }
    if !report.unread.is_empty() {
        page.text.push('\n');
        page.heading("Not read");
        for unread in report.unread.iter().take(8) {
            page.row(2, ("", None), 0, &format!("{}: {}", unread.path, unread.why));
        }
        if report.unread.len() > 8 {
            page.row(2, ("", None), 0, &format!("and {} more (--json lists them)", report.unread.len() - 8));
        }
    }
    page.text.push('\n');
    page.row(0, ("next:", Some(Colour::Bold)), 6, &report.next);
}

fn port(page: &mut Page, port: &Port, told: &Advice) {
    let (state, colour) = match told.state {
        State::Free => ("free", Colour::Green),
        State::LeftAlone => ("left alone", Colour::Red),
        State::Member => ("in use", Colour::Yellow),
        State::NotForUs => ("-", Colour::Yellow),
    };
    let mut about = vec![state.to_owned()];
    let kind = match port.kind {
        Kind::Physical => "",
        Kind::Loopback => "loopback",
        Kind::Veth => "veth",
        Kind::Tap => "tap",
        Kind::Tun => "tun",
        Kind::Bridge => "bridge",
        Kind::Bond => "bond",
        Kind::Vlan => "vlan",
        Kind::Wireless => "wireless",
        Kind::Virtual => "virtual",
        Kind::Unknown => "kind unknown",
    };
    about.extend([kind.to_owned()].into_iter().filter(|k| !k.is_empty()));
    if port.kind == Kind::Physical {
        about.push(port.driver.clone().unwrap_or_else(|| "no driver".into()));
        about.extend(port.model.iter().filter(|m| *m != "virtio").cloned());
        about.extend(port.bus.clone());
    }
    about.extend(port.speed.map(|speed| match speed {
        1000.. => format!("{}{} Gbit/s", speed / 1000, if speed % 1000 == 500 { ".5" } else { "" }),
        _ => format!("{speed} Mbit/s"),
    }));
    if port.rx_queues.max(port.tx_queues) > 1 {
        about.push(format!("{} rx, {} tx queues", port.rx_queues, port.tx_queues));
    }
    about.extend(match port.link {
        Link::NoCarrier => Some("no carrier".to_owned()),
        Link::Down => Some("down".to_owned()),
        Link::Up | Link::Unknown => None,
    });
    let rest = about.iter().skip(1).cloned().collect::<Vec<_>>().join(", ");
    let painted = page.paint(colour, state);
    let pad = 11usize.saturating_sub(state.len());
    // The state is painted apart, so that wrapping counts no colours.
    let name = page.paint(Colour::Bold, &port.name);
    let name_pad = 17usize.saturating_sub(port.name.chars().count()).max(1);
    let _ = write!(page.text, "  {name}{:name_pad$}{painted}{:pad$}", "", "");
    let start = 2 + port.name.chars().count() + name_pad + 11;
    for (i, line) in wrap(&rest, COLUMNS.saturating_sub(start).max(20)).iter().enumerate() {
        if i > 0 {
            let _ = write!(page.text, "{:30}", "");
        }
        page.text.push_str(line);
        page.text.push('\n');
    }
    advice(page, told);
}

fn advice(page: &mut Page, told: &Advice) {
    for why in &told.why {
        page.row(6, ("", None), 0, why);
    }
    if let Some(share) = &told.share {
        page.row(6, ("share it:", Some(Colour::Yellow)), 20, share);
    }
    if let Some(before) = &told.before {
        page.row(6, ("in the shell:", None), 20, before);
    }
    if told.state == State::LeftAlone {
        return;
    }
    for way in &told.ways {
        let (label, text) = match (&way.command, &way.note) {
            (Some(command), Some(note)) => {
                page.row(6, (way.name, None), 20, command);
                ("", note.clone())
            }
            (Some(text), None) => (way.name, text.clone()),
            (None, note) => (way.name, note.clone().unwrap_or_default()),
        };
        page.row(6, (label, None), 20, &text);
    }
}

fn finding(page: &mut Page, finding: &Finding) {
    let (word, colour) = match finding.verdict {
        Verdict::Missing => ("missing", Colour::Red),
        Verdict::Better => ("better", Colour::Yellow),
        Verdict::Fine => ("fine", Colour::Green),
        Verdict::Unknown => ("unknown", Colour::Yellow),
    };
    let painted = page.paint(colour, word);
    let pad = 8usize.saturating_sub(word.len());
    let _ = write!(page.text, "  {painted}{:pad$}{:14}", "", finding.name);
    for (i, line) in wrap(&finding.value, COLUMNS - 24).iter().enumerate() {
        if i > 0 {
            let _ = write!(page.text, "{:24}", "");
        }
        page.text.push_str(line);
        page.text.push('\n');
    }
    if let Some(worth) = finding.worth {
        let source = finding.source.map(|source| format!(" ({source})")).unwrap_or_default();
        page.row(24, ("", None), 0, &format!("{worth}{source}"));
    }
    if let Some(command) = &finding.command {
        page.row(24, ("->", Some(colour)), 3, command);
    }
}

pub(crate) fn subsets(states: &[(Name, TuneState)], page: &mut Page) {
    for (name, state) in states {
        let (word, colour, what) = match state {
            TuneState::Applied { what } => ("applied", Colour::Green, what),
            TuneState::Fine { what } => ("fine", Colour::Green, what),
            TuneState::Available { what } => ("available", Colour::Yellow, what),
            TuneState::Changed { what } => ("changed", Colour::Red, what),
            TuneState::Impossible { what } => ("not here", Colour::Bold, what),
        };
        let painted = page.paint(colour, word);
        let pad = 11usize.saturating_sub(word.len());
        let _ = write!(page.text, "{:14}{painted}{:pad$}", name.word(), "");
        let mut what = what.clone();
        if matches!(state, TuneState::Changed { .. }) {
            what.push_str(" (by somebody else since)");
        }
        for (i, line) in wrap(&what, COLUMNS - 25).iter().enumerate() {
            if i > 0 {
                let _ = write!(page.text, "{:25}", "");
            }
            page.text.push_str(line);
            page.text.push('\n');
        }
    }
    let safe = |(name, state): &&(Name, TuneState)| {
        matches!(state, TuneState::Available { .. }) && name.warning().is_none()
    };
    let names: Vec<_> = states.iter().filter(safe).map(|(name, _)| name.word()).collect();
    let next = if names.is_empty() {
        "nothing to apply that has no price; see shoal tune --help".to_owned()
    } else {
        format!("sudo shoal tune apply {}", names.join(" "))
    };
    page.row(0, ("next:", Some(Colour::Bold)), 6, &next);
}

pub(crate) fn applied(report: &[Applied], dry_run: bool, page: &mut Page) {
    for row in report {
        let word = match (row.changed, dry_run) {
            (false, _) => "fine",
            (true, true) => "would",
            (true, false) => "applied",
        };
        let colour = if row.short.is_some() { Colour::Yellow } else { Colour::Green };
        page.row(0, (&format!("{:14}{word}", row.subset.word()), Some(colour)), 22, &row.what);
        for more in row.short.iter().map(String::as_str).chain(row.warning) {
            page.row(22, ("", None), 0, more);
        }
        if let Some(kept) = &row.kept {
            page.row(22, ("", None), 0, &format!("at each boot, by {kept}"));
        }
    }
    if report.iter().any(|row| row.changed) && !dry_run {
        page.row(0, ("", None), 0, "until the next boot, or: sudo shoal tune undo");
    }
}

pub(crate) fn undone(report: &[Undone], dry_run: bool, page: &mut Page) {
    if report.is_empty() {
        page.row(0, ("", None), 0, "nothing was applied by shoal tune: nothing to undo");
    }
    for row in report {
        let (word, colour) = match (row.restored, row.failed, dry_run) {
            (true, ..) => ("undone", Colour::Green),
            (_, true, _) => ("failed", Colour::Red),
            (_, _, true) => ("would", Colour::Yellow),
            _ => ("left alone", Colour::Yellow),
        };
        page.row(0, (&format!("{:14}{word}", row.subset.word()), Some(colour)), 25, &row.what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks_and_never_too_long() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        for line in wrap(&"wörter ".repeat(50), 20) {
            assert!(line.chars().count() <= 20, "{line}");
        }
    }
}
