//! The file of commands that runs at the start, read before it.

use std::fmt::Write as _;
use std::fs;

use shoal_cli::Cli;
use shoal_module::Control;
use shoal_module::cli::WIRE;

use crate::settings::Settings;

/// Faults that are reported one by one.
const MOST_TOLD: usize = 100;

/// What is wrong with the file, as far as that can be known before anything runs: words, not what they name. A line that
/// only a loadable plugin knows is one of them.
pub fn faults(settings: &Settings) -> Option<String> {
    let file = settings.process.exec.as_deref()?;
    let name = file.display();
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let types = settings.modules.iter().flat_map(|m| m.arg_types).chain(WIRE);
    let cli = Cli::new(settings.modules.iter().flat_map(|m| m.commands), types).ok()?;
    let all = cli.check(&Control::new(), &text);
    if all.is_empty() {
        return None;
    }
    let (count, lines) = (all.len(), if all.len() == 1 { "line is" } else { "lines are" });
    let mut told = format!("{name}: {count} {lines} wrong");
    for (line, complaint) in all.iter().take(MOST_TOLD) {
        // Writing to a String cannot fail.
        let _ = write!(told, "\n{name}:{line}: {}", complaint.to_string().trim_end());
    }
    Some(told)
}
