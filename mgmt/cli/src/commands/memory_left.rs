//! How much more memory the process may take: what the machine has left, and what its cgroups allow.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// Bytes left, as far as the system says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(super) struct MemoryLeft {
    /// `MemAvailable`: what the machine can give without swapping.
    pub machine: Option<u64>,
    /// What the tightest of its cgroups still allows.
    pub cgroup: Option<u64>,
}

impl MemoryLeft {
    /// Asks the system.
    pub fn read() -> Self {
        Self::below(Path::new("/"))
    }

    /// Asks a system whose files are below `root`.
    fn below(root: &Path) -> Self {
        let text = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let groups = text("proc/self/cgroup");
        MemoryLeft {
            machine: available(&text("proc/meminfo")),
            cgroup: groups.lines().filter_map(|line| of_group(root, line)).min(),
        }
    }

    /// The tighter of the two.
    pub fn bytes(self) -> Option<u64> {
        self.machine.into_iter().chain(self.cgroup).min()
    }
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1024))
}

/// What a line of `/proc/self/cgroup` leads to: the cgroup and all above it, of which each may have a limit.
fn of_group(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (_, kinds, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (mount, limit, usage) = if kinds.is_empty() {
        ("sys/fs/cgroup", "memory.max", "memory.current")
    } else if kinds.split(',').any(|kind| kind == "memory") {
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
    } else {
        return None;
    };
    let mount = root.join(mount);
    let number = |file: PathBuf| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    // `max`, or no limit in the old way of writing it.
    let left = |dir: &Path| {
        let limit = number(dir.join(limit)).filter(|n| *n < 1 << 60)?;
        Some(limit.saturating_sub(number(dir.join(usage)).unwrap_or(0)))
    };
    let own = mount.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|dir| dir.starts_with(&mount)).filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    #[test]
    fn the_tightest_bound_of_machine_and_cgroups_counts() {
        let root = std::env::temp_dir().join(format!("shoal-memory-left-{}", std::process::id()));
        write(&root, "proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   4096 kB\n");
        assert_eq!(MemoryLeft::below(&root), MemoryLeft { machine: Some(4096 << 10), cgroup: None });
        write(&root, "proc/self/cgroup", "4:memory,cpu:/a/b\n0::/x/y\n1:pids:/z\n");
        let v1 = "sys/fs/cgroup/memory";
        write(&root, &format!("{v1}/a/b/memory.limit_in_bytes"), "9223372036854771712\n");
        write(&root, &format!("{v1}/a/memory.limit_in_bytes"), "3000000\n");
        write(&root, &format!("{v1}/a/memory.usage_in_bytes"), "1000000\n");
        assert_eq!(MemoryLeft::below(&root).cgroup, Some(2_000_000));
        write(&root, "sys/fs/cgroup/x/y/memory.max", "max\n");
        write(&root, "sys/fs/cgroup/x/memory.max", "1000\n");
        write(&root, "sys/fs/cgroup/x/memory.current", "2000\n");
        assert_eq!(MemoryLeft::below(&root).bytes(), Some(0), "more is used than allowed");
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_system_that_says_nothing_bounds_nothing() {
        assert_eq!(MemoryLeft::below(Path::new("/nonexistent")).bytes(), None);
        assert_eq!(available("MemAvailable: lots\n"), None);
    }
}
