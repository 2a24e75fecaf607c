//! The start-up configuration in the words of those who obey it.
//!
//! The parsed file is translated once, into [`Settings`], before anything is touched: all that can be wrong with it is
//! found here. The router then hands its parts out.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use shoal_buffer::{DATA_SIZE, Pages, PoolConfig};
use shoal_cli::server::Address;
use shoal_config::{Buffers, CliListen, StartUp};
use shoal_module::Module;
use shoal_module::config::PageSize;
use shoal_plugin_host::Wanted;

use crate::logging::LogSettings;
use crate::{files, modules};

/// Address space of the stats segment, whatever smaller size was asked for: pages that nobody touched cost
/// nothing, and tables never have to move.
const STATS_BYTES: usize = 8 << 30;
/// Smallest page that counts as huge.
const HUGE: u64 = 2 << 20;

/// All that the start-up file says.
pub struct Settings {
    /// The UNIX process.
    pub process: Process,
    /// The log.
    pub log: LogSettings,
    /// Packets and tables.
    pub memory: Memory,
    /// One entry per worker: its core, or none of its own.
    pub workers: Vec<Option<usize>>,
    /// The modules that run, in their order.
    pub modules: Vec<&'static Module>,
    /// Which plugins are loaded, and from where.
    pub plugins: shoal_plugin_host::Setup,
    /// The CLI's socket.
    pub cli: shoal_cli::server::Settings,
    /// The binary API's socket and messages.
    pub api: shoal_api::Settings,
    /// The stats segment.
    pub stats: shoal_stats::Settings,
    /// Where configurations are kept.
    pub configuration: shoal_running::Settings,
    /// What was saved is run at the start.
    pub restores: bool,
    /// For modules: the sections that they declare.
    pub sections: BTreeMap<&'static str, shoal_module::config::Settings>,
    /// What the operator should know of the file, a line each.
    pub notes: Vec<String>,
}

/// What concerns the UNIX process.
#[derive(Debug)]
pub struct Process {
    /// It goes to the background, unless a service manager waits for it.
    pub background: bool,
    /// The CLI on standard input.
    pub interactive: bool,
    /// Where sockets lie.
    pub runtime_dir: PathBuf,
    /// The pid file.
    pub pidfile: Option<PathBuf>,
    /// The group that may use sockets and files.
    pub gid: Option<u32>,
    /// A file of commands, run after the start.
    pub exec: Option<PathBuf>,
    /// The main thread's core.
    pub main_core: Option<u32>,
    /// How long the main thread sleeps in each turn of its loop.
    pub poll_sleep: Duration,
}

/// What concerns memory.
#[derive(Debug)]
pub struct Memory {
    /// The buffer pool.
    pub buffers: PoolConfig,
    /// Bytes of the stats segment.
    pub stats_bytes: usize,
    /// Most bytes of tables.
    pub tables: Option<u64>,
}

impl Settings {
    /// Translates the parsed file.
    ///
    /// # Errors
    /// What is well formed and still cannot be done.
    pub fn translate(startup: StartUp) -> Result<Settings, String> {
        let address = cli_address(&startup)?;
        shoal_metrics::address(&startup.section("metrics"))?;
        let gid = startup.unix.gid.as_ref().map(files::group).transpose()?;
        let modules = modules::enabled(&startup.plugins);
        let notes = exposure(&address).into_iter().chain(warning(&startup)).collect();
        Ok(Settings {
            log: LogSettings::of(&startup),
            memory: Memory {
                buffers: pool(&startup.buffers),
                stats_bytes: STATS_BYTES.max(startup.statseg.size as usize),
                tables: startup.section("memory").u64("main-heap-size"),
            },
            workers: startup.cpu.workers.iter().map(|core| core.map(|c| c as usize)).collect(),
            plugins: plugins(&startup),
            cli: shoal_cli::server::Settings {
                gid,
                prompt: startup.unix.cli_prompt.clone().unwrap_or_else(|| "shoal# ".into()),
                ..shoal_cli::server::Settings::at(address)
            },
            api: shoal_api::Settings {
                socket: startup.socksvr.socket.clone(),
                gid,
                parts: modules.iter().flat_map(|m| m.api).copied().collect(),
            },
            stats: shoal_stats::Settings {
                socket: startup.statseg.socket.clone(),
                gid,
                per_node_counters: startup.statseg.per_node_counters,
                update_interval: startup.statseg.update_interval,
            },
            configuration: configuration(&startup, gid),
            restores: startup.section("configuration").switch("restore") != Some(false),
            process: Process {
                background: !startup.unix.nodaemon,
                interactive: startup.unix.interactive,
                runtime_dir: startup.unix.runtime_dir,
                pidfile: startup.unix.pidfile,
                gid,
                exec: startup.unix.exec,
                main_core: startup.cpu.main_core,
                poll_sleep: startup.unix.poll_sleep,
            },
            modules,
            sections: startup.sections,
            notes,
        })
    }

    /// The sockets that are files.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let cli = match &self.cli.address {
            Address::Path(path) => Some(path.clone()),
            Address::Tcp(_) => None,
        };
        // The API's may be written with a kind in front.
        let api = self.api.socket.as_os_str().to_string_lossy().into_owned();
        let api = api.strip_prefix("unix:").unwrap_or(&api);
        let api = (!api.starts_with("abstract:")).then(|| PathBuf::from(api));
        cli.into_iter().chain(api).chain([self.stats.socket.clone()]).collect()
    }
}

/// Where the CLI listens.
///
/// # Errors
/// The host or the port is none.
fn cli_address(startup: &StartUp) -> Result<Address, String> {
    match &startup.unix.cli_listen {
        CliListen::Path(path) => Ok(Address::Path(path.clone())),
        CliListen::Tcp(text) => port(text).map(Address::Tcp),
    }
}

/// The address of `host:port`: of version 4 if the host has one, as VPP's.
fn port(text: &str) -> Result<SocketAddr, String> {
    let wrong = |why: &dyn Display| {
        format!("unix cli-listen {text}: {why}: give a path, or an address and a port such as localhost:5002")
    };
    let all: Vec<SocketAddr> = text.to_socket_addrs().map_err(|e| wrong(&e))?.collect();
    let first = all.iter().find(|a| a.is_ipv4()).or(all.first());
    match first {
        Some(address) if address.port() == 0 => Err(wrong(&"port 0 is none")),
        Some(address) => Ok(*address),
        None => Err(wrong(&"the host has no address")),
    }
}

/// One line about a command line that others than this machine's users can reach.
fn exposure(address: &Address) -> Option<String> {
    match address {
        Address::Tcp(address) if !address.ip().to_canonical().is_loopback() => Some(format!(
            "unix cli-listen {address}: the command line asks nobody for a password, so whoever can reach this \
             address controls the router; localhost with ssh in front of it is safer"
        )),
        _ => None,
    }
}

/// Whether a stanza is that of a plugin which will be loaded: `dpdk` of `dpdk_plugin.so`.
fn has_reader(plugins: &shoal_config::Plugins, stanza: &str) -> bool {
    let file = format!("{stanza}_plugin.so");
    let usual = [PathBuf::from(shoal_plugin_host::DIRECTORY)];
    let paths = if plugins.paths.is_empty() { &usual[..] } else { &plugins.paths };
    plugins.enabled(&file) && paths.iter().any(|path| path.join(&file).is_file())
}

/// One line that names every setting that changes nothing.
fn warning(startup: &StartUp) -> Option<String> {
    let cpu = &startup.cpu;
    let size = startup.buffers.data_size.is_some_and(|size| size as usize != DATA_SIZE);
    let mine = [
        (cpu.scheduler_policy.is_some(), "cpu scheduler-policy (systemd's CPUSchedulingPolicy does it)"),
        (!cpu.thread_prefix.is_empty(), "cpu thread-prefix"),
        (size, "buffers default data-size (it is 2048)"),
        (startup.buffers.numa.keys().any(|node| *node != 0), "buffers numa (there is one pool)"),
    ];
    let mine: Vec<&str> = mine.iter().filter(|(given, _)| *given).map(|(_, what)| *what).collect();
    let mut startup = startup.clone();
    startup.no_effect.retain(|item| !has_reader(&startup.plugins, &item.what));
    match (startup.warning(), mine.is_empty()) {
        (theirs, true) => theirs,
        (None, false) => Some(format!("start-up settings without effect here: {}", mine.join(", "))),
        (Some(theirs), false) => Some(format!("{theirs}, {}", mine.join(", "))),
    }
}

/// The buffer pool.
fn pool(buffers: &Buffers) -> PoolConfig {
    let usual = PoolConfig::default();
    let most = buffers.numa.get(&0).copied().or(buffers.per_numa).map_or(usual.most, |n| n as usize);
    let pages = match buffers.page_size {
        None | Some(PageSize::DefaultHuge) => Pages::Huge,
        Some(PageSize::Bytes(bytes)) if bytes >= HUGE => Pages::Huge,
        Some(PageSize::Default | PageSize::Bytes(_)) => Pages::Small,
    };
    let first = if buffers.preallocated { most } else { usual.buffers.min(most) };
    PoolConfig { buffers: first, most, pages, ..usual }
}

/// Which plugins are loaded, and from where.
fn plugins(startup: &StartUp) -> shoal_plugin_host::Setup {
    let plugins = startup.plugins.clone();
    let wanted = move |file: &str| match plugins.named(file) {
        Some(true) => Wanted::Named,
        None if plugins.enabled(file) => Wanted::Yes,
        None | Some(false) => Wanted::No,
    };
    shoal_plugin_host::Setup { paths: startup.plugins.paths.clone(), wanted: Box::new(wanted) }
}

/// Where configurations are kept.
fn configuration(startup: &StartUp, gid: Option<u32>) -> shoal_running::Settings {
    let section = startup.section("configuration");
    let directory = section.path("directory").unwrap_or(Path::new(shoal_running::DIRECTORY)).to_owned();
    let revisions = section.u64("revisions").unwrap_or(shoal_running::REVISIONS) as usize;
    shoal_running::Settings { directory, revisions, gid }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_config::{Machine, Source};

    fn startup(words: &str) -> StartUp {
        let machine = Machine { cores: vec![0, 1], allowed: vec![0, 1], numa_nodes: vec![0, 1], uid: 0 };
        shoal_config::check(&[Source::words([words])], &[], &machine).unwrap()
    }

    #[test]
    fn configurations_are_kept_where_the_file_says() {
        // Sections of modules are known to the daemon only.
        let sections = [&shoal_running::MODULE.sections[0]];
        let machine = Machine { cores: vec![0], allowed: vec![0], numa_nodes: vec![0], uid: 0 };
        let of = |words: &str| shoal_config::check(&[Source::words([words])], &sections, &machine).unwrap();
        let usual = of("");
        let restores = |startup: &StartUp| Settings::translate(startup.clone()).unwrap().restores;
        assert!(restores(&usual));
        assert_eq!(configuration(&usual, Some(7)).directory, Path::new("/var/lib/shoal"));
        assert_eq!(
            (configuration(&usual, Some(7)).revisions, configuration(&usual, Some(7)).gid),
            (50, Some(7))
        );
        let other = of("configuration { directory /x/y restore off revisions 3 }");
        assert!(!restores(&other));
        assert_eq!(configuration(&other, None).directory, Path::new("/x/y"));
        assert_eq!(configuration(&other, None).revisions, 3);
    }

    #[test]
    fn plugins_are_loaded_as_the_file_says() {
        let of = |words: &str| plugins(&startup(&format!("plugins {{ {words} }}")));
        let usual = plugins(&startup(""));
        assert_eq!((usual.paths.len(), (usual.wanted)("a_plugin.so")), (0, Wanted::Yes));
        let some = of("path /a:/b add-path /c plugin a_plugin.so { enable } plugin b.so { disable }");
        assert_eq!(some.paths, ["/a", "/b", "/c"].map(std::path::PathBuf::from));
        let wanted = ["a_plugin.so", "a.so", "b.so", "b_plugin.so", "c.so"].map(|f| (some.wanted)(f));
        assert_eq!(wanted, [Wanted::Named, Wanted::Named, Wanted::No, Wanted::No, Wanted::Yes]);
        let few = of("plugin default { disable } plugin a_plugin.so { enable }");
        assert_eq!(((few.wanted)("a_plugin.so"), (few.wanted)("c.so")), (Wanted::Named, Wanted::No));
    }

    #[test]
    fn a_pool_starts_small_unless_preallocated() {
        let pool_of = |words| pool(&startup(words).buffers);
        assert_eq!(pool_of("").pages, Pages::Huge);
        let small = pool_of("buffers { buffers-per-numa 1000 page-size default }");
        assert_eq!((small.buffers, small.most, small.pages), (1000, 1000, Pages::Small));
        let grows = pool_of("buffers { buffers-per-numa 100000 }");
        assert_eq!((grows.buffers, grows.most), (16_384, 100_000));
        let taken = pool_of("buffers { numa 0 { buffers 100000 } preallocated page-size 1G }");
        assert_eq!((taken.buffers, taken.most, taken.pages), (100_000, 100_000, Pages::Huge));
    }

    #[test]
    fn what_has_no_effect_is_one_line() {
        assert_eq!(warning(&startup("unix { nodaemon }")), None);
        let line =
            warning(&startup("dpdk { } cpu { scheduler-policy fifo } buffers { default data-size 4096 }"));
        let line = line.unwrap();
        assert_eq!(line.lines().count(), 1);
        for word in ["dpdk", "scheduler-policy", "data-size"] {
            assert!(line.contains(word), "{line}");
        }
    }

    #[test]
    fn the_cli_listens_on_a_path_or_on_a_port_of_this_machine() {
        let translated = |words: &str| Settings::translate(startup(words));
        let address = |words: &str| translated(words).map(|s| s.cli.address);
        let local = Address::Tcp("127.0.0.1:5002".parse().unwrap());
        assert_eq!(address("unix { cli-listen localhost:5002 }"), Ok(local));
        let six = Address::Tcp("[::1]:5002".parse().unwrap());
        assert_eq!(address("unix { cli-listen [::1]:5002 }"), Ok(six));
        assert_eq!(address("unix { cli-listen /x/y.sock }"), Ok(Address::Path("/x/y.sock".into())));
        for wrong in ["localhost:0", "localhost:99999", "localhost:", "127.0.0.1:http-alt-x"] {
            let refusal = address(&format!("unix {{ cli-listen {wrong} }}")).unwrap_err();
            assert!(refusal.contains(wrong) && refusal.contains("localhost:5002"), "{refusal}");
        }
        assert!(address("unix { gid no-such-group }").is_err());
        let settings = translated("unix { gid 0 cli-listen /x/y.sock }").ok().unwrap();
        assert_eq!(
            [settings.process.gid, settings.cli.gid, settings.api.gid, settings.stats.gid],
            [Some(0); 4]
        );
        assert_eq!(settings.configuration.gid, Some(0));
        assert!(settings.sockets().contains(&"/x/y.sock".into()) && settings.sockets().len() == 3);
        let abstracted =
            translated("unix { cli-listen localhost:5002 } socksvr { socket-name abstract:api }");
        assert_eq!(abstracted.ok().unwrap().sockets().len(), 1, "the stats segment's alone is a file");
    }

    #[test]
    fn a_port_that_others_can_reach_is_warned_of() {
        let notes = |listen: &str| {
            Settings::translate(startup(&format!("unix {{ cli-listen {listen} }}"))).ok().unwrap().notes
        };
        let of = |listen: &str| notes(listen).into_iter().find(|line| line.contains("cli-listen"));
        for harmless in ["/run/x.sock", "localhost:5002", "127.0.0.5:5002", "[::1]:5002"] {
            assert_eq!(of(harmless), None, "{harmless}");
        }
        for open in ["0.0.0.0:5002", "[::]:5002", "192.0.2.1:5002", "[::ffff:192.0.2.1]:5002"] {
            assert!(of(open).is_some_and(|line| line.contains("password")), "{open}");
        }
    }
}
