//! The start-up configuration in the words of those who obey it.

use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use shoal_buffer::{DATA_SIZE, Pages, PoolConfig};
use shoal_cli::server::Address;
use shoal_config::{Buffers, CliListen, StartUp};
use shoal_module::Module;
use shoal_module::config::PageSize;
use shoal_plugin_host::Wanted;

use crate::files;

/// Address space of the stats segment, whatever smaller size was asked for: pages that nobody touched cost
/// nothing, and tables never have to move.
const STATS_BYTES: usize = 8 << 30;
/// Smallest page that counts as huge.
const HUGE: u64 = 2 << 20;

/// What is well formed and still cannot be done.
pub fn refuse(startup: &StartUp) -> Result<(), String> {
    cli_address(startup)?;
    shoal_metrics::address(&startup.section("metrics"))?;
    startup.unix.gid.as_ref().map_or(Ok(0), files::group).map(|_| ())
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
pub fn exposure(startup: &StartUp) -> Option<String> {
    match cli_address(startup) {
        Ok(Address::Tcp(address)) if !address.ip().to_canonical().is_loopback() => Some(format!(
            "unix cli-listen {address}: the command line asks nobody for a password, so whoever can reach this \
             address controls the router; localhost with ssh in front of it is safer"
        )),
        _ => None,
    }
}

/// Whether a stanza is that of a plugin which will be loaded: `dpdk` of `dpdk_plugin.so`.
fn has_reader(plugins: &shoal_config::Plugins, stanza: &str) -> bool {
    let file = format!("{stanza}_plugin.so");
    let usual = [std::path::PathBuf::from(shoal_plugin_host::DIRECTORY)];
    let paths = if plugins.paths.is_empty() { &usual[..] } else { &plugins.paths };
    plugins.enabled(&file) && paths.iter().any(|path| path.join(&file).is_file())
}

/// One line that names every setting that changes nothing.
pub fn warning(startup: &StartUp) -> Option<String> {
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
pub fn pool(buffers: &Buffers) -> PoolConfig {
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

/// Bytes of the stats segment.
pub fn stats_bytes(startup: &StartUp) -> usize {
    STATS_BYTES.max(startup.statseg.size as usize)
}

/// How the segment is published.
pub fn stats(startup: &StartUp, gid: Option<u32>) -> shoal_stats::Settings {
    shoal_stats::Settings {
        socket: startup.statseg.socket.clone(),
        gid,
        per_node_counters: startup.statseg.per_node_counters,
        update_interval: startup.statseg.update_interval,
    }
}

/// The binary API's socket, and the messages of these modules.
pub fn api(startup: &StartUp, gid: Option<u32>, modules: &[&'static Module]) -> shoal_api::Settings {
    let parts = modules.iter().flat_map(|m| m.api).copied().collect();
    shoal_api::Settings { socket: startup.socksvr.socket.clone(), gid, parts }
}

/// Which plugins are loaded, and from where.
pub fn plugins(startup: &StartUp) -> shoal_plugin_host::Setup {
    let plugins = startup.plugins.clone();
    let wanted = move |file: &str| match plugins.named(file) {
        Some(true) => Wanted::Named,
        None if plugins.enabled(file) => Wanted::Yes,
        None | Some(false) => Wanted::No,
    };
    shoal_plugin_host::Setup { paths: startup.plugins.paths.clone(), wanted: Box::new(wanted) }
}

/// Where configurations are kept.
pub fn configuration(startup: &StartUp, gid: Option<u32>) -> shoal_running::Settings {
    let section = startup.section("configuration");
    let directory = section.path("directory").unwrap_or(Path::new(shoal_running::DIRECTORY)).to_owned();
    let revisions = section.u64("revisions").unwrap_or(shoal_running::REVISIONS) as usize;
    shoal_running::Settings { directory, revisions, gid }
}

/// Whether what was saved is run at the start.
pub fn restores(startup: &StartUp) -> bool {
    startup.section("configuration").switch("restore") != Some(false)
}

/// The CLI's socket.
///
/// # Errors
/// The host of its port has no address.
pub fn cli(startup: &StartUp, gid: Option<u32>) -> Result<shoal_cli::server::Settings, String> {
    let usual = shoal_cli::server::Settings::at(cli_address(startup)?);
    Ok(shoal_cli::server::Settings { gid, prompt: prompt(startup), ..usual })
}

/// The sockets that are files.
pub fn sockets(startup: &StartUp) -> Vec<std::path::PathBuf> {
    let cli = match &startup.unix.cli_listen {
        CliListen::Path(path) => Some(path.clone()),
        CliListen::Tcp(_) => None,
    };
    let others = [startup.socksvr.socket.clone(), startup.statseg.socket.clone()];
    cli.into_iter().chain(others).collect()
}

/// The prompt.
pub fn prompt(startup: &StartUp) -> String {
    startup.unix.cli_prompt.clone().unwrap_or_else(|| "shoal# ".into())
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
        let address = |words: &str| cli(&startup(words), None).map(|s| s.address);
        let local = Address::Tcp("127.0.0.1:5002".parse().unwrap());
        assert_eq!(address("unix { cli-listen localhost:5002 }"), Ok(local));
        let six = Address::Tcp("[::1]:5002".parse().unwrap());
        assert_eq!(address("unix { cli-listen [::1]:5002 }"), Ok(six));
        assert_eq!(address("unix { cli-listen /x/y.sock }"), Ok(Address::Path("/x/y.sock".into())));
        for wrong in ["localhost:0", "localhost:99999", "localhost:", "127.0.0.1:http-alt-x"] {
            let refusal = refuse(&startup(&format!("unix {{ cli-listen {wrong} }}"))).unwrap_err();
            assert!(refusal.contains(wrong) && refusal.contains("localhost:5002"), "{refusal}");
        }
        assert!(refuse(&startup("unix { gid no-such-group }")).is_err());
        assert!(refuse(&startup("unix { gid 0 }")).is_ok());
    }

    #[test]
    fn a_port_that_others_can_reach_is_warned_of() {
        let of = |listen: &str| exposure(&startup(&format!("unix {{ cli-listen {listen} }}")));
        for harmless in ["/run/x.sock", "localhost:5002", "127.0.0.5:5002", "[::1]:5002"] {
            assert_eq!(of(harmless), None, "{harmless}");
        }
        for open in ["0.0.0.0:5002", "[::]:5002", "192.0.2.1:5002", "[::ffff:192.0.2.1]:5002"] {
            assert!(of(open).is_some_and(|line| line.contains("password")), "{open}");
        }
    }
}
