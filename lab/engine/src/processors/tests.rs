//! Made-up systems, looked at twice.

use std::fs;
use std::time::Duration;

use shoal_lab_plan::Processors;

use super::look::{Look, Whose};

/// A process or thread: id, name, parent, the processor it is on, ticks, ticks of ended children.
type Process = (u32, &'static str, u32, usize, u64, u64);

/// A system at one moment.
#[derive(Default)]
struct System {
    processes: Vec<Process>,
    /// Of the tester's and the device's threads: id, milliseconds on a processor, milliseconds of waiting.
    accounts: Vec<(u32, u64, u64)>,
    /// Of each processor: ticks idle, in interrupts, stolen.
    processors: Vec<(u64, u64, u64)>,
}

impl System {
    fn look(&self, cores: &[usize]) -> (Look, Whose) {
        let root = tempfile::tempdir().unwrap();
        let write = |path: String, text: String| {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        for (id, name, parent, core, ticks, children) in &self.processes {
            let zeros = "0 ".repeat(16);
            let stat = format!(
                "{id} ({name}) R {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 {children} 0 20 0 1 0 {id} {zeros}{core} 0 0"
            );
            write(format!("{id}/stat"), stat.clone());
            write(format!("{id}/task/{id}/stat"), stat);
            for (_, ran, waited) in self.accounts.iter().filter(|a| a.0 == *id) {
                let account = format!("{} {} 1\n", ran * 1_000_000, waited * 1_000_000);
                write(format!("{id}/schedstat"), account.clone());
                write(format!("{id}/task/{id}/schedstat"), account);
                write(format!("{id}/task/{id}/status"), format!("nonvoluntary_ctxt_switches:\t{waited}\n"));
            }
        }
        let line = |(core, (idle, interrupts, stolen)): (usize, &(u64, u64, u64))| {
            format!("cpu{core} 0 0 0 {idle} 0 0 {interrupts} {stolen} 0 0\n")
        };
        write("stat".into(), self.processors.iter().enumerate().map(line).collect());
        let whose = Whose { root: root.path().to_owned(), process: 10, thread: 10, cores: cores.to_vec() };
        (Look::take(&whose), whose)
    }
}

/// What happened in the two seconds between them.
fn between(before: &System, after: &System) -> Processors {
    let ((then, _), (mut now, whose)) = (before.look(&[0, 1]), after.look(&[0, 1]));
    now.at = then.at + Duration::from_secs(2);
    now.since(&then, &whose)
}

/// The lab (10) on processor 1 and the router that it started (11) on processor 0, both idle; two others.
fn before() -> System {
    System {
        processes: vec![
            (1, "init", 0, 0, 500, 9_000),
            (10, "shoal-lab", 1, 1, 0, 0),
            (11, "shoal", 10, 0, 0, 0),
            (20, "make", 1, 0, 7, 1_000),
            (21, "cc1", 20, 0, 300, 0),
        ],
        accounts: vec![(10, 0, 0), (11, 0, 0)],
        processors: vec![(1_000, 0, 0), (1_000, 0, 0)],
    }
}

#[track_caller]
fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 0.001, "{found} found, {wanted} wanted");
}

#[test]
fn tester_and_device_that_have_their_processors_are_not_disturbed() {
    let mut after = before();
    after.accounts = vec![(10, 2_000, 1), (11, 1_990, 3)];
    let found = between(&before(), &after);
    assert!(found.taken() < 0.001 && found.others.is_empty(), "{found:?}");
    assert_eq!((found.cores.len(), found.preempted), (2, 4));
}

#[test]
fn who_takes_the_devices_processor_is_named() {
    let mut after = before();
    after.processes[4].4 = 450;
    after.accounts = vec![(10, 2_000, 0), (11, 500, 1_500)];
    let found = between(&before(), &after);
    // 1.5 s of 2, less what the ticks leave unknown.
    near(found.taken(), 0.74);
    assert!(
        found.words().contains("others used 74 % of processor 0, for which shoal (11) waited 75 %"),
        "{}",
        found.words()
    );
    assert!(found.words().ends_with("cc1 (21) 75 %"), "{}", found.words());
}

#[test]
fn what_ended_meanwhile_is_in_its_parents_account() {
    let mut after = before();
    // cc1 ended with 350 ticks, of which 50 are new; another began, used 100 and ended.
    after.processes.pop();
    after.processes[3].5 = 1_000 + 350 + 100;
    after.accounts = vec![(10, 2_000, 0), (11, 500, 1_500)];
    let found = between(&before(), &after);
    near(found.taken(), 0.74);
    assert_eq!(found.others.len(), 1, "{found:?}");
    assert_eq!((found.others[0].name.as_str(), found.others[0].pid), ("make", 20));
    near(found.others[0].share, 0.75);
}

#[test]
fn waiting_for_each_other_is_no_disturbance() {
    // Both on processor 0, in turns; the other one is idle.
    let mut after = before();
    after.processes[1].3 = 0;
    after.accounts = vec![(10, 1_000, 1_000), (11, 1_000, 1_000)];
    after.processors = vec![(1_000, 0, 0), (1_200, 0, 0)];
    assert!(between(&before(), &after).taken() < 0.001);
}

#[test]
fn others_that_use_what_is_left_over_are_no_disturbance() {
    let mut after = before();
    after.processes[4].4 = 400;
    after.accounts = vec![(10, 2_000, 0), (11, 1_000, 10)];
    let found = between(&before(), &after);
    near(found.cores[0].others, 0.49);
    near(found.taken(), 0.005);
}

#[test]
fn packets_that_the_kernel_carries_are_not_others() {
    // A kernel that forwards: 1.2 s in interrupts, of which ksoftirqd has 0.9.
    let with = |ticks| {
        let mut system = before();
        system.processes[2] = (11, "ksoftirqd/0", 2, 0, ticks, 0);
        system
    };
    let mut after = with(90);
    after.accounts = vec![(10, 2_000, 0), (11, 900, 300)];
    after.processors = vec![(1_080, 120, 0), (1_000, 0, 0)];
    let found = between(&with(0), &after);
    assert!(found.taken() < 0.001 && found.others.is_empty(), "{found:?}");
}

#[test]
fn processes_of_another_container_are_missed_and_not_overlooked() {
    // The router had a quarter of a processor that was never idle, and nothing else is to be seen.
    let mut after = before();
    after.accounts = vec![(10, 2_000, 0), (11, 500, 1_500)];
    let found = between(&before(), &after);
    near(found.taken(), 0.74);
    assert!(found.words().contains("cannot be seen from here"), "{}", found.words());
}

#[test]
fn a_thread_that_moved_between_processors_is_counted_once() {
    // The tester was on both processors and ended on 1; the router waited for it.
    let mut after = before();
    after.accounts = vec![(10, 2_000, 0), (11, 1_000, 1_000)];
    after.processors = vec![(1_050, 0, 0), (1_050, 0, 0)];
    assert!(between(&before(), &after).taken() < 0.001);
}

#[test]
fn time_that_the_hypervisor_took_is_not_that_of_other_processes() {
    let mut after = before();
    after.accounts = vec![(10, 2_000, 0), (11, 500, 0)];
    after.processors = vec![(1_000, 0, 150), (1_000, 0, 0)];
    assert!(between(&before(), &after).taken() < 0.001);
}

#[test]
fn where_the_kernel_keeps_no_account_of_waiting_what_others_used_counts() {
    let mut after = before();
    (after.processes[1].4, after.processes[2].4, after.processes[4].4) = (200, 50, 450);
    after.accounts = Vec::new();
    let without = System { accounts: Vec::new(), ..before() };
    let found = between(&without, &after);
    near(found.taken(), 0.74);
    assert_eq!(found.cores[0].waited, None);
}

#[test]
fn a_system_that_tells_nothing_is_no_reason_to_fail() {
    let nothing = System::default();
    let found = between(&nothing, &nothing);
    assert_eq!((found.cores.len(), found.taken().to_bits()), (0, 0));
    let (look, whose) = nothing.look(&[0]);
    assert!(!look.knows(&whose));
}

#[test]
fn this_thread_is_known_and_has_run() {
    let whose = Whose::mine(vec![0]);
    let before = Look::take(&whose);
    let end = std::time::Instant::now() + Duration::from_millis(50);
    while std::time::Instant::now() < end {
        std::hint::spin_loop();
    }
    let after = Look::take(&whose);
    assert!(before.knows(&whose));
    let ran = |look: &Look| look.threads.iter().find(|((id, _), _)| *id == whose.thread).map(|(_, t)| t.ran);
    assert!(ran(&after) > ran(&before), "{:?} {:?}", ran(&before), ran(&after));
    assert!(after.since(&before, &whose).window >= Duration::from_millis(50));
}
