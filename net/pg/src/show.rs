//! `show packet-generator`: the layout that VPP's test framework reads.

use std::fmt;

use serde::Serialize;

use crate::data::Order;
use crate::{Pg, StreamInfo};

/// How much to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// One line per stream.
    Brief,
    /// Also where its packets go.
    Verbose,
}

/// One stream.
#[derive(Serialize)]
struct Row {
    name: String,
    enabled: bool,
    count: u64,
    limit: u64,
    rate: f64,
    size: (usize, usize),
    random_size: bool,
    worker: usize,
    interface: String,
    node: Option<String>,
    replayed: bool,
}

/// All streams.
#[derive(Serialize)]
pub struct Streams {
    streams: Vec<Row>,
    #[serde(skip)]
    detail: Detail,
}

impl Pg {
    /// All streams, for people and programs.
    pub fn show(&self, detail: Detail) -> Streams {
        let row = |s: StreamInfo| Row {
            interface: self.interfaces.name(s.interface).unwrap_or_default(),
            name: s.name,
            enabled: s.enabled,
            count: s.sent,
            limit: s.limit,
            rate: s.rate,
            size: (s.size.least, s.size.most),
            random_size: s.size.order == Order::Random,
            worker: s.worker,
            node: s.node,
            replayed: s.replayed,
        };
        Streams { streams: self.streams().into_iter().map(row).collect(), detail }
    }
}

/// Text centred in `width` columns, cut to it, the odd blank on the left: VPP's `%=`.
fn centred(text: &str, width: usize) -> String {
    let text: String = text.chars().take(width).collect();
    let blanks = width - text.chars().count();
    format!("{:2$}{text}{:3$}", "", "", blanks.div_ceil(2), blanks / 2)
}

impl fmt::Display for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.streams.is_empty() {
            return writeln!(f, "no streams currently defined");
        }
        writeln!(f, "{:<16}{}{}Parameters", "Name", centred("Enabled", 12), centred("Count", 16))?;
        for s in &self.streams {
            let name: String = s.name.chars().take(16).collect();
            let enabled = centred(if s.enabled { "Yes" } else { "No" }, 12);
            let sign = if s.random_size { '+' } else { '-' };
            let (least, most) = s.size;
            writeln!(
                f,
                "{name:<16}{enabled}{}limit {}, rate {:.2e} pps, size {least}{sign}{most}, buffer-size {}, worker {},",
                centred(&s.count.to_string(), 16),
                s.limit,
                s.rate,
                shoal_buffer::DATA_SIZE,
                s.worker,
            )?;
            if self.detail == Detail::Verbose {
                let source = if s.replayed { "capture" } else { "data" };
                let node = s.node.as_deref().unwrap_or("the interface's");
                writeln!(f, "    interface {}, node {node}, source {source}", s.interface)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::centred;

    #[test]
    fn an_odd_blank_goes_to_the_left() {
        assert_eq!((centred("Yes", 12), centred("No", 12)), ("     Yes    ".into(), "     No     ".into()));
        assert_eq!(centred("longer", 3), "lon");
    }
}
