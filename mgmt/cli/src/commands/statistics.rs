//! `show statistics segment`: the directory of counters.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use shoal_graph::counter::{Counters, Kind};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command = Command::new("show statistics segment", "Show all counters by name", show)
    .examples(&["show statistics segment", "sh stat seg"])
    .doc("Values are sums over threads and objects; of packets and bytes, packets.");

#[derive(Serialize)]
struct Entry {
    name: String,
    kind: &'static str,
    value: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Directory(Vec<Entry>);

fn directory(counters: &Counters) -> Vec<Entry> {
    let kind = |kind: &Kind| match kind {
        Kind::Simple(_) => "Simple",
        Kind::Combined(_) => "Combined",
        Kind::Scalar(_) => "Scalar",
        Kind::Gauge(_) => "Gauge",
        Kind::Names(_) => "Name",
        Kind::Symlink { .. } => "Symlink",
    };
    let all = counters.entries();
    let by_name: HashMap<&str, &Kind> = all.iter().map(|e| (&*e.name, &e.kind)).collect();
    let entry = |e: &shoal_graph::counter::Entry| Entry {
        kind: kind(&e.kind),
        value: value(&e.kind, &by_name),
        target: match &e.kind {
            Kind::Symlink { target, index } => Some(format!("{target}[{index}]")),
            _ => None,
        },
        name: e.name.to_string(),
    };
    let mut entries: Vec<Entry> = all.iter().map(entry).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

/// As [`Counters::value`], but with one look at the directory for all names: there may be very many.
fn value(kind: &Kind, by_name: &HashMap<&str, &Kind>) -> Option<u64> {
    match kind {
        Kind::Simple(c) => Some((0..c.len()).map(|i| c.sum(i)).sum()),
        Kind::Combined(c) => Some((0..c.len()).map(|i| c.sum(i).0).sum()),
        Kind::Scalar(n) | Kind::Gauge(n) => Some(n.get()),
        Kind::Names(_) => None,
        Kind::Symlink { target, index } => match by_name.get(&**target)? {
            Kind::Simple(c) => Some(c.sum(*index)),
            Kind::Combined(c) => Some(c.sum(*index).0),
            _ => None,
        },
    }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Directory(directory(control.graph()?.counters()))))
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<74} {:<10} {:>20}", "Name", "Type", "Value")?;
        self.0.iter().try_for_each(|Entry { name, kind, value, target }| {
            let value = value.map(|v| v.to_string()).unwrap_or_default();
            let target = target.as_ref().map(|t| format!(" -> {t}")).unwrap_or_default();
            let row = format!("{name:<74} {kind:<10} {value:>20}{target}");
            writeln!(f, "{}", row.trim_end())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn names_types_and_values_stand_in_columns() {
        let entry = |name: &str, kind, value, target: Option<&str>| Entry {
            name: name.into(),
            kind,
            value,
            target: target.map(str::to_owned),
        };
        let text = Directory(vec![
            entry("/if/names", "Name", None, None),
            entry("/if/drops", "Simple", Some(3), None),
            entry("/err/judge/odd", "Symlink", Some(3), Some("/node/errors[7]")),
        ])
        .to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], format!("{:<74} Name", "/if/names"));
        assert_eq!(lines[2], format!("{:<74} {:<10} {:>20}", "/if/drops", "Simple", 3));
        assert!(lines[3].ends_with(" 3 -> /node/errors[7]"));
    }

    #[test]
    fn counters_of_nodes_are_found_by_name() {
        let router = Router::new();
        router.packets(4);
        let all = directory(router.graph().counters());
        let odd = all.iter().find(|e| e.name == "/err/judge/odd").unwrap();
        assert_eq!(odd.value, Some(4));
    }
}
