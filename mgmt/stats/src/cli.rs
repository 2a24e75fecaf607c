//! `show statistics segment`.

use std::fmt;

use serde::Serialize;
use shoal_graph::counter::Kind;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

/// The commands.
pub static COMMANDS: &[Command] = &[Command::new(
    "show statistics segment [<prefix:word>]",
    "List the counters that other processes can read",
    show,
)
.examples(&["show statistics segment /if/"])];

#[derive(Serialize)]
struct Line {
    name: String,
    kind: &'static str,
    value: Option<u64>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Directory(Vec<Line>);

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<60} {:<10} {:>20}", "Name", "Type", "Value")?;
        for Line { name, kind, value } in &self.0 {
            let value = value.map_or(String::new(), |v| v.to_string());
            writeln!(f, "{}", format!("{name:<60} {kind:<10} {value:>20}").trim_end())?;
        }
        Ok(())
    }
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph().map_err(|e| CliError::failed(e.to_string()))?;
    let counters = graph.counters();
    let prefix = args.text("prefix").unwrap_or("");
    let lines = counters.entries().into_iter().filter(|e| e.name.starts_with(prefix)).map(|entry| Line {
        value: counters.value(&entry.name),
        kind: kind(&entry.kind),
        name: entry.name,
    });
    Ok(Output::view(Directory(lines.collect())))
}

fn kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Simple(_) => "simple",
        Kind::Combined(_) => "combined",
        Kind::Scalar(_) => "scalar",
        Kind::Gauge(_) => "gauge",
        Kind::Names(_) => "names",
        Kind::Symlink { .. } => "symlink",
    }
}
