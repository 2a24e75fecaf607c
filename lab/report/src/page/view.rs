//! All folders as one: whose colour is what, which rows belong together.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use shoal_lab_plan::{Link, SummaryRow, Trust};

use super::{repeat, shell_word};
use crate::published::Published;
use crate::results::{Results, SelfTest};

/// All folders as one.
pub struct View<'a> {
    /// The folders.
    pub results: &'a [Results],
    /// Others' figures.
    pub published: &'a Published,
    colours: Vec<String>,
}

/// A result and where it is from.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    /// Its folder.
    pub of: &'a Results,
    /// The result.
    pub row: &'a SummaryRow,
}

impl<'a> View<'a> {
    /// Devices get colours in the order in which they first appear, so a device has the same in all plots.
    pub fn of(results: &'a [Results], published: &'a Published) -> Self {
        let mut colours: Vec<String> = Vec::new();
        let names = results.iter().flat_map(|r| {
            let rows = r.rows.iter().map(|row| &row.dut);
            rows.chain(r.samples.iter().map(|s| &s.dut)).chain(r.histograms.iter().map(|h| &h.of.dut))
        });
        for name in names.filter(|n| *n != LOOPBACK) {
            if !colours.contains(name) {
                colours.push(name.clone());
            }
        }
        View { results, published, colours }
    }

    /// The class of a device's colour; none for the tester's own loopback.
    pub fn colour(&self, dut: &str) -> Option<usize> {
        self.colours.iter().position(|c| c == dut)
    }

    /// All results.
    pub fn rows(&self) -> impl Iterator<Item = Placed<'a>> {
        self.results.iter().flat_map(|of| of.rows.iter().map(move |row| Placed { of, row }))
    }

    /// Results that `key` puts together, in the order of first appearance.
    pub fn grouped(
        &self,
        wanted: impl Fn(&SummaryRow) -> bool,
        key: impl Fn(&SummaryRow) -> Vec<String>,
    ) -> Vec<Vec<Placed<'a>>> {
        let mut places = BTreeMap::new();
        let mut groups: Vec<Vec<Placed<'a>>> = Vec::new();
        for placed in self.rows().filter(|p| wanted(p.row)) {
            let next = groups.len();
            let at = *places.entry(key(placed.row)).or_insert(next);
            if at == next {
                groups.push(Vec::new());
            }
            if let Some(group) = groups.get_mut(at) {
                group.push(placed);
            }
        }
        groups
    }

    /// The device's name, with what else tells it apart: workers, and the campaign if there are several.
    pub fn who(&self, placed: &Placed<'_>) -> String {
        let mut name = placed.row.dut.clone();
        if placed.row.workers > 1 {
            let _ = write!(name, " \u{d7}{}", placed.row.workers);
        }
        if self.results.len() > 1 {
            let _ = write!(name, " [{}]", placed.of.record.name);
        }
        name
    }
}

/// The commands that repeat what is in `group`.
pub fn commands(group: &[Placed<'_>]) -> String {
    let mut found: Vec<String> = Vec::new();
    for results in group.iter().map(|placed| placed.of) {
        let rows: Vec<&SummaryRow> =
            group.iter().filter(|p| std::ptr::eq(p.of, results)).map(|placed| placed.row).collect();
        for command in repeat::commands(&results.record.command, &rows) {
            if !command.is_empty() && !found.contains(&command) {
                found.push(command);
            }
        }
    }
    found.join("\n")
}

/// The commands that repeat `test` over a wire, of what was sampled rather than summed up.
pub fn commands_of(results: &Results, test: &str, transport: &str) -> String {
    let rows: Vec<&SummaryRow> =
        results.rows.iter().filter(|row| row.test == test && row.transport == transport).collect();
    repeat::commands(&results.record.command, &rows).join("\n")
}

/// The name of the tester without a device.
pub const LOOPBACK: &str = "loopback";

/// The command of a campaign.
pub fn command_of(results: &Results) -> String {
    results.record.command.iter().map(|w| shell_word(w)).collect::<Vec<_>>().join(" ")
}

impl Placed<'_> {
    /// The self-test over the same wire with the same frame.
    pub fn self_test(&self) -> Option<&SelfTest> {
        self.of.record.self_tests.iter().find(|t| t.is_of(self.row))
    }

    /// The wire's speed.
    pub fn link(&self) -> Link {
        let tests = &self.of.record.self_tests;
        tests.iter().find(|t| t.transport == self.row.transport).map(|t| t.link).unwrap_or_default()
    }
}

/// Marks of all of them.
pub fn trust_of(group: &[Placed<'_>]) -> Vec<Trust> {
    let mut marks: Vec<Trust> = group.iter().flat_map(|p| p.row.trust.iter().copied()).collect();
    marks.sort_unstable();
    marks.dedup();
    marks
}

/// `IPv4 route, both directions, over memif`, with a word where one of them is empty.
pub fn circumstances(row: &SummaryRow) -> String {
    let ip = if row.ip.is_empty() { String::new() } else { format!("IPv{} ", row.ip) };
    let scenario = match row.scenario.as_str() {
        "route" => "routing",
        "snat" => "source NAT",
        other => other,
    };
    let direction = match row.direction.as_str() {
        "bi" => "both directions at once",
        "fwd" => "forward only",
        "rev" => "reverse only",
        other => other,
    };
    let wire = if row.transport.is_empty() { String::new() } else { format!("over {}", row.transport) };
    let parts = [format!("{ip}{scenario}"), direction.to_owned(), wire];
    parts.iter().map(|p| p.trim()).filter(|p| !p.is_empty()).collect::<Vec<_>>().join(", ")
}

/// What a test is called in headings where it is known by an RFC's name; else its own.
pub fn test_title(test: &str) -> &str {
    match test {
        "latency" => "Latency (RFC 8219)",
        "pdv" | "PDV" => "Delay variation (RFC 8219)",
        "loss" => "Frame loss (RFC 2544)",
        "forwarding-rate" => "Maximum forwarding rate (RFC 2889)",
        "address-capacity" => "Address caching capacity (RFC 2889)",
        "address-learning-rate" => "Address learning rate (RFC 2889)",
        "broadcast" => "Broadcast frames (RFC 2889)",
        "convergence" => "Convergence",
        other => other,
    }
}

/// `64 B`, or a mix's name.
pub fn frame_label(frame: &str) -> String {
    if frame.parse::<u32>().is_ok() { format!("{frame} B") } else { frame.to_owned() }
}
