//! The files of `/proc` that tell of processors and of who had them (proc(5), sched-stats.rst, psi.rst).

/// A line of `/proc/PID/stat` or `/proc/PID/task/TID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) parent: u32,
    /// Ticks that it used itself, as a user and in the kernel.
    pub(super) own: u64,
    /// Ticks of its children that have ended and were waited for, and of theirs.
    pub(super) children: u64,
    /// When it was started, in ticks since boot: ids are used again.
    pub(super) started: u64,
    /// The processor it ran on last.
    pub(super) core: usize,
}

/// Reads it; none if it is none.
pub(super) fn stat(text: &str) -> Option<Stat> {
    // The name is in parentheses and may have blanks and parentheses in it.
    let (id, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first of them is proc(5)'s third.
    let field = |n: usize| -> Option<u64> { fields.get(n - 3)?.parse().ok() };
    Some(Stat {
        id: id.trim().parse().ok()?,
        name: name.to_owned(),
        parent: u32::try_from(field(4)?).ok()?,
        own: field(14)? + field(15)?,
        children: field(16)? + field(17)?,
        started: field(22)?,
        core: usize::try_from(field(39)?).ok()?,
    })
}

/// A line of `schedstat`: nanoseconds on a processor, nanoseconds ready for one without having it. None where the kernel keeps
/// no such account.
pub(super) fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (ran > 0 || waited > 0).then_some((ran, waited))
}

/// How often a thread was taken off its processor, of its `status`.
pub(super) fn preempted(status: &str) -> Option<u64> {
    status.lines().find_map(|l| l.strip_prefix("nonvoluntary_ctxt_switches:"))?.trim().parse().ok()
}

/// Ticks of one processor, of `/proc/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    /// Without work, also while a disk is waited for.
    pub(super) idle: u64,
    /// In interrupts, hard and soft.
    pub(super) interrupts: u64,
    /// Taken by the hypervisor.
    pub(super) stolen: u64,
}

/// All processors.
pub(super) fn processors(stat: &str) -> Vec<(usize, Ticks)> {
    let one = |line: &str| {
        let (name, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
        let core = name.parse().ok()?;
        // user nice system idle iowait irq softirq steal
        let ticks: Vec<u64> = rest.split_whitespace().map_while(|t| t.parse().ok()).collect();
        let at = |n: usize| ticks.get(n).copied();
        Some((core, Ticks { idle: at(3)? + at(4)?, interrupts: at(5)? + at(6)?, stolen: at(7).unwrap_or(0) }))
    };
    stat.lines().filter_map(one).collect()
}

/// Microseconds in which some thread waited for a processor, of `/proc/pressure/cpu`.
pub(super) fn pressure(text: &str) -> Option<u64> {
    let some = text.lines().find(|l| l.starts_with("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_blanks_and_parentheses() {
        let text = "77 (a) b (c) R 5 77 77 0 -1 0 0 0 0 0 150 25 30 4 20 0 3 0 4711 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0";
        let name = "a) b (c".to_owned();
        assert_eq!(
            stat(text),
            Some(Stat { id: 77, name, parent: 5, own: 175, children: 34, started: 4711, core: 3 })
        );
    }

    #[test]
    fn texts_that_are_something_else_are_not_read() {
        for wrong in ["", "77", "77 (x)", "77 (x) R 1", "x (y) R 1 2 3", "\u{0}\u{ff}"] {
            assert_eq!(stat(wrong), None, "{wrong}");
        }
        for wrong in ["", "1", "x y z", "0 0 0"] {
            assert_eq!(schedstat(wrong), None, "{wrong}");
        }
        assert_eq!(processors("cpu 1 2\ncpux 1 2 3 4 5 6 7 8\ncpu0 1 2 3\nintr 5\n"), []);
        assert_eq!((pressure(""), pressure("full total=3"), pressure("some total=x")), (None, None, None));
        assert_eq!((preempted(""), preempted("nonvoluntary_ctxt_switches:\tx")), (None, None));
    }

    #[test]
    fn the_account_of_a_thread_is_read() {
        assert_eq!(schedstat("123 45 6\n"), Some((123, 45)));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t4\n";
        assert_eq!(preempted(status), Some(4));
    }

    #[test]
    fn processors_are_told_one_by_one() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu12 1 1 1 1 1 1 1 1 0 0\nintr 1\n";
        let first = Ticks { idle: 45, interrupts: 13, stolen: 8 };
        let other = Ticks { idle: 2, interrupts: 2, stolen: 1 };
        assert_eq!(processors(stat), [(0, first), (12, other)]);
        let text = "some avg10=1.00 avg60=2.00 avg300=3.00 total=170\nfull avg10=0.00 total=5\n";
        assert_eq!(pressure(text), Some(170));
    }
}
