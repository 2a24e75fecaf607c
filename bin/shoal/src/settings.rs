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
use shoal_config::{Buffers, CliListen, Group, StartUp};
use shoal_module::Module;
use shoal_module::config::{PageSize, TEXT};
use shoal_plugin_host::Wanted;

use crate::logging::LogSettings;
use crate::{files, modules};

/// Address space of the stats segment, whatever smaller size was asked for: untouched pages cost nothing, and tables
/// never have to move.
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
    /// What is wrong with the file of commands.
    pub exec_faults: Option<String>,
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
    /// Nothing of it runs when a line is wrong.
    pub exec_strict: bool,
    /// How threads are scheduled: policy and priority.
    pub scheduling: Option<(String, u8)>,
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
        let (gid, no_group) = match startup.unix.gid.as_ref().map(files::group).transpose() {
            Ok(gid) => (gid, None),
            // VPP's package makes the group that its file names; ours does not.
            Err(why) if startup.unix.gid == Some(Group::Name("vpp".into())) => (
                None,
                Some(format!("{why}: only root may use the sockets ('groupadd --system vpp' makes it)")),
            ),
            Err(why) => return Err(why),
        };
        let modules = modules::enabled(&startup.plugins);
        let scheduling = scheduling(&startup);
        let notes = exposure(&address)
            .into_iter()
            .chain(no_group)
            .chain(missing_nics(&startup))
            .chain(warning(&startup));
        let notes = notes.collect();
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
                exec_strict: startup.unix.exec_strict,
                scheduling,
                main_core: startup.cpu.main_core,
                poll_sleep: startup.unix.poll_sleep,
            },
            modules,
            exec_faults: None,
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
            "unix cli-listen {address}: the command line asks for no password, so every host that can reach this \
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

/// One line about NICs that a `dpdk` stanza names and no driver serves.
fn missing_nics(startup: &StartUp) -> Option<String> {
    let text = startup.sections.get("dpdk")?.text(TEXT)?;
    if has_reader(&startup.plugins, "dpdk") {
        return None;
    }
    let words = || text.split(|c: char| c.is_whitespace() || matches!(c, '{' | '}'));
    let nics: Vec<&str> = words()
        .zip(words().skip(1))
        .filter(|(key, _)| *key == "dev")
        .map(|(_, nic)| nic)
        .filter(|n| *n != "default")
        .collect();
    let which = match nics.as_slice() {
        [] => "interfaces of DPDK".to_owned(),
        nics => format!("the interfaces of {}", nics.join(", ")),
    };
    Some(format!(
        "dpdk: {which} will be missing, as there is no dpdk_plugin.so: 'make dpdk' builds it, 'make install' installs it; \
         a NIC with a kernel driver is reached by 'create host-interface name NAME' too (docs/guide/dpdk.md)"
    ))
}

/// How threads are scheduled, if the file says it: in `cpu`, where VPP has it, or in `unix`.
fn scheduling(startup: &StartUp) -> Option<(String, u8)> {
    let unix = startup.section("unix");
    let policy =
        startup.cpu.scheduler_policy.clone().or_else(|| unix.text("scheduler-policy").map(str::to_owned))?;
    let priority = startup.cpu.scheduler_priority.or(unix.u64("scheduler-priority").map(|p| p as u8));
    let real_time = matches!(policy.as_str(), "fifo" | "rr");
    Some((policy, if real_time { priority.unwrap_or(1) } else { 0 }))
}

/// One line that names every setting that changes nothing.
fn warning(startup: &StartUp) -> Option<String> {
    let cpu = &startup.cpu;
    let size = startup.buffers.data_size.is_some_and(|size| size as usize != DATA_SIZE);
    let mine = [
        (!cpu.thread_prefix.is_empty(), "cpu thread-prefix"),
        (size, "buffers default data-size (it is 2048)"),
        (startup.buffers.numa.keys().any(|node| *node != 0), "buffers numa (there is one pool)"),
    ];
    let mine: Vec<&str> = mine.iter().filter(|(given, _)| *given).map(|(_, what)| *what).collect();
    let mut startup = startup.clone();
    // A line of its own tells of these.
    startup.no_effect.retain(|item| item.what != "dpdk" && !has_reader(&startup.plugins, &item.what));
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

/// The directory of this router among all on the machine: the usual one, or below it one for its runtime directory and
/// its prefix, so that two routers never share what they saved.
fn own_directory(startup: &StartUp) -> PathBuf {
    let usual = PathBuf::from(shoal_running::DIRECTORY);
    let mut name = String::new();
    if !startup.unix.usual_dir {
        let dir = std::path::absolute(&startup.unix.runtime_dir)
            .unwrap_or_else(|_| startup.unix.runtime_dir.clone());
        // As systemd writes paths in names, so that no two paths have one name.
        let escaped = dir.to_string_lossy().trim_matches('/').replace('-', "\\x2d").replace('/', "-");
        name.push_str(&escaped);
    }
    if let Some(prefix) = &startup.prefix {
        name.push('+');
        name.push_str(&prefix.replace('/', "-"));
    }
    if name.is_empty() { usual } else { usual.join("routers").join(name) }
}

/// Where configurations are kept.
fn configuration(startup: &StartUp, gid: Option<u32>) -> shoal_running::Settings {
    let section = startup.section("configuration");
    let directory = section.path("directory").map_or_else(|| own_directory(startup), Path::to_owned);
    let revisions = section.u64("revisions").unwrap_or(shoal_running::REVISIONS) as usize;
    shoal_running::Settings { directory, revisions, gid }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_config::{Machine, Source};

    fn startup(words: &str) -> StartUp {
        let machine =
            Machine { cores: vec![0, 1], allowed: vec![0, 1], numa_nodes: vec![0, 1], uid: 0, as_vpp: false };
        shoal_config::check(&[Source::words([words])], &[], &machine).unwrap()
    }

    #[test]
    fn configurations_are_kept_where_the_file_says() {
        // Sections of modules are known to the daemon only.
        let sections = [&shoal_running::MODULE.sections[0]];
        let machine =
            Machine { cores: vec![0], allowed: vec![0], numa_nodes: vec![0], uid: 0, as_vpp: false };
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
    fn every_router_has_a_directory_of_its_own() {
        let of = |words: &str| configuration(&startup(words), None).directory;
        let all = [
            of(""),
            of("unix { runtime-dir /run/other }"),
            of("unix { runtime-dir /run/other/one }"),
            of("unix { runtime-dir /run/other-one }"),
            of("api-segment { prefix two }"),
            of("unix { runtime-dir /run/other } api-segment { prefix two }"),
            of("unix { cli-listen /run/vpp/cli.sock }"),
            of("unix { use-current-dir }"),
        ];
        assert_eq!(all[0], Path::new("/var/lib/shoal"));
        assert_eq!(all[6], Path::new("/var/lib/shoal/routers/run-vpp"));
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
        assert_eq!(of("unix { runtime-dir /run/shoal }"), all[0], "what is usual may be written down");
    }

    #[test]
    fn nics_without_a_driver_are_named() {
        let line = missing_nics(&startup(
            "dpdk { dev default { num-rx-queues 2 } dev 0000:02:00.0 dev 0000:02:00.1 { name x } }",
        ));
        let line = line.unwrap();
        assert!(line.contains("interfaces of 0000:02:00.0, 0000:02:00.1 will be missing"), "{line}");
        assert!(line.contains("make dpdk"), "{line}");
        assert_eq!(missing_nics(&startup("")), None);
        let settings = Settings::translate(startup("dpdk { dev 0000:02:00.0 }")).ok().unwrap();
        assert_eq!(settings.notes.len(), 1, "{:?}", settings.notes);
    }

    #[test]
    fn a_group_of_vpps_package_that_is_not_there_is_a_warning() {
        if nix::unistd::Group::from_name("vpp").is_ok_and(|group| group.is_some()) {
            println!("SKIP a_group_of_vpps_package_that_is_not_there_is_a_warning: it is there");
            return;
        }
        let settings = Settings::translate(startup("unix { gid vpp }")).ok().unwrap();
        assert_eq!(settings.cli.gid, None);
        assert!(settings.notes.iter().any(|n| n.contains("group 'vpp'") && n.contains("groupadd")));
    }

    #[test]
    fn threads_are_scheduled_as_either_section_says() {
        let of = |words: &str| scheduling(&startup(words));
        assert_eq!(of(""), None);
        assert_eq!(of("cpu { scheduler-policy fifo scheduler-priority 40 }"), Some(("fifo".into(), 40)));
        assert_eq!(of("unix { scheduler-policy rr }"), Some(("rr".into(), 1)));
        assert_eq!(of("cpu { scheduler-policy batch }"), Some(("batch".into(), 0)));
    }

    #[test]
    fn what_has_no_effect_is_one_line() {
        assert_eq!(warning(&startup("unix { nodaemon }")), None);
        let line = warning(&startup("l2tp { } cpu { thread-prefix x } buffers { default data-size 4096 }"));
        let line = line.unwrap();
        assert_eq!(line.lines().count(), 1);
        for word in ["l2tp", "thread-prefix", "data-size"] {
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
