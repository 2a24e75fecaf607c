//! A plugin's descriptor, built when the router asks for it and never freed.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use shoal_plugin_abi as abi;

use crate::command::{Answer, Words, describe_command};
use crate::driver::{Driver, describe_driver};
use crate::log::c_string;
use crate::node::{Node, process, trace};

/// What a plugin is made of.
pub struct Plugin {
    name: &'static str,
    version: &'static str,
    description: &'static str,
    start: fn() -> Result<(), String>,
    nodes: Vec<*const abi::Node>,
    features: Vec<*const abi::Feature>,
    drivers: Vec<*const abi::Driver>,
    commands: Vec<*const abi::Command>,
}

impl Plugin {
    /// A plugin without nodes: its name, its version, one line for `show plugins`.
    pub fn new(name: &'static str, version: &'static str, description: &'static str) -> Self {
        let start = || Ok(());
        let (nodes, features, drivers, commands) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Plugin { name, version, description, start, nodes, features, drivers, commands }
    }

    /// What is done once on the main thread before the graph is built; an error is logged and refuses the plugin.
    #[must_use]
    pub fn on_start(self, start: fn() -> Result<(), String>) -> Self {
        Plugin { start, ..self }
    }

    /// Adds a node with its counters and features.
    #[must_use]
    pub fn node<N: Node>(mut self, node: N) -> Self {
        let name = c_string(N::NAME).as_ptr();
        let (next_nodes, next_count) = strings(N::NEXT);
        let counters = N::COUNTERS.iter().map(|c| {
            leak(abi::Counter {
                size: size_of::<abi::Counter>() as u32,
                severity: c.severity,
                name: c_string(c.name).as_ptr(),
                description: c_string(c.description).as_ptr(),
            })
        });
        let (counters, counter_count) = array(counters.collect());
        self.nodes.push(leak(abi::Node {
            size: size_of::<abi::Node>() as u32,
            next_count,
            counter_count,
            reserved: 0,
            name,
            next_nodes,
            counters,
            context: Box::into_raw(Box::new(node)).cast(),
            process: Some(process::<N>),
            trace: Some(trace::<N>),
        }));
        for feature in N::FEATURES {
            let ((before, before_count), (after, after_count)) =
                (strings(feature.before), strings(feature.after));
            self.features.push(leak(abi::Feature {
                size: size_of::<abi::Feature>() as u32,
                before_count,
                after_count,
                reserved: 0,
                arc: c_string(feature.arc).as_ptr(),
                node: name,
                before,
                after,
            }));
        }
        self
    }

    /// Adds a driver, which the program keeps.
    #[must_use]
    pub fn driver<D: Driver>(mut self, driver: &'static D) -> Self {
        self.drivers.push(leak(describe_driver(driver)));
        self
    }

    /// Adds a command of the CLI, such as `show example state`; words may follow if it takes any.
    #[must_use]
    pub fn command(mut self, path: &str, help: &str, words: Words, run: Answer) -> Self {
        self.commands.push(leak(describe_command((path, help), words, run)));
        self
    }
}

pub(crate) fn leak<T>(value: T) -> *const T {
    Box::leak(Box::new(value))
}

fn array<T: 'static>(items: Vec<*const T>) -> (*const *const T, u32) {
    let items: &'static [*const T] = items.leak();
    (items.as_ptr(), items.len() as u32)
}

fn strings(all: &[&str]) -> (*const *const c_char, u32) {
    array(all.iter().map(|text| c_string(text).as_ptr()).collect())
}

/// The descriptor of this library's plugin.
pub struct Built(());

struct Whole {
    descriptor: &'static abi::Plugin,
    name: &'static CStr,
    start: fn() -> Result<(), String>,
}

// SAFETY: the descriptor and all it points to were leaked and are never changed; nodes are `Send` and `Sync`.
unsafe impl Send for Whole {}
// SAFETY: as above.
unsafe impl Sync for Whole {}

static WHOLE: OnceLock<Whole> = OnceLock::new();

impl Built {
    /// Nothing is built yet.
    #[doc(hidden)]
    #[allow(clippy::new_without_default)] // the macro's own
    pub const fn new() -> Self {
        Built(())
    }

    /// Builds it once. A library has one plugin.
    #[doc(hidden)]
    pub fn get(&self, make: impl FnOnce() -> Plugin) -> *const abi::Plugin {
        WHOLE.get_or_init(|| whole(make())).descriptor
    }

    pub(crate) fn name() -> Option<&'static CStr> {
        WHOLE.get().map(|whole| whole.name)
    }

    pub(crate) fn start() -> Result<(), String> {
        WHOLE.get().map_or(Ok(()), |whole| (whole.start)())
    }
}

fn whole(plugin: Plugin) -> Whole {
    let name = c_string(plugin.name);
    let ((nodes, node_count), (features, feature_count)) = (array(plugin.nodes), array(plugin.features));
    let ((drivers, driver_count), (commands, command_count)) =
        (array(plugin.drivers), array(plugin.commands));
    let descriptor: &'static abi::Plugin = Box::leak(Box::new(abi::Plugin {
        size: size_of::<abi::Plugin>() as u32,
        abi_major: abi::SHOAL_ABI_MAJOR,
        abi_minor: abi::SHOAL_ABI_MINOR,
        name: name.as_ptr(),
        version: c_string(plugin.version).as_ptr(),
        description: c_string(plugin.description).as_ptr(),
        init: Some(crate::log::init),
        node_count,
        feature_count,
        nodes,
        features,
        driver_count,
        command_count,
        drivers,
        commands,
    }));
    Whole { descriptor, name, start: plugin.start }
}
