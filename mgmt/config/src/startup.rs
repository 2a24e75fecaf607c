//! What the daemon gets: the router's own settings as plain typed values, and every feature's [`Settings`].

use crate::machine::Machine;
use shoal_module::config::{At, PageSize, Settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where VPP's sockets are.
const VPP_DIR: &str = "/run/vpp";

/// A configuration that passed its check.
#[derive(Debug, Clone)]
pub struct StartUp {
    /// The process.
    pub unix: Unix,
    /// Threads and cores.
    pub cpu: Cpu,
    /// Packet memory.
    pub buffers: Buffers,
    /// Which modules run.
    pub plugins: Plugins,
    /// `api-segment { prefix NAME }`: this router's name among others on the machine.
    pub prefix: Option<String>,
    /// The binary API's socket.
    pub socksvr: Socksvr,
    /// The stats segment.
    pub statseg: Statseg,
    /// The log.
    pub logging: Logging,
    /// Every setting by section, for the modules that declared one.
    pub sections: BTreeMap<&'static str, Settings>,
    /// What was accepted and changes nothing here.
    pub no_effect: Vec<NoEffect>,
}

impl StartUp {
    /// The settings of a section, empty if it was not given.
    pub fn section(&self, name: &str) -> Settings {
        self.sections.get(name).cloned().unwrap_or_default()
    }

    /// One line that names everything without effect, for the log. None if there is nothing to say.
    pub fn warning(&self) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        for item in &self.no_effect {
            if !names.contains(&item.what.as_str()) {
                names.push(&item.what);
            }
        }
        if names.is_empty() {
            return None;
        }
        Some(format!("start-up settings without effect here: {}", names.join(", ")))
    }
}

/// A setting that is accepted for VPP's sake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoEffect {
    /// Section, or section and key.
    pub what: String,
    /// Why it changes nothing.
    pub why: &'static str,
    /// Where it stands.
    pub at: At,
}

/// `unix { ... }`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unix {
    /// Stay in the foreground. True as well when `interactive`.
    pub nodaemon: bool,
    /// CLI on standard input.
    pub interactive: bool,
    /// Append the log and CLI commands to this file.
    pub log: Option<PathBuf>,
    /// Run this file of CLI commands after the start.
    pub exec: Option<PathBuf>,
    /// Run nothing of it when a line is wrong.
    pub exec_strict: bool,
    /// Where the CLI listens.
    pub cli_listen: CliListen,
    /// The prompt.
    pub cli_prompt: Option<String>,
    /// No editing of the line.
    pub cli_line_mode: bool,
    /// No banner for clients.
    pub cli_no_banner: bool,
    /// No pager.
    pub cli_no_pager: bool,
    /// Lines of history.
    pub cli_history_limit: usize,
    /// Lines the pager keeps.
    pub cli_pager_buffer_limit: usize,
    /// Where sockets lie.
    pub runtime_dir: PathBuf,
    /// Nothing says that they lie elsewhere than usual.
    pub usual_dir: bool,
    /// The pid file, absolute or below the runtime directory.
    pub pidfile: Option<PathBuf>,
    /// Group that may use the sockets.
    pub gid: Option<Group>,
    /// Sleep this long in every turn of the main loop.
    pub poll_sleep: Duration,
    /// Log to standard error.
    pub nosyslog: bool,
    /// No colours.
    pub nocolor: bool,
    /// No banner at the start.
    pub nobanner: bool,
}

/// Where the CLI listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CliListen {
    /// A UNIX socket.
    Path(PathBuf),
    /// A TCP address, `host:port`, as written.
    Tcp(String),
}

/// A group. Whether it exists is found out when the socket is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Group {
    /// By number.
    Id(u32),
    /// By name.
    Name(String),
}

/// `cpu { ... }`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpu {
    /// Core of the main thread; None leaves it to the kernel.
    pub main_core: Option<u32>,
    /// One entry per worker: its core, or None if there are more workers than free cores.
    pub workers: Vec<Option<u32>>,
    /// Before the names of threads.
    pub thread_prefix: String,
    /// Scheduling of the workers: `other`, `batch`, `idle`, `fifo` or `rr`.
    pub scheduler_policy: Option<String>,
    /// Priority with `fifo` and `rr`.
    pub scheduler_priority: Option<u8>,
}

/// `buffers { ... }`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Buffers {
    /// Most buffers of a node; None lets the pool grow.
    pub per_numa: Option<u32>,
    /// Nodes with a number of their own.
    pub numa: BTreeMap<u32, u32>,
    /// Bytes of data in a buffer; None is the default.
    pub data_size: Option<u32>,
    /// Pages; None is huge pages if there are any.
    pub page_size: Option<PageSize>,
    /// Take all memory at the start.
    pub preallocated: bool,
}

/// `plugins { ... }`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plugins {
    /// Directories of loadable plugins: `path`, then every `add-path`.
    pub paths: Vec<PathBuf>,
    /// `plugin default { enable | disable }`.
    pub default: Option<bool>,
    /// `plugin NAME { enable | disable }`, names as written.
    pub named: BTreeMap<String, bool>,
}

impl Plugins {
    /// Whether a module runs. Its name is ours (`ping`, `af-packet`) or VPP's (`ping_plugin.so`); all run
    /// unless the file says otherwise.
    pub fn enabled(&self, module: &str) -> bool {
        self.named(module).or(self.default).unwrap_or(true)
    }

    /// What the file says of this module or plugin by its name; None: nothing.
    pub fn named(&self, module: &str) -> Option<bool> {
        let plain = |name: &str| name.trim_end_matches(".so").trim_end_matches("_plugin").replace('_', "-");
        let wanted = plain(module);
        self.named.iter().find(|(name, _)| plain(name) == wanted).map(|(_, on)| *on)
    }
}

/// `socksvr { ... }`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socksvr {
    /// The socket.
    pub socket: PathBuf,
}

/// `statseg { ... }`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statseg {
    /// The socket.
    pub socket: PathBuf,
    /// Bytes of the segment.
    pub size: u64,
    /// Pages of the segment.
    pub page_size: PageSize,
    /// Counters of every node too.
    pub per_node_counters: bool,
    /// Time between two rounds of the collector.
    pub update_interval: Duration,
}

/// `logging { ... }`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logging {
    /// Messages that are kept.
    pub size: usize,
    /// What the log keeps, a level's name.
    pub level: String,
    /// What goes to syslog, a level's name.
    pub syslog_level: String,
    /// How long a noisy class stays quiet.
    pub unthrottle: Duration,
    /// Lines on standard error and in the file are JSON objects.
    pub json: bool,
    /// Classes with settings of their own.
    pub classes: BTreeMap<String, LogClass>,
}

/// One class of messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogClass {
    /// What the log keeps.
    pub level: Option<String>,
    /// What goes to syslog.
    pub syslog_level: Option<String>,
    /// Messages a second.
    pub rate_limit: Option<u64>,
}

/// The typed values of checked sections. `cpu` comes from [`crate::place`], which knows the machine.
pub(crate) fn build(
    sections: BTreeMap<&'static str, Settings>,
    no_effect: Vec<NoEffect>,
    cpu: Cpu,
    machine: &Machine,
) -> StartUp {
    let none = Settings::default();
    let section = |name: &str| sections.get(name).unwrap_or(&none);
    let vpps = |(name, key)| {
        let section: &Settings = section(name);
        let path = section.text(key).map(Path::new).or_else(|| section.path(key));
        path.is_some_and(|path| path.starts_with(VPP_DIR))
    };
    let as_vpp = [("unix", "cli-listen"), ("socksvr", "socket-name"), ("statseg", "socket-name")]
        .into_iter()
        .any(vpps);
    let unix = unix(section("unix"), machine, as_vpp);
    let below = |settings: &Settings, file: &str| {
        settings.path("socket-name").map_or_else(|| unix.runtime_dir.join(file), Path::to_path_buf)
    };
    StartUp {
        cpu,
        buffers: buffers(section("buffers")),
        plugins: plugins(section("plugins")),
        prefix: section("api-segment").text("prefix").map(Into::into),
        socksvr: Socksvr { socket: below(section("socksvr"), "api.sock") },
        statseg: Statseg {
            socket: below(section("statseg"), "stats.sock"),
            size: section("statseg").u64("size").unwrap_or(32 << 20),
            page_size: section("statseg").page_size("page-size").unwrap_or_default(),
            per_node_counters: section("statseg").switch("per-node-counters").unwrap_or(false),
            update_interval: Duration::from_secs_f64(
                section("statseg").seconds("update-interval").unwrap_or(10.0),
            ),
        },
        logging: logging(section("logging")),
        unix,
        sections,
        no_effect,
    }
}

/// `as_vpp`: a socket of the file is in VPP's own directory, so the others are there too.
fn unix(s: &Settings, machine: &Machine, as_vpp: bool) -> Unix {
    let owned = |key| s.path(key).map(Path::to_path_buf);
    let current = s.flag("use-current-dir").then(|| PathBuf::from("."));
    let named = owned("runtime-dir").or(current).or_else(|| as_vpp.then(|| VPP_DIR.into()));
    let usual = PathBuf::from(machine.runtime_dir());
    let usual_dir = named.as_ref().is_none_or(|dir| *dir == usual) && !machine.as_vpp;
    let runtime_dir = named.unwrap_or(usual);
    // exec and startup-config are one setting; of both the last one counts.
    let exec = s.iter().filter(|s| matches!(s.key, "exec" | "startup-config")).last();
    let cli_listen = match s.text("cli-listen") {
        None => CliListen::Path(runtime_dir.join("cli.sock")),
        Some(at) if at.contains(':') && !at.contains('/') => CliListen::Tcp(at.into()),
        Some(path) => CliListen::Path(path.into()),
    };
    let interactive = s.flag("interactive");
    let number = |key, default| s.u64(key).map_or(default, |n| n as usize);
    Unix {
        nodaemon: interactive || s.flag("nodaemon"),
        interactive,
        log: owned("log"),
        exec: exec.and_then(|setting| s.path(setting.key)).map(Path::to_path_buf),
        exec_strict: s.flag("exec-strict"),
        cli_listen,
        cli_prompt: s.text("cli-prompt").map(Into::into),
        cli_line_mode: s.flag("cli-line-mode"),
        cli_no_banner: s.flag("cli-no-banner"),
        cli_no_pager: s.flag("cli-no-pager"),
        cli_history_limit: number("cli-history-limit", 50),
        cli_pager_buffer_limit: number("cli-pager-buffer-limit", 100_000),
        pidfile: s.path("pidfile").map(|p| runtime_dir.join(p)),
        runtime_dir,
        usual_dir,
        gid: s.text("gid").map(|g| g.parse().map_or_else(|_| Group::Name(g.into()), Group::Id)),
        poll_sleep: Duration::from_micros(s.u64("poll-sleep-usec").unwrap_or(0)),
        nosyslog: s.flag("nosyslog"),
        nocolor: s.flag("nocolor"),
        nobanner: s.flag("nobanner"),
    }
}

fn buffers(s: &Settings) -> Buffers {
    let numa = |(node, inner): (&str, &Settings)| Some((node.parse().ok()?, inner.u64("buffers")? as u32));
    Buffers {
        per_numa: s.u64("buffers-per-numa").map(|n| n as u32),
        numa: s.named("numa").filter_map(numa).collect(),
        data_size: s.u64("default data-size").map(|n| n as u32),
        page_size: s.page_size("page-size"),
        preallocated: s.flag("preallocated"),
    }
}

fn plugins(s: &Settings) -> Plugins {
    let mut plugins = Plugins::default();
    // Several may stand in one word, as in VPP's file.
    plugins.paths.extend(s.path("path").into_iter().flat_map(std::env::split_paths));
    plugins.paths.extend(s.all("add-path").filter_map(|p| match &p.value {
        shoal_module::config::Value::Path(p) => Some(p.clone()),
        _ => None,
    }));
    for (name, inner) in s.named("plugin") {
        let on = match (inner.flag("enable"), inner.flag("disable")) {
            (true, _) => true,
            (_, true) => false,
            _ => continue,
        };
        if name == "default" {
            plugins.default = Some(on);
        } else {
            plugins.named.insert(name.into(), on);
        }
    }
    plugins
}

fn logging(s: &Settings) -> Logging {
    // VPP spells this level both ways.
    let level = |s: &Settings, key| s.text(key).map(|l| if l == "error" { "err" } else { l }.to_owned());
    let class = |(name, inner): (&str, &Settings)| {
        let class = LogClass {
            level: level(inner, "level"),
            syslog_level: level(inner, "syslog-level"),
            rate_limit: inner.u64("rate-limit"),
        };
        (name.to_owned(), class)
    };
    Logging {
        size: s.u64("size").unwrap_or(512) as usize,
        level: level(s, "default-log-level").unwrap_or_else(|| "notice".into()),
        syslog_level: level(s, "default-syslog-log-level").unwrap_or_else(|| "warn".into()),
        unthrottle: Duration::from_secs(s.u64("unthrottle-time").unwrap_or(5)),
        json: s.text("format") == Some("json"),
        classes: s.named("class").map(class).collect(),
    }
}
