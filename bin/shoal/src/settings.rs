//! The start-up configuration in the words of those who obey it.

use std::path::Path;

use shoal_buffer::{DATA_SIZE, Pages, PoolConfig};
use shoal_config::{Buffers, CliListen, StartUp};
use shoal_module::config::PageSize;

use crate::files;

/// Address space of the stats segment, whatever smaller size was asked for: pages that nobody touched cost
/// nothing, and tables never have to move.
const STATS_BYTES: usize = 8 << 30;
/// Smallest page that counts as huge.
const HUGE: u64 = 2 << 20;

/// What is well formed and still cannot be done.
pub fn refuse(startup: &StartUp) -> Result<(), String> {
    if let CliListen::Tcp(address) = &startup.unix.cli_listen {
        return Err(format!(
            "unix cli-listen {address}: the CLI asks nobody for a password and listens on UNIX sockets only; \
             give a path, and reach it from elsewhere with ssh"
        ));
    }
    startup.unix.gid.as_ref().map_or(Ok(0), files::group).map(|_| ())
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

/// The CLI's socket; [`refuse`] has seen to it that it is a path.
pub fn cli(startup: &StartUp, gid: Option<u32>) -> shoal_cli::server::Settings {
    let path = match &startup.unix.cli_listen {
        CliListen::Path(path) => path.as_path(),
        CliListen::Tcp(address) => Path::new(address),
    };
    let usual = shoal_cli::server::Settings::new(path);
    shoal_cli::server::Settings { gid, prompt: prompt(startup), ..usual }
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
    fn a_tcp_port_for_the_cli_is_refused_with_the_reason() {
        let refusal = refuse(&startup("unix { cli-listen localhost:5002 }")).unwrap_err();
        assert!(refusal.contains("localhost:5002") && refusal.contains("UNIX sockets"), "{refusal}");
        assert!(refuse(&startup("unix { gid no-such-group }")).is_err());
        assert!(refuse(&startup("unix { gid 0 }")).is_ok());
    }
}
