//! How the EAL is started: nothing of it is shared with other processes, and no core is its own.

use std::path::Path;

use crate::config::{Stanza, pci, plain};
use crate::sys;

/// Megabytes of ordinary memory, where there are no huge pages: pools, rings, and what drivers take.
fn megabytes(stanza: &Stanza) -> u32 {
    // An ordinary packet has 2,432 bytes with its description, and a fourth as many have 10,000.
    ((u64::from(stanza.mbufs) * 5000) >> 20) as u32 + 128
}

/// Free huge pages, of any size.
fn free_huge_pages(root: &Path) -> u64 {
    let Ok(sizes) = std::fs::read_dir(root) else { return 0 };
    let free = |size: std::fs::DirEntry| std::fs::read_to_string(size.path().join("free_hugepages")).ok();
    sizes.flatten().filter_map(free).filter_map(|text| text.trim().parse::<u64>().ok()).sum()
}

/// The arguments for a stanza.
pub(crate) fn arguments(stanza: &Stanza, cpus: &str, huge_pages: u64) -> Vec<String> {
    let ordinary = stanza.no_hugetlb || huge_pages == 0;
    // Nothing is shared with other processes. What says so for huge pages is refused for ordinary ones.
    let alone = if ordinary { "--no-shconf" } else { "--in-memory" };
    let mut all: Vec<String> = ["shoal", alone].map(str::to_owned).to_vec();
    // One core of its own, which is the calling thread wherever it runs; the others ask for a number when they come.
    all.push(if cpus.is_empty() { "--lcores=0".to_owned() } else { format!("--lcores=0@({cpus})") });
    if !stanza.telemetry {
        all.push("--no-telemetry".to_owned());
    }
    if ordinary {
        let asked = stanza
            .socket_mem
            .as_deref()
            .map(|list| list.split(',').filter_map(|n| n.parse::<u32>().ok()).sum());
        let asked: Option<u32> = asked.filter(|n| *n > 0);
        all.extend([
            "--no-huge".to_owned(),
            "-m".to_owned(),
            asked.unwrap_or_else(|| megabytes(stanza)).to_string(),
        ]);
    } else if let Some(list) = &stanza.socket_mem {
        all.push(format!("--socket-mem={list}"));
    }
    let named = stanza.devices.iter().filter(|d| pci(&d.device).is_some()).count();
    if stanza.no_pci {
        all.push("--no-pci".to_owned());
    } else if named > 0 || !stanza.devices.is_empty() {
        // Those that are named are probed one by one, so that each has a message of its own; until then none is wanted. A
        // bus's first device is its bridge, which no driver of DPDK takes.
        all.extend(["-a".to_owned(), "0000:00:00.0".to_owned()]);
    } else {
        all.extend(stanza.blocked.iter().flat_map(|d| ["-b".to_owned(), plain(d).to_owned()]));
    }
    all.extend(stanza.eal.iter().cloned());
    all
}

/// Starts it; the arguments it got.
pub(crate) fn start(stanza: &Stanza) -> Result<Vec<String>, String> {
    let huge_pages = free_huge_pages(Path::new("/sys/kernel/mm/hugepages"));
    let arguments = arguments(stanza, &sys::cpus(), huge_pages);
    sys::start(&arguments)
        .map_err(|why| format!("the EAL does not start: {why}; it got {}", arguments.join(" ")))?;
    Ok(arguments)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::stanza;

    fn of(text: &str, huge_pages: u64) -> String {
        arguments(&stanza(text).unwrap(), "0,1", huge_pages).join(" ")
    }

    #[test]
    fn without_huge_pages_it_does_without() {
        assert_eq!(
            of("no-pci", 0),
            "shoal --no-shconf --lcores=0@(0,1) --no-telemetry --no-huge -m 206 --no-pci"
        );
        assert_eq!(of("no-pci", 5), "shoal --in-memory --lcores=0@(0,1) --no-telemetry --no-pci");
        assert!(of("no-pci no-hugetlb socket-mem 64,0", 5).contains("--no-huge -m 64 "));
        assert!(of("socket-mem 64,0 telemetry on", 5).ends_with("--lcores=0@(0,1) --socket-mem=64,0"));
    }

    #[test]
    fn only_devices_that_are_named_are_taken_if_any_is() {
        assert!(of("dev 0000:00:05.0", 1).ends_with("-a 0000:00:00.0"));
        assert!(of("vdev net_null0", 1).ends_with("-a 0000:00:00.0"));
        assert!(of("block 0000:00:05.0", 1).ends_with("-b 0000:00:05.0"));
        assert!(!of("", 1).contains(" -a"));
    }
}
