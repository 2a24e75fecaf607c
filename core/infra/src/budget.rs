//! How much memory may tables still take?
//!
//! A table that grows asks first ([`take`]) and is refused while there is still memory for everything else: packets,
//! sessions, the error message. Without that the process would be ended by the kernel, or abort, with all its tables.
//! What limits it, whichever is least: the size that was configured, the control group (both versions), the limits of
//! address space and data (`ulimit -v`, `-d`), and what the machine has left.
//!
//! Asking costs an addition most of the time: the system is looked at once for every few megabytes. Memory that a
//! table keeps for its next growth is not given back here, and needs not be asked for again.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How much may be taken between two looks at the system.
const GRAIN: u64 = 4 << 20;
/// Left to everybody else in any case.
const KEPT: u64 = 32 << 20;
/// Of a limit, this part is left to everybody else.
const KEPT_PART: u64 = 32;

/// What refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// `memory { main-heap-size }`.
    Configured,
    /// The control group's memory limit.
    ControlGroup,
    /// `ulimit -v`.
    AddressSpace,
    /// `ulimit -d`.
    Data,
    /// What the machine has.
    Machine,
    /// The system's refusal of one piece.
    System,
}

/// There is no memory for a table to grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory {
    /// What refused.
    pub limit: Limit,
    /// How much that is, in bytes.
    pub most: u64,
    /// What tables have taken, in bytes.
    pub taken: u64,
}

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        write!(f, "no memory: tables take {} MiB, and ", mib(self.taken))?;
        let most = mib(self.most);
        match self.limit {
            Limit::Configured => write!(f, "`memory main-heap-size' is {most} MiB"),
            Limit::ControlGroup => write!(f, "the control group may have {most} MiB"),
            Limit::AddressSpace => write!(f, "the address space may have {most} MiB"),
            Limit::Data => write!(f, "the process's data may have {most} MiB"),
            Limit::Machine => write!(f, "the machine has {most} MiB"),
            Limit::System => write!(f, "the system gives no more"),
        }
    }
}

impl std::error::Error for NoMemory {}

/// What may still be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remaining {
    /// What will refuse first.
    pub limit: Limit,
    /// How much that is in all, in bytes.
    pub most: u64,
    /// How much of it tables may still take, in bytes.
    pub bytes: u64,
}

/// What tables have taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// The configured limit; 0 is none.
static CONFIGURED: AtomicU64 = AtomicU64::new(0);
/// What may be taken before the next look at the system.
static CREDIT: Mutex<u64> = Mutex::new(0);

/// Tables may take no more than this; `None`: whatever the system gives.
pub fn set_limit(bytes: Option<u64>) {
    CONFIGURED.store(bytes.unwrap_or(0), Ordering::Relaxed);
    *credit() = 0;
}

/// What tables have taken, in bytes.
pub fn taken() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// A table is about to grow by so many bytes.
///
/// # Errors
/// That would leave too little for everybody else. Nothing was taken.
pub fn take(bytes: usize) -> Result<(), NoMemory> {
    let bytes = bytes as u64;
    let mut credit = credit();
    if bytes > *credit {
        let Remaining { limit, most, bytes: left } = left();
        if bytes > left {
            return Err(NoMemory { limit, most, taken: taken() });
        }
        *credit = left.min(bytes.max(GRAIN));
    }
    *credit -= bytes;
    TAKEN.fetch_add(bytes, Ordering::Relaxed);
    Ok(())
}

/// A table has given memory back to the system or to the heap.
pub fn give_back(bytes: usize) {
    let before = TAKEN.fetch_sub(bytes as u64, Ordering::Relaxed);
    debug_assert!(before >= bytes as u64, "more given back than taken");
}

/// The refusal of an allocation that the limits would have allowed.
pub fn refused() -> NoMemory {
    NoMemory { limit: Limit::System, most: 0, taken: taken() }
}

fn credit() -> MutexGuard<'static, u64> {
    CREDIT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes of an operation, which may be as long as a table. They are no table: what was configured for those does not
/// limit them, but they ask the system before they grow. They are soon gone, so half of what tables leave to everybody
/// else is theirs: where tables have taken all they may, routes are still withdrawn and added.
#[derive(Debug)]
pub struct Notes<T> {
    items: Vec<T>,
}

impl<T> Default for Notes<T> {
    fn default() -> Self {
        Notes { items: Vec::new() }
    }
}

impl<T> Notes<T> {
    /// Makes room for one, so that the next [`push`](Self::push) allocates nothing.
    ///
    /// # Errors
    /// There is no memory; the list is as it was.
    pub fn reserve(&mut self) -> Result<(), NoMemory> {
        if self.items.len() == self.items.capacity() {
            let more = self.items.len().max(16);
            let bytes = (more * size_of::<T>()) as u64;
            // A few are never worth a look at the system.
            if bytes > GRAIN / 64 {
                let Remaining { limit, most, bytes: left } = left_of_system(Kept::HalfForNotes);
                if bytes > left {
                    return Err(NoMemory { limit, most, taken: taken() });
                }
            }
            self.items.try_reserve_exact(more).map_err(|_| refused())?;
        }
        Ok(())
    }

    /// Adds one, for which room was made.
    pub fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// What was added, in that order.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Those from a place on, which must not be beyond the end, to be changed.
    pub fn items_from(&mut self, from: usize) -> &mut [T] {
        self.items.get_mut(from..).unwrap_or_default()
    }

    /// Forgets those from a place on.
    pub fn truncate(&mut self, to: usize) {
        self.items.truncate(to);
    }

    /// How many were added.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether none was added.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// How much tables may still take. Looks at the system: some tens of microseconds.
pub fn left() -> Remaining {
    let configured = CONFIGURED.load(Ordering::Relaxed);
    // Taken by tables alone, so that nothing has to be left for others.
    let own = (configured > 0).then(|| Remaining {
        limit: Limit::Configured,
        most: configured,
        bytes: configured.saturating_sub(taken()),
    });
    own.into_iter().chain([left_of_system(Kept::All)]).min_by_key(|l| l.bytes).unwrap_or(UNKNOWN_STATIONS)
}

const UNKNOWN_STATIONS: Remaining = Remaining { limit: Limit::System, most: 0, bytes: GRAIN };

/// How much of what is left to everybody else stays untouched.
#[derive(Clone, Copy)]
enum Kept {
    All,
    HalfForNotes,
}

fn left_of_system(kept: Kept) -> Remaining {
    let limits = Source::ALL.iter().filter_map(|read| read());
    limits.map(|source| source.left(kept)).min_by_key(|l| l.bytes).unwrap_or(UNKNOWN_STATIONS)
}

/// One limit of the system, and how much of it is unused.
struct Source {
    limit: Limit,
    most: u64,
    free: u64,
}

impl Source {
    const ALL: [fn() -> Option<Source>; 4] = [machine, address_space, data, control_group];

    fn left(self, kept: Kept) -> Remaining {
        let all = KEPT.max(self.most / KEPT_PART).min(self.most / 4);
        let kept = match kept {
            Kept::All => all,
            Kept::HalfForNotes => all / 2,
        };
        Remaining { limit: self.limit, most: self.most, bytes: self.free.saturating_sub(kept) }
    }
}

fn machine() -> Option<Source> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |key: &str| field(&text, key).map(|n| n << 10);
    Some(Source { limit: Limit::Machine, most: kib("MemTotal:")?, free: kib("MemAvailable:")? })
}

/// The first number behind a word at the beginning of a line.
fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
}

fn address_space() -> Option<Source> {
    limit_of("Max address space", Limit::AddressSpace, "VmSize:")
}

fn data() -> Option<Source> {
    limit_of("Max data size", Limit::Data, "VmData:")
}

fn limit_of(name: &str, limit: Limit, used: &str) -> Option<Source> {
    let most = field(&fs::read_to_string("/proc/self/limits").ok()?, name)?;
    let used = field(&fs::read_to_string("/proc/self/status").ok()?, used)? << 10;
    Some(Source { limit, most, free: most.saturating_sub(used) })
}

/// The tightest limit of the process's control group and of those it is in.
fn control_group() -> Option<Source> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    text.lines()
        .filter_map(group_of_line)
        .flat_map(|(root, group)| limits_up(root, &group))
        .min_by_key(|s| s.free)
}

/// Where a line of `/proc/self/cgroup` says the memory controller is: `0::/a/b` or `4:memory:/a/b`.
fn group_of_line(line: &str) -> Option<(&'static str, PathBuf)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let root = match controllers {
        "" => "/sys/fs/cgroup",
        other if other.split(',').any(|c| c == "memory") => "/sys/fs/cgroup/memory",
        _ => return None,
    };
    Some((root, Path::new(root).join(path.trim_start_matches('/'))))
}

fn limits_up(root: &'static str, group: &Path) -> impl Iterator<Item = Source> + use<> {
    let groups: Vec<PathBuf> =
        group.ancestors().take_while(|g| g.starts_with(root)).map(Path::to_owned).collect();
    groups.into_iter().filter_map(|group| limit_in(&group))
}

/// A control group's limit; its page cache counts as free, because the kernel takes that first.
fn limit_in(group: &Path) -> Option<Source> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let (most, used, cache) = match number("memory.max") {
        Some(most) => (most, number("memory.current")?, "inactive_file "),
        None => (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes")?, "total_inactive_file "),
    };
    let cache = read("memory.stat").and_then(|text| field(&text, cache)).unwrap_or(0);
    // The first version says "no limit" by a number beyond all memory.
    let free = most.saturating_sub(used.saturating_sub(cache));
    (most < 1 << 60).then_some(Source { limit: Limit::ControlGroup, most, free })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read() {
        let machine = machine().unwrap();
        assert!(machine.most >= machine.free && machine.free > 0);
        assert_eq!(field("VmPeak:\t  12 kB\nVmSize:\t 40 kB\n", "VmSize:"), Some(40));
        assert_eq!(
            field("Max address space         unlimited            unlimited  bytes", "Max address space"),
            None
        );
        let limits = "Max data size             1048576   unlimited            bytes";
        assert_eq!(field(limits, "Max data size"), Some(1_048_576));
    }

    #[test]
    fn control_groups_of_both_versions_are_found() {
        let of = |line| group_of_line(line).map(|(_, path)| path.display().to_string());
        assert_eq!(of("0::/user.slice/a"), Some("/sys/fs/cgroup/user.slice/a".into()));
        assert_eq!(of("4:memory:/x"), Some("/sys/fs/cgroup/memory/x".into()));
        assert_eq!((of("3:cpuset:/"), of("nonsense")), (None, None));
    }

    #[test]
    fn a_part_of_each_limit_is_left_to_others() {
        let source = |most: u64, free: u64| Source { limit: Limit::Machine, most, free };
        let left = |most: u64, free: u64| source(most, free).left(Kept::All).bytes;
        assert_eq!(source(256 << 20, 32 << 20).left(Kept::HalfForNotes).bytes, 16 << 20);
        assert_eq!(left(64 << 30, 10 << 30), 8 << 30);
        assert_eq!(left(256 << 20, 40 << 20), 8 << 20);
        assert_eq!(left(40 << 20, 11 << 20), 1 << 20);
        assert_eq!(left(256 << 20, 1 << 20), 0);
    }
}
