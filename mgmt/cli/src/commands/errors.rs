//! `show errors`, `clear errors`: what nodes counted.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;
use shoal_graph::Graph;
use shoal_graph::thread::ThreadShared;
use shoal_interface::cli::column::{centre, line, whole};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Listing, Output, Page};

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

/// Whose counts are shown.
#[derive(Clone)]
enum Part {
    Thread(Arc<ThreadShared>),
    /// All threads together: beside them in JSON, in text with `verbose`.
    Total,
}

/// How they are shown.
#[derive(Clone, Copy)]
struct Style {
    verbose: bool,
    zeros: bool,
}

/// What is to be listed still.
struct Errors {
    graph: Rc<Graph>,
    parts: VecDeque<Part>,
    /// The next counter of the first part; none before its heading.
    next: Option<usize>,
    style: Style,
    begun: bool,
}

/// Counters that are looked at without a pause.
const STEPS: usize = 64;

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let verbose = args.has("verbose");
    let level = if verbose { args.or("level", 1u8)? } else { 0 };
    let style = Style { verbose, zeros: level >= 2 };
    let parts = graph.threads().into_iter().map(Part::Thread).chain([Part::Total]).collect();
    Ok(Output::listing(Errors { graph, parts, next: None, style, begun: false }))
}

impl Listing for Errors {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if !std::mem::replace(&mut self.begun, true) {
            page.text(self.style.head());
            page.object();
            page.key("threads");
            page.array();
        }
        let Some(part) = self.parts.front().cloned() else { return ControlFlow::Break(()) };
        let Some(from) = self.next else {
            if matches!(part, Part::Total) && !page.is_json() && !self.style.verbose {
                return ControlFlow::Break(());
            }
            self.style.begin(&part, page);
            self.next = Some(0);
            return ControlFlow::Continue(());
        };
        for at in from..from + STEPS {
            let Some((node, counter)) = self.graph.error_counter(at) else {
                // The array of counters, and of a thread what it is in.
                page.close();
                if matches!(part, Part::Thread(_)) {
                    page.close();
                }
                self.parts.pop_front();
                self.next = None;
                return ControlFlow::Continue(());
            };
            let errors = &self.graph.graph_counters().errors;
            let count = match &part {
                Part::Thread(thread) => errors.get(thread.index, at),
                Part::Total => errors.sum(at),
            };
            if count > 0 || self.style.zeros {
                let severity = counter.severity.to_string();
                let row =
                    Row { count, node: node.to_string(), reason: counter.description, severity, index: at };
                page.text(self.style.row(&row));
                page.value(&row);
            }
        }
        self.next = Some(from + STEPS);
        ControlFlow::Continue(())
    }
}

impl Style {
    fn head(self) -> String {
        line(&[
            centre("Count", 10),
            centre("Node", 35),
            centre("Reason", 35),
            centre("Severity", 10),
            if self.verbose { centre("Index", 6) } else { String::new() },
        ])
    }

    fn begin(self, part: &Part, page: &mut Page) {
        match part {
            Part::Thread(thread) => {
                if self.verbose {
                    page.text(format_args!("Thread {} ({}):\n", thread.index, thread.name));
                }
                page.object();
                page.key("thread");
                page.value(&thread.index);
                page.key("name");
                page.value(&thread.name);
                page.key("errors");
            }
            Part::Total => {
                page.text("Total:\n");
                // The array of threads.
                page.close();
                page.key("total");
            }
        }
        page.array();
    }

    fn row(self, row: &Row) -> String {
        // Cut where VPP cuts, for those who look for its lines; whole for those who want to know more.
        let text = |text: &str, width| if self.verbose { whole(text, width) } else { centre(text, width) };
        let index = if self.verbose { format!("{:>6}", row.index) } else { String::new() };
        line(&[
            format!("{:>10}", row.count),
            text(&row.node, 35),
            text(row.reason, 35),
            centre(&row.severity, 10),
            index,
        ])
    }
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let errors = graph.graph_counters().errors.clone();
    graph.on_every_thread(move |worker| errors.clear_thread(worker.thread()))?;
    graph.mark_cleared();
    Ok(Output::none())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn the_table_is_the_one_tests_of_vpp_look_for() {
        let row = Row {
            count: 31,
            node: "pg3-tx".into(),
            reason: "gso disabled on itf  -- gso packet drop",
            severity: "error".into(),
            index: 7,
        };
        let style = Style { verbose: false, zeros: false };
        assert_eq!(
            style.head() + &style.row(&row),
            "   Count                  Node                              Reason               Severity\n        \
             31               pg3-tx              gso disabled on itf  -- gso packet    error\n"
        );
        let verbose = Style { verbose: true, ..style }.row(&row);
        assert!(verbose.ends_with("     7\n") && verbose.contains("gso packet drop"), "{verbose}");
    }

    #[test]
    fn verbose_adds_threads_and_sum() {
        let router = Router::new();
        router.packets(3);
        let text = router.run("show errors verbose");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[1], lines[lines.len() / 2 + 1]), ("Thread 0 (vpp_main):", "Total:"), "{text}");
        let json = router.json("show errors");
        assert_eq!(json["threads"][0]["errors"], json["total"]);
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
