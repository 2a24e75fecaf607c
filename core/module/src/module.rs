//! A module: one feature, as the daemon sees it.

use std::rc::Rc;

use shoal_graph::{Graph, GraphError};

use crate::api::ApiPart;
use crate::cli::{ArgType, Command};
use crate::config::Section;
use crate::{Capacity, Control, LineKind, Missing, Running};

/// Why a module cannot start.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A module it needs is not part of this router, or comes later in the table.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The graph refused a node or an arc.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

/// One feature.
#[derive(Debug)]
pub struct Module {
    /// Its folder's name.
    pub name: &'static str,
    /// One line for `show plugins`.
    pub description: &'static str,
    /// Puts its control object on the shelf and its nodes and arcs into the graph. Runs in table order, so what it
    /// asks for must stand earlier.
    pub init: fn(&Rc<Control>) -> Result<(), InitError>,
    /// Starts its processes; runs after the graph was built.
    pub start: fn(&Rc<Control>) -> Result<(), InitError>,
    /// The start is over: what was saved is restored, and the file of commands has run.
    pub ready: fn(&Rc<Control>),
    /// Its CLI commands.
    pub commands: &'static [Command],
    /// Argument types its commands bring.
    pub arg_types: &'static [ArgType],
    /// Its messages of the binary API.
    pub api: &'static [&'static ApiPart],
    /// Start-up sections it reads.
    pub sections: &'static [Section],
    /// The nodes it puts on feature arcs: features of other modules may come before or after them, whether this module
    /// is part of the router or not.
    pub features: &'static [&'static str],
    /// How many there are of what it holds, and how many more fit: its rows of `show capacity`.
    pub capacity: fn(&Control) -> Vec<Capacity>,
    /// Writes the commands that rebuild what it was configured to be: its part of `show running-config`.
    pub running: fn(&Control, &mut Running),
    /// Every form of line that it writes there, in an order in which they can run.
    pub lines: &'static [LineKind],
}

impl Module {
    /// A module that declares nothing yet; fill in what it has with `..Module::NONE`.
    pub const NONE: Module = Module {
        name: "",
        description: "",
        init: nothing,
        start: nothing,
        ready: no_more_to_do,
        commands: &[],
        arg_types: &[],
        api: &[],
        sections: &[],
        features: &[],
        capacity: no_capacity,
        running: not_configured,
        lines: &[],
    };
}

/// The modules of a router in their table's order; the program that starts them puts it on the shelf.
#[derive(Debug)]
pub struct ModuleList(pub Vec<&'static Module>);

fn not_configured(_: &Control, _: &mut Running) {}

fn no_more_to_do(_: &Rc<Control>) {}

fn no_capacity(_: &Control) -> Vec<Capacity> {
    Vec::new()
}

fn nothing(_: &Rc<Control>) -> Result<(), InitError> {
    Ok(())
}

/// Initialises modules in order and builds the graph.
///
/// # Errors
/// The first module that cannot start, by name, or what the graph does not know.
pub fn init_all(control: &Rc<Control>, modules: &[&'static Module]) -> Result<(), InitError> {
    for module in modules {
        (module.init)(control).map_err(|e| InitError::Other(format!("module {}: {e}", module.name)))?;
    }
    control.get::<Graph>()?.build()?;
    Ok(())
}

/// Starts modules in order.
///
/// # Errors
/// The first module that cannot start, by name, or cannot say how it is configured.
pub fn start_all(control: &Rc<Control>, modules: &[&'static Module]) -> Result<(), InitError> {
    for module in modules {
        (module.start)(control).map_err(|e| InitError::Other(format!("module {}: {e}", module.name)))?;
        // Its part of the configuration must not be lost silently when there is something to save.
        let mut running = Running::default();
        (module.running)(control, &mut running);
        if let Some(missing) = running.missing().first() {
            let why = format!("module {}: its running configuration needs {missing}", module.name);
            return Err(InitError::Other(why));
        }
    }
    Ok(())
}
