//! The memory options of DPDK's programs, and what they leave behind.

use std::fs;
use std::path::PathBuf;

use crate::cleaner::Undo;
use crate::line::Line;

/// Megabytes of packet memory.
const MEGABYTES: u64 = 512;

/// Words for memory and files: huge pages if enough are free, else ordinary ones. Nothing of the machine's own DPDK is
/// touched: no PCI, a prefix of ours.
pub(crate) fn memory(prefix: &str) -> String {
    let pages = if huge_pages_free() { "--huge-unlink=always" } else { "--no-huge" };
    format!(
        "{pages} -m {MEGABYTES} --no-pci --no-shconf --no-telemetry --file-prefix {prefix} --log-level=lib.eal:3"
    )
}

/// The same for Open vSwitch, which adds words of its own.
pub(crate) fn memory_of_switch(prefix: &str) -> String {
    let pages = if huge_pages_free() {
        String::new()
    } else {
        format!("--no-huge --legacy-mem --file-prefix {prefix} ")
    };
    format!("{pages}-m {MEGABYTES} --no-pci --no-telemetry")
}

/// What a killed program with this prefix leaves.
pub(crate) fn leftovers(prefix: &str) -> Vec<Undo> {
    let mut all = vec![Undo::Path(PathBuf::from("/var/run/dpdk").join(prefix))];
    for folder in huge_page_mounts(&fs::read_to_string("/proc/mounts").unwrap_or_default()) {
        all.push(Undo::Files { folder, begin: format!("{prefix}map_") });
    }
    all
}

/// Program and version, by `pkg-config` or the package.
pub(crate) fn version() -> String {
    let asked = ["pkg-config --modversion libdpdk", "dpkg-query -W -f ${Version} dpdk-dev"];
    let found = asked.iter().find_map(|line| Line::words(line).run().ok());
    format!("dpdk-testpmd of DPDK {}", found.unwrap_or_default().trim()).trim_end().to_owned()
}

fn huge_pages_free() -> bool {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let value = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
    };
    let mounted = !huge_page_mounts(&fs::read_to_string("/proc/mounts").unwrap_or_default()).is_empty();
    let free = value("HugePages_Free").unwrap_or(0) * value("Hugepagesize").unwrap_or(0);
    mounted && free >= MEGABYTES * 1024
}

/// Folders of hugetlbfs.
fn huge_page_mounts(mounts: &str) -> Vec<PathBuf> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let folder = words.next()?;
            (words.next()? == "hugetlbfs").then(|| PathBuf::from(folder))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_where_hugetlbfs_is_mounted() {
        let mounts = "proc /proc proc rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw 0 0\nnodev /mnt/huge hugetlbfs rw 0 0\n";
        assert_eq!(huge_page_mounts(mounts), [PathBuf::from("/dev/hugepages"), PathBuf::from("/mnt/huge")]);
    }

    #[test]
    fn what_a_killed_program_leaves_has_its_prefix() {
        assert_eq!(leftovers("sll-1-0")[0], Undo::Path("/var/run/dpdk/sll-1-0".into()));
        assert!(memory("sll-1-0").contains("--file-prefix sll-1-0 "));
    }
}
