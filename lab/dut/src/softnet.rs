//! On which processors the kernel received: `/proc/net/softnet_stat`.
//!
//! Sending into a veth makes the kernel forward on the *sender's* processor, the tester's, unless it is told otherwise. RPS
//! tells it; that it obeyed is counted here (lab.md 3.2).

use std::collections::BTreeMap;
use std::fs;

use crate::settings::list;

/// What one processor has received so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Softnet {
    /// Frames.
    pub processed: u64,
    /// Frames lost because its backlog (`net.core.netdev_max_backlog`) was full.
    pub dropped: u64,
    /// Times it had more to do than its budget.
    pub squeezed: u64,
}

/// All processors that are up.
pub(crate) fn read() -> Option<BTreeMap<usize, Softnet>> {
    parse(&fs::read_to_string("/proc/net/softnet_stat").ok()?)
}

/// Hexadecimal columns: 0 processed, 1 dropped, 2 squeezed, 12 the processor (since Linux 5.10; the line before that).
fn parse(text: &str) -> Option<BTreeMap<usize, Softnet>> {
    let mut all = BTreeMap::new();
    for (line_number, line) in text.lines().enumerate() {
        let columns: Vec<u64> =
            line.split_whitespace().map(|w| u64::from_str_radix(w, 16).ok()).collect::<Option<_>>()?;
        let at = |n: usize| columns.get(n).copied();
        let core = at(12).map_or(line_number, |core| core as usize);
        all.insert(core, Softnet { processed: at(0)?, dropped: at(1)?, squeezed: at(2)? });
    }
    Some(all)
}

/// Sums over some processors.
pub(crate) fn sum(all: &BTreeMap<usize, Softnet>, cores: &[usize]) -> Softnet {
    let mut sum = Softnet::default();
    for one in cores.iter().filter_map(|core| all.get(core)) {
        sum.processed += one.processed;
        sum.dropped += one.dropped;
        sum.squeezed += one.squeezed;
    }
    sum
}

/// A sentence for the record: where the receive events of `frames` forwarded frames ran. Each is received twice, at the
/// device's port and at the tester's.
pub(crate) fn placement(
    before: &BTreeMap<usize, Softnet>,
    after: &BTreeMap<usize, Softnet>,
    device: &[usize],
    tester: &[usize],
    frames: u64,
) -> String {
    let ran = |cores: &[usize]| sum(after, cores).processed.saturating_sub(sum(before, cores).processed);
    let (at_device, at_tester) = (ran(device), ran(tester));
    let shared = device.iter().any(|core| tester.contains(core));
    // One in ten may have been received elsewhere, or be another program's.
    let judged = if shared {
        "device and tester share a processor, so nothing can be told"
    } else if at_device * 10 >= frames * 9 {
        "the device forwards on its own"
    } else {
        "NOT split as wanted: the kernel works for the device on the tester's processor"
    };
    format!(
        "softirq: of {frames} forwarded frames, processor {} (device) received {at_device}, processor {} (tester) {at_tester}: {judged}",
        list(device),
        list(tester)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "0000000a 00000001 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
000021ca 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000000 00000000\n";

    #[test]
    fn columns_are_hexadecimal_and_a_line_names_its_processor() {
        let all = parse(BEFORE).unwrap();
        assert_eq!(all[&0], Softnet { processed: 10, dropped: 1, squeezed: 2 });
        assert_eq!(all[&1].processed, 0x21ca);
        // Processor 1 is down: 3 follows 0.
        let holes = BEFORE.replace("00000001 00000000 00000000\n", "00000003 00000000 00000000\n");
        assert_eq!(parse(&holes).unwrap().keys().copied().collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn a_text_that_is_no_softnet_stat_is_not_read() {
        assert_eq!(parse("zz 1 2"), None);
        assert_eq!(parse("1"), None);
    }

    #[test]
    fn a_device_that_runs_on_the_testers_processor_is_told() {
        let before = parse(BEFORE).unwrap();
        let mut after = before.clone();
        after.get_mut(&1).unwrap().processed += 2000;
        assert!(
            placement(&before, &after, &[0], &[1], 1000)
                .ends_with("NOT split as wanted: the kernel works for the device on the tester's processor")
        );
        after.get_mut(&0).unwrap().processed += 1000;
        assert!(placement(&before, &after, &[0], &[1], 1000).ends_with("the device forwards on its own"));
        assert!(placement(&before, &after, &[0, 1], &[1], 1000).ends_with("nothing can be told"));
    }

    #[test]
    fn this_kernel_is_understood() {
        assert!(read().is_some_and(|all| !all.is_empty()));
    }
}
