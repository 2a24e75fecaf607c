//! The control plane: which libraries are loaded, and what becomes of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use shoal_graph::Graph;
use shoal_module::{Control, InitError, LoadedPlugin, LoadedPlugins};

use crate::Refusal;
use crate::check::check;
use crate::device::{self, Devices};
use crate::node::PluginNode;
use crate::sys::{Driver, Library, MainThread, PluginText};

/// Where plugins lie unless the start-up file says otherwise.
pub const DIRECTORY: &str = "/usr/lib/shoal/plugins";

/// What the start-up file says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// It is not loaded.
    No,
    /// It is loaded; if that cannot be, the router does without.
    Yes,
    /// It is named: if it cannot be loaded, the router does not start.
    Named,
}

/// What the start-up file says; the daemon puts it on the shelf. Without it nothing is loaded.
pub struct Setup {
    /// Directories, in order; none is [`DIRECTORY`], which need not be there.
    pub paths: Vec<PathBuf>,
    /// What holds for a file, by its name.
    pub wanted: Box<dyn Fn(&str) -> Wanted>,
}

/// Loads what there is.
pub(crate) fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let Ok(setup) = control.get::<Setup>() else { return Ok(()) };
    let graph = control.graph()?;
    let usual = [PathBuf::from(DIRECTORY)];
    let paths = if setup.paths.is_empty() { &usual[..] } else { &setup.paths };
    let mut all = LoadedPlugins { paths: paths.to_vec(), ..LoadedPlugins::default() };
    let mut names = BTreeMap::new();
    let (mut drivers, mut commands) = (Vec::new(), Vec::new());
    for path in paths {
        let files = match libraries(path) {
            Ok(files) => files,
            Err(e) if setup.paths.is_empty() && e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => {
                refuse(&mut all, format!("{}: no plugins there, expected a directory: {e}", path.display()));
                continue;
            }
        };
        for file in files {
            let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let wanted = (setup.wanted)(&name);
            if wanted == Wanted::No {
                continue;
            }
            match load(MainThread::of(control), &file, (&graph, &mut names, &drivers)) {
                Ok(PluginText { version, description, drivers: brought, commands: more, .. }) => {
                    drivers.extend(brought);
                    commands.extend(more);
                    tracing::info!("plugin {name} {version} is loaded from {}", file.display());
                    all.plugins.push(LoadedPlugin { name, version, description, path: file });
                }
                Err(why) => {
                    let line = format!("{}: {why}", file.display());
                    if wanted == Wanted::Named {
                        return Err(InitError::Other(line));
                    }
                    refuse(&mut all, line);
                }
            }
        }
    }
    if !drivers.is_empty() || !commands.is_empty() {
        let devices = control.put_rc(Devices::new(control, drivers, commands)?);
        all.commands = device::commands(&devices);
    }
    control.put(all);
    Ok(())
}

/// Starts the drivers: the graph is built, and the workers are there.
pub(crate) fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let Ok(devices) = control.get::<Devices>() else { return Ok(()) };
    devices.start(control)?;
    let processes = control.processes()?;
    let watch = device::watch(Rc::downgrade(&processes), Rc::downgrade(&devices));
    processes.spawn("plugin-devices", watch);
    Ok(())
}

fn refuse(all: &mut LoadedPlugins, line: String) {
    tracing::warn!("{line}");
    all.refused.push(line);
}

/// The libraries of a directory, by name.
fn libraries(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "so"));
    files.sort();
    Ok(files)
}

/// Loads one: all is checked before anything is added.
fn load(
    main: MainThread<'_>,
    file: &Path,
    (graph, names, drivers): (&Graph, &mut BTreeMap<String, PathBuf>, &[Driver]),
) -> Result<PluginText, Refusal> {
    // With a folder in front, so that the system looks nowhere else.
    let file = std::fs::canonicalize(file).map_err(|e| Refusal::Open(e.to_string()))?;
    let plugin = Library::open(&file)?.describe()?;
    if let Some(other) = names.get(&plugin.name) {
        return Err(Refusal::Exists("plugin", format!("{} of {}", plugin.name, other.display())));
    }
    let plan = check(&plugin, graph)?;
    if let Some(driver) = plugin.drivers.iter().find(|d| drivers.iter().any(|other| other.name == d.name)) {
        return Err(Refusal::Exists("driver", driver.name.clone()));
    }
    plugin.init(main)?;
    let mut added = Vec::new();
    for (planned, node) in plan.nodes.iter().zip(&plugin.nodes) {
        let code = PluginNode {
            code: node.code.clone(),
            next: planned.next.len() as u16,
            counters: node.counters.len() as u32,
        };
        match graph.add_frame_declared(&planned.name, planned.next, planned.counters, code) {
            Ok(index) => added.push(index),
            Err(why) => {
                for index in added {
                    graph.remove(index)?;
                }
                return Err(why.into());
            }
        }
    }
    plan.features.into_iter().for_each(|feature| graph.add_feature(feature));
    names.insert(plugin.name.clone(), file);
    Ok(plugin)
}
