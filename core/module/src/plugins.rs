//! What was loaded besides the modules, for commands that show it.

use std::path::PathBuf;

use crate::cli::Command;

/// A plugin that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedPlugin {
    /// Its file's name: `example_plugin.so`.
    pub name: String,
    /// Its version, in its own words.
    pub version: String,
    /// Its line for `show plugins`.
    pub description: String,
    /// Its file.
    pub path: PathBuf,
}

/// The plugins of this router; the loader puts it on the shelf.
#[derive(Debug, Clone, Default)]
pub struct LoadedPlugins {
    /// Where they were looked for.
    pub paths: Vec<PathBuf>,
    /// In the order in which they were loaded.
    pub plugins: Vec<LoadedPlugin>,
    /// A line for each file that is no plugin of this router.
    pub refused: Vec<String>,
    /// Commands that they bring.
    pub commands: Vec<&'static Command>,
}
