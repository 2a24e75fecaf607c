//! What the check must know of the machine; tests make their own.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// The machine a configuration is checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Cores that are online, ascending.
    pub cores: Vec<u32>,
    /// Cores this process may use (containers, taskset), ascending.
    pub allowed: Vec<u32>,
    /// NUMA nodes, ascending.
    pub numa_nodes: Vec<u32>,
    /// The user who runs the router; 0 is root.
    pub uid: u32,
    /// The program was started by the name `vpp`: its files are where VPP has them.
    pub as_vpp: bool,
}

impl Machine {
    /// This machine. What cannot be read gets the smallest value that is true everywhere: one core, one node.
    pub fn read() -> Self {
        let list = |path: &str| fs::read_to_string(path).ok().and_then(|t| cores(t.trim()));
        let cores_online = list("/sys/devices/system/cpu/online").unwrap_or_else(|| vec![0]);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
        Self {
            allowed: allowed.and_then(|l| cores(l.trim())).unwrap_or_else(|| cores_online.clone()),
            cores: cores_online,
            numa_nodes: list("/sys/devices/system/node/online").unwrap_or_else(|| vec![0]),
            uid: fs::metadata("/proc/self").map_or(0, |m| m.uid()),
            as_vpp: is_named_vpp(),
        }
    }

    /// The runtime directory when none is given: `/run/shoal`, or the user's own. A router by VPP's name has VPP's.
    pub fn runtime_dir(&self) -> String {
        let name = if self.as_vpp { "vpp" } else { "shoal" };
        match self.uid {
            0 => format!("/run/{name}"),
            uid => format!("/run/user/{uid}/{name}"),
        }
    }
}

fn is_named_vpp() -> bool {
    let program = std::env::args_os().next().unwrap_or_default();
    std::path::Path::new(&program).file_name().is_some_and(|name| name == "vpp")
}

/// Reads a list such as `1,3-5`: ascending, none twice. None if it is no such list, or reaches past 65,535.
pub(crate) fn cores(text: &str) -> Option<Vec<u32>> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let number = |t: &str| t.parse::<u16>().ok().filter(|_| !t.starts_with('+')).map(u32::from);
        match part.split_once('-') {
            None => list.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return None;
                }
                list.extend(first..=last);
            }
        }
        // A line of overlapping ranges must not grow without end.
        if list.len() > 1 << 17 {
            list.sort_unstable();
            list.dedup();
        }
    }
    list.sort_unstable();
    list.dedup();
    Some(list)
}

/// Writes a list of cores as people write it: `0-3,8`.
pub(crate) fn show_cores(cores: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &core in cores {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let show = |(a, b): (u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    runs.into_iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_lists_are_sorted_without_doubles_and_printed_as_ranges() {
        assert_eq!(cores("8,1-3,2"), Some(vec![1, 2, 3, 8]));
        assert_eq!(show_cores(&[1, 2, 3, 8]), "1-3,8");
        for bad in ["", ",", "1,", "3-1", "-1", "a", "1-", "70000", "+1", "1 2"] {
            assert_eq!(cores(bad), None, "{bad}");
        }
    }

    #[test]
    fn this_machine_has_a_core() {
        let machine = Machine::read();
        assert!(!machine.cores.is_empty() && !machine.allowed.is_empty() && !machine.numa_nodes.is_empty());
    }
}
