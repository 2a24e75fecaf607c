//! A library is opened, and what its plugin says of itself is copied out.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::path::Path;

use libloading::os::unix::{Library as Open, RTLD_LOCAL, RTLD_NOW};
use shoal_graph::Severity;
use shoal_plugin_abi as abi;

use super::driver::Waking;
use super::{Code, Driver, MainThread, Operator};
use crate::Refusal;

/// Most nodes, features, next nodes of a node and names of a constraint.
const MOST: u32 = 64;
/// Most counters of a node.
pub(crate) const MAX_COUNTERS: usize = MOST as usize;
/// Longest name.
const NAME: usize = 64;
/// Longest other text.
const TEXT: usize = 256;

/// What a plugin says of itself.
#[derive(Debug)]
pub(crate) struct PluginText {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) nodes: Vec<NodeText>,
    pub(crate) features: Vec<FeatureText>,
    pub(crate) drivers: Vec<Driver>,
    pub(crate) commands: Vec<Operator>,
    init: Option<unsafe extern "C" fn(*const abi::Host) -> c_int>,
}

/// What it says of a node.
#[derive(Debug)]
pub(crate) struct NodeText {
    pub(crate) name: String,
    pub(crate) next: Vec<String>,
    pub(crate) counters: Vec<CounterText>,
    pub(crate) code: Code,
}

/// What it says of a counter.
#[derive(Debug)]
pub(crate) struct CounterText {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) severity: Severity,
}

/// What it says of a feature.
#[derive(Debug)]
pub(crate) struct FeatureText {
    pub(crate) arc: String,
    pub(crate) node: String,
    pub(crate) before: Vec<String>,
    pub(crate) after: Vec<String>,
}

impl PluginText {
    /// Runs the plugin's own start.
    pub(crate) fn init(&self, _: MainThread<'_>) -> Result<(), Refusal> {
        let Some(init) = self.init else { return Ok(()) };
        // SAFETY: the plugin's function, called once on the main thread with a table that stays.
        match unsafe { init(super::host::table()) } {
            0 => Ok(()),
            code => Err(Refusal::Init(code)),
        }
    }
}

/// A library that stays in memory until the process ends.
pub(crate) struct Library(&'static Open);

impl Library {
    /// Loads a library. Its constructors run: a directory of plugins is as trusted as the program.
    pub(crate) fn open(path: &Path) -> Result<Self, Refusal> {
        crate::image::check(path).map_err(Refusal::Open)?;
        // SAFETY: what a library's constructors do is what its owner asked for; it is never unloaded.
        let open = unsafe { Open::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let open = open.map_err(|e| Refusal::Open(printable(e.to_string().as_bytes())))?;
        Ok(Library(Box::leak(Box::new(open))))
    }

    /// What its plugin says of itself, value by value.
    pub(crate) fn describe(&self) -> Result<PluginText, Refusal> {
        // SAFETY: the ABI gives the function of this name this type.
        let entry = unsafe { self.0.get::<abi::Entry>(abi::SYMBOL.as_bytes()) };
        let entry = entry.map_err(|_| Refusal::NoSymbol)?;
        // SAFETY: the plugin's function; it takes nothing.
        let plugin = unsafe { entry() };
        // SAFETY: the ABI says that a descriptor stays and is never written.
        unsafe { read_plugin(plugin) }
    }
}

/// Text from elsewhere as one that can be printed in a line.
pub(super) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_end().chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

/// That there is a structure at `p` which says it has `size` bytes: that stands in its first four.
///
/// # Safety
/// `p` is null or points to a structure of the ABI that begins with its size.
unsafe fn has_size<T>(p: *const T, size: usize, what: &str) -> Result<(), Refusal> {
    if p.is_null() {
        return Err(Refusal::Missing(what.to_owned(), "a structure of the ABI"));
    }
    if !p.is_aligned() {
        return Err(Refusal::Text { what: format!("the address of {what}"), expected: "an aligned one" });
    }
    // SAFETY: not null, aligned; every structure has at least its size.
    let found = unsafe { p.cast::<u32>().read() };
    if found as usize != size {
        return Err(Refusal::Size { what: what.to_owned(), found, expected: size });
    }
    Ok(())
}

/// The structure at `p`, when there is one and it says it has our size.
///
/// # Safety
/// `p` is null or points to a structure of the ABI that begins with its size and stays.
unsafe fn sized<T>(p: *const T, what: &str) -> Result<&'static T, Refusal> {
    // SAFETY: the caller's.
    unsafe { has_size(p, size_of::<T>(), what) }?;
    // SAFETY: not null, aligned, and as large as it must be, as it says.
    Ok(unsafe { &*p })
}

/// The structure at `p`, of which an older minor version has the first `size` bytes; zeros stand for the rest.
///
/// # Safety
/// As [`sized`], with that size; zero is a value of all fields.
unsafe fn part<T>(p: *const T, size: usize, what: &str) -> Result<T, Refusal> {
    debug_assert!(size <= size_of::<T>());
    // SAFETY: the caller's.
    unsafe { has_size(p, size, what) }?;
    let mut whole = MaybeUninit::<T>::zeroed();
    // SAFETY: as many bytes as the structure says it has, which are not more than ours has.
    unsafe { whole.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(p.cast(), size) };
    // SAFETY: the caller's: zero is a value, and so is what the plugin has written.
    Ok(unsafe { whole.assume_init() })
}

/// `count` pointers.
///
/// # Safety
/// `p` is null or points to `count` pointers that stay.
unsafe fn list<T>(p: *const *const T, count: u32, what: &str) -> Result<&'static [*const T], Refusal> {
    if count > MOST {
        return Err(Refusal::TooMany { what: what.to_owned(), found: count, most: MOST });
    }
    if count == 0 {
        return Ok(&[]);
    }
    if p.is_null() {
        return Err(Refusal::Missing(what.to_owned(), "an array"));
    }
    if !p.is_aligned() {
        return Err(Refusal::Text { what: format!("the address of {what}"), expected: "an aligned one" });
    }
    // SAFETY: not null, aligned, and the caller says how many there are.
    Ok(unsafe { std::slice::from_raw_parts(p, count as usize) })
}

/// A text of at most `most` bytes.
///
/// # Safety
/// `p` is null or points to a text that ends with a zero, or to at least `most + 1` bytes.
unsafe fn text(p: *const c_char, most: usize, what: &str) -> Result<String, Refusal> {
    if p.is_null() {
        return Err(Refusal::Missing(what.to_owned(), "a text"));
    }
    let wrong = || Refusal::Text {
        what: what.to_owned(),
        expected: "UTF-8 of one line, 1 to 256 bytes, 64 for a name",
    };
    let mut bytes = Vec::new();
    for at in 0..=most {
        // SAFETY: the text has not ended yet, and no more than `most + 1` bytes are looked at.
        match unsafe { p.add(at).read() }.cast_unsigned() {
            0 => break,
            byte => bytes.push(byte),
        }
    }
    if bytes.is_empty() || bytes.len() > most {
        return Err(wrong());
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    if text.chars().any(char::is_control) { Err(wrong()) } else { Ok(text) }
}

/// A name of something that operators write.
///
/// # Safety
/// As [`text`].
unsafe fn name(p: *const c_char, what: &str) -> Result<String, Refusal> {
    // SAFETY: the caller's.
    let name = unsafe { text(p, NAME, what) }?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.chars().all(plain) {
        return Ok(name);
    }
    Err(Refusal::Text {
        what: format!("{what} `{name}'"),
        expected: "letters, digits, `-', `_' and `.' only",
    })
}

/// # Safety
/// As [`list`] and [`name`].
unsafe fn names(p: *const *const c_char, count: u32, what: &str) -> Result<Vec<String>, Refusal> {
    // SAFETY: the caller's.
    let all = unsafe { list(p, count, what) }?;
    // SAFETY: the caller's.
    all.iter().map(|p| unsafe { name(*p, what) }).collect()
}

/// The functions by which queues wake their threads.
fn waking(driver: &abi::Driver, name: &str) -> Result<Option<Waking>, Refusal> {
    match (driver.wait, driver.arm, driver.disarm) {
        (Some(wait), Some(arm), Some(disarm)) => Ok(Some(Waking { wait, arm, disarm })),
        (None, None, None) => Ok(None),
        (wait, arm, _) => {
            let what = if wait.is_none() {
                "wait"
            } else if arm.is_none() {
                "arm"
            } else {
                "disarm"
            };
            let of = format!("the function `{what}' of driver `{name}'");
            Err(Refusal::Missing(of, "all of `wait', `arm' and `disarm', or none"))
        }
    }
}

/// # Safety
/// As [`read_plugin`], of a plugin of that minor version.
unsafe fn read_driver(p: *const abi::Driver, minor: u16) -> Result<Driver, Refusal> {
    let size = if minor < 2 { std::mem::offset_of!(abi::Driver, wait) } else { size_of::<abi::Driver>() };
    // SAFETY: the caller's, of this and all that follows; integers, pointers and optional functions.
    let driver = &unsafe { part(p, size, "a driver") }?;
    // SAFETY: as above.
    let name = unsafe { name(driver.name, "a driver's name") }?;
    let missing =
        |what: &str| Refusal::Missing(format!("the function `{what}' of driver `{name}'"), "a function");
    Ok(Driver {
        context: driver.context,
        start: driver.start.ok_or_else(|| missing("start"))?,
        open: driver.open.ok_or_else(|| missing("open"))?,
        attach: driver.attach.ok_or_else(|| missing("attach"))?,
        close: driver.close.ok_or_else(|| missing("close"))?,
        set: driver.set.ok_or_else(|| missing("set"))?,
        link: driver.link.ok_or_else(|| missing("link"))?,
        describe: driver.describe.ok_or_else(|| missing("describe"))?,
        poll: driver.poll.ok_or_else(|| missing("poll"))?,
        receive: driver.receive.ok_or_else(|| missing("receive"))?,
        send: driver.send.ok_or_else(|| missing("send"))?,
        waking: waking(driver, &name)?,
        name,
    })
}

/// # Safety
/// As [`read_plugin`].
unsafe fn read_command(p: *const abi::Command) -> Result<Operator, Refusal> {
    // SAFETY: the caller's, of this and all that follows.
    let command = unsafe { sized(p, "a command") }?;
    // SAFETY: as above.
    let path = unsafe { text(command.path, TEXT, "a command's words") }?;
    let plain = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !path.split(' ').all(plain) {
        let what = format!("command `{path}'");
        return Err(Refusal::Text {
            what,
            expected: "words of letters, digits and `-', with one blank between them",
        });
    }
    let missing = || Refusal::Missing(format!("the function of command `{path}'"), "a function");
    Ok(Operator {
        context: command.context,
        run: command.run.ok_or_else(missing)?,
        words: command.words != 0,
        // SAFETY: as above.
        help: unsafe { text(command.help, TEXT, "a command's help") }?,
        path,
    })
}

/// # Safety
/// `p` is null or points to what the header says of `struct shoal_plugin`; so do all pointers in it.
unsafe fn read_plugin(p: *const abi::Plugin) -> Result<PluginText, Refusal> {
    if p.is_null() || !p.is_aligned() {
        return Err(Refusal::Missing(format!("what `{}' returned", abi::SYMBOL), "a descriptor"));
    }
    // The version first: it says what all else means, and its place is the same in every version.
    // SAFETY: not null, aligned, and every version begins with a size and two version numbers: eight bytes.
    let [_, _, major, minor] = unsafe { p.cast::<[u16; 4]>().read() };
    if major != abi::SHOAL_ABI_MAJOR || minor > abi::SHOAL_ABI_MINOR {
        return Err(Refusal::Abi(major, minor));
    }
    let size =
        if minor == 0 { std::mem::offset_of!(abi::Plugin, driver_count) } else { size_of::<abi::Plugin>() };
    // SAFETY: the caller's, of this and all that follows; integers, pointers and an optional function.
    let plugin = unsafe { part(p, size, "the descriptor") }?;
    // SAFETY: as above.
    let (nodes, features, drivers, commands) = unsafe {
        (
            list(plugin.nodes, plugin.node_count, "the list of nodes")?,
            list(plugin.features, plugin.feature_count, "the list of features")?,
            list(plugin.drivers, plugin.driver_count, "the list of drivers")?,
            list(plugin.commands, plugin.command_count, "the list of commands")?,
        )
    };
    Ok(PluginText {
        // SAFETY: as above.
        name: unsafe { name(plugin.name, "the plugin's name") }?,
        // SAFETY: as above.
        version: unsafe { text(plugin.version, NAME, "the plugin's version") }?,
        // SAFETY: as above.
        description: unsafe { text(plugin.description, TEXT, "the plugin's description") }?,
        // SAFETY: as above.
        nodes: nodes.iter().map(|p| unsafe { read_node(*p) }).collect::<Result<_, _>>()?,
        // SAFETY: as above.
        features: features.iter().map(|p| unsafe { read_feature(*p) }).collect::<Result<_, _>>()?,
        // SAFETY: as above.
        drivers: drivers.iter().map(|p| unsafe { read_driver(*p, minor) }).collect::<Result<_, _>>()?,
        // SAFETY: as above.
        commands: commands.iter().map(|p| unsafe { read_command(*p) }).collect::<Result<_, _>>()?,
        init: plugin.init,
    })
}

/// # Safety
/// As [`read_plugin`].
unsafe fn read_node(p: *const abi::Node) -> Result<NodeText, Refusal> {
    // SAFETY: the caller's, of this and all that follows.
    let node = unsafe { sized(p, "a node") }?;
    // SAFETY: as above.
    let name = unsafe { name(node.name, "a node's name") }?;
    let of = |what: &str| format!("{what} of node `{name}'");
    let process = node.process.ok_or_else(|| Refusal::Missing(of("the process function"), "a function"))?;
    // SAFETY: as above.
    let next = unsafe { names(node.next_nodes, node.next_count, &of("a next node")) }?;
    // SAFETY: as above.
    let counters = unsafe { list(node.counters, node.counter_count, &of("the list of counters")) }?;
    // SAFETY: as above.
    let counters = counters.iter().map(|p| unsafe { read_counter(*p, &name) }).collect::<Result<_, _>>()?;
    let code = Code { context: node.context, process, trace: node.trace };
    Ok(NodeText { name, next, counters, code })
}

/// # Safety
/// As [`read_plugin`].
unsafe fn read_counter(p: *const abi::Counter, node: &str) -> Result<CounterText, Refusal> {
    let of = |what: &str| format!("{what} of node `{node}'");
    // SAFETY: the caller's, of this and all that follows.
    let counter = unsafe { sized(p, &of("a counter")) }?;
    let severity = match counter.severity {
        abi::SHOAL_ERROR => Severity::Error,
        abi::SHOAL_WARN => Severity::Warn,
        abi::SHOAL_INFO => Severity::Info,
        found => {
            let what = of("the severity of a counter");
            return Err(Refusal::TooMany { what, found, most: abi::SHOAL_INFO });
        }
    };
    Ok(CounterText {
        // SAFETY: as above.
        name: unsafe { name(counter.name, &of("a counter's name")) }?,
        // SAFETY: as above.
        description: unsafe { text(counter.description, TEXT, &of("a counter's description")) }?,
        severity,
    })
}

/// # Safety
/// As [`read_plugin`].
unsafe fn read_feature(p: *const abi::Feature) -> Result<FeatureText, Refusal> {
    // SAFETY: the caller's, of this and all that follows.
    let feature = unsafe { sized(p, "a feature") }?;
    // SAFETY: as above.
    unsafe {
        Ok(FeatureText {
            arc: name(feature.arc, "a feature's arc")?,
            node: name(feature.node, "a feature's node")?,
            before: names(feature.before, feature.before_count, "a feature that another comes before")?,
            after: names(feature.after, feature.after_count, "a feature that another comes after")?,
        })
    }
}
