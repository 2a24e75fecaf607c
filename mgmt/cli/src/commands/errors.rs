//! `show errors`, `clear errors`: what nodes counted.

use std::fmt;

use serde::Serialize;
use shoal_interface::cli::column::{centre, line};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

const DOC: &str = "Counters that are zero are left out. `verbose` heads each thread and adds the counter's index \
                   and the sums; `verbose 2` shows zeros too.";

pub(super) const SHOW: Command =
    Command::new("show errors [verbose [<level:u8>]]", "Show what nodes counted", show)
        .examples(&["show errors", "sh err", "show errors verbose", "show errors verbose 2"])
        .doc(DOC);

pub(super) const SHOW_NODE_COUNTERS: Command =
    Command::new("show node counters [verbose [<level:u8>]]", "Show what nodes counted", show)
        .examples(&["show node counters"])
        .doc(DOC);

pub(super) const CLEAR: Command = Command::new("clear errors", "Set what nodes counted to zero", clear)
    .examples(&["clear errors", "cl err"]);

pub(super) const CLEAR_NODE_COUNTERS: Command =
    Command::new("clear node counters", "Set what nodes counted to zero", clear)
        .examples(&["clear node counters"]);

#[derive(Serialize, Clone)]
struct Row {
    count: u64,
    node: String,
    reason: &'static str,
    severity: String,
    index: usize,
}

#[derive(Serialize)]
struct OneThread {
    thread: usize,
    name: String,
    errors: Vec<Row>,
}

#[derive(Serialize)]
struct Errors {
    threads: Vec<OneThread>,
    total: Vec<Row>,
    #[serde(skip)]
    verbose: bool,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let verbose = args.has("verbose");
    let level = if verbose { args.or("level", 1u8)? } else { 0 };
    let counters = graph.error_counters();
    let rows = |count: &dyn Fn(usize) -> u64| {
        let row = |(index, (node, counter)): (usize, &(String, &'static shoal_graph::ErrorCounter))| Row {
            count: count(index),
            node: node.clone(),
            reason: counter.description,
            severity: counter.severity.to_string(),
            index,
        };
        counters.iter().enumerate().map(row).filter(|r| r.count > 0 || level >= 2).collect::<Vec<_>>()
    };
    let errors = &graph.graph_counters().errors;
    let thread = |t: std::sync::Arc<shoal_graph::thread::ThreadShared>| OneThread {
        thread: t.index,
        errors: rows(&|at| errors.get(t.index, at)),
        name: t.name.clone(),
    };
    let threads = graph.threads().into_iter().map(thread).collect();
    Ok(Output::view(Errors { threads, total: rows(&|at| errors.sum(at)), verbose }))
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let errors = graph.graph_counters().errors.clone();
    graph.on_every_thread(move |worker| errors.clear_thread(worker.thread()))?;
    graph.mark_cleared();
    Ok(Output::none())
}

impl Errors {
    fn rows(&self, f: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
        rows.iter().try_for_each(|row| {
            let index = if self.verbose { format!("{:>6}", row.index) } else { String::new() };
            f.write_str(&line(&[
                format!("{:>10}", row.count),
                centre(&row.node, 35),
                centre(row.reason, 35),
                centre(&row.severity, 10),
                index,
            ]))
        })
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&line(&[
            centre("Count", 10),
            centre("Node", 35),
            centre("Reason", 35),
            centre("Severity", 10),
            if self.verbose { centre("Index", 6) } else { String::new() },
        ]))?;
        for thread in &self.threads {
            if self.verbose {
                writeln!(f, "Thread {} ({}):", thread.thread, thread.name)?;
            }
            self.rows(f, &thread.errors)?;
        }
        if self.verbose {
            writeln!(f, "Total:")?;
            self.rows(f, &self.total)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    fn errors(verbose: bool) -> Errors {
        let row = Row {
            count: 31,
            node: "pg3-tx".into(),
            reason: "gso disabled on itf  -- gso packet drop",
            severity: "error".into(),
            index: 7,
        };
        let thread = OneThread { thread: 0, name: "vpp_main".into(), errors: vec![row.clone()] };
        Errors { threads: vec![thread], total: vec![row], verbose }
    }

    #[test]
    fn the_table_is_the_one_tests_of_vpp_look_for() {
        assert_eq!(
            errors(false).to_string(),
            "   Count                  Node                              Reason               Severity\n        \
             31               pg3-tx              gso disabled on itf  -- gso packet    error\n"
        );
    }

    #[test]
    fn verbose_adds_threads_index_and_sum() {
        let text = errors(true).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "Thread 0 (vpp_main):");
        assert!(lines[2].ends_with("     7"), "{text}");
        assert_eq!(lines[3], "Total:");
    }

    #[test]
    fn errors_are_counted_cleared_and_both_commands_are_one() {
        let router = Router::new();
        router.packets(3);
        let text = router.run("sh err");
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[..2], ["3", "judge"]);
        assert_eq!(text, router.run("show node counters"));
        assert_eq!(router.json("show errors")["total"][0]["reason"], "first byte is odd");
        router.run("clear errors");
        assert_eq!(router.run("show errors").lines().count(), 1);
        assert!(router.run("show errors verbose 2").contains("packets seen"));
    }

    #[test]
    fn a_workers_errors_are_shown_under_it_and_cleared_by_it() {
        let router = Router::new();
        router.run("create worker");
        router.source(7, 1);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while router.graph().error_count("judge", "odd") != Some(7) {
            assert!(std::time::Instant::now() < deadline, "the worker does not work");
            std::thread::yield_now();
        }
        let json = router.json("show errors");
        assert_eq!(json["threads"][0]["errors"].as_array().map(Vec::len), Some(0));
        assert_eq!(json["threads"][1]["name"], "vpp_wk_0");
        assert_eq!(json["threads"][1]["errors"][0]["count"], 7);
        assert!(router.run("show runtime").contains("Thread 1 vpp_wk_0"));
        assert!(router.run("show interface rx-placement").is_empty(), "the queue is no interface's");
        router.run("clear errors");
        assert_eq!(router.graph().error_count("judge", "odd"), Some(0));
        router.graph().stop_workers().unwrap();
    }
}
