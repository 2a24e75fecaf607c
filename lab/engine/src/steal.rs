//! Time that the hypervisor gave to others while this machine wanted to run.

/// Sum over all processors since the machine started, in ticks; none where the kernel does not say.
pub(crate) fn stolen_ticks() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// The eighth number of the first line (proc(5)).
fn parse(stat: &str) -> Option<u64> {
    let mut words = stat.lines().next()?.split_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    words.nth(7)?.parse().ok()
}

/// `ticks` as a share of one processor over `nanoseconds`.
pub(crate) fn share(ticks: u64, nanoseconds: u64) -> f64 {
    let hertz = rustix::param::clock_ticks_per_second().max(1);
    if nanoseconds == 0 { 0.0 } else { ticks as f64 / hertz as f64 * 1e9 / nanoseconds as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_number_is_what_was_stolen() {
        assert_eq!(parse("cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1\n"), Some(80));
        assert_eq!(parse("cpu  10 20 30\n"), None);
        assert_eq!(parse("intr 1 2 3 4 5 6 7 8 9\n"), None);
    }

    #[test]
    fn a_second_stolen_of_ten_is_a_tenth_of_a_processor() {
        let hertz = rustix::param::clock_ticks_per_second();
        assert!((share(hertz, 10_000_000_000) - 0.1).abs() < 1e-12);
        assert!(share(5, 0).abs() < 1e-12);
    }
}
