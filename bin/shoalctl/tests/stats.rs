//! `shoalctl stats` against a published segment.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a failure is a test's failure

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_graph::process::Processes;
use shoal_graph::{Clock, Graph, GraphConfig};
use shoal_module::Control;

/// A router's counters, served by a thread of its own.
struct Server {
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn new(socket: PathBuf, packets: u64) -> Server {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, wait) = std::sync::mpsc::channel();
        let (path, asked) = (socket.clone(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let clock = Clock::manual();
            let graph = Graph::new(GraphConfig { clock: clock.clone(), ..GraphConfig::default() }).unwrap();
            let control = std::rc::Rc::new(Control::new());
            control.put_rc(std::rc::Rc::clone(&graph));
            let processes = control.put(Processes::new(clock));
            control.put(shoal_stats::Settings {
                socket: path,
                gid: None,
                per_node_counters: false,
                update_interval: Duration::from_secs(10),
            });
            graph.build().unwrap();
            let counters = graph.graph_counters();
            counters.rx.ensure(3);
            counters.rx.add(0, 2, packets, packets * 100);
            graph.if_names().set(2, "pg0");
            (shoal_stats::MODULE.start)(&control).unwrap();
            processes.run_until_idle();
            ready.send(()).unwrap();
            while !asked.load(Ordering::Relaxed) {
                processes.run_until_idle();
                std::thread::yield_now();
            }
            control.get::<shoal_stats::Stats>().unwrap().close();
        });
        wait.recv_timeout(Duration::from_secs(30)).unwrap();
        Server { socket, stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn shoalctl(socket: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shoalctl"));
    command.arg("stats").arg("-s").arg(socket).args(words).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn names_are_listed_by_pattern() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path().join("stats.sock"), 7);
    let out = shoalctl(&server.socket, &["ls", "^/if/r.$", "boottime"]);
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(0), "/sys/boottime\n/if/rx\n".into()));
    let all = text(&shoalctl(&server.socket, &["ls"]).stdout);
    assert!(all.starts_with("/sys/heartbeat\n") && all.lines().count() > 30, "{all}");
    let json: Value =
        serde_json::from_slice(&shoalctl(&server.socket, &["ls", "--json", "^/if/rx$"]).stdout).unwrap();
    assert_eq!(json, json!([{"name": "/if/rx", "type": "combined"}]));
}

#[test]
fn values_are_printed_as_text_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path().join("stats.sock"), 7);
    for word in ["get", "dump"] {
        let out = shoalctl(&server.socket, &[word, "-z", "^/if/"]);
        assert_eq!(text(&out.stdout), "[2 @ 0]: 7 packets, 700 bytes /if/rx\n[2]: pg0 /if/names\n");
    }
    let out = shoalctl(&server.socket, &["--json", "get", "-i", "2", "^/if/rx$"]);
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json[0]["value"], json!([{"packets": 7, "bytes": 700}]));
}

#[test]
fn polling_follows_a_router_that_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("stats.sock");
    let first = Server::new(socket.clone(), 7);
    let mut child = Command::new(env!("CARGO_BIN_EXE_shoalctl"))
        .args(["stats", "-s"])
        .arg(&socket)
        .args(["poll", "--interval", "0.05", "-z", "^/if/rx$", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut first = Some(first);
    let (mut seen, mut second) = (Vec::new(), None);
    for line in lines.take(2000) {
        let round: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let packets = round["counters"][0]["value"][0][2]["packets"].as_u64();
        if seen.last() != Some(&packets) {
            seen.push(packets);
        }
        if packets == Some(9) {
            break;
        }
        drop(first.take());
        second.get_or_insert_with(|| Server::new(socket.clone(), 9));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen.last(), Some(&Some(9)), "{seen:?}");
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path().join("stats.sock"), 7);
    for (words, code, said) in [
        (&["get", "/no/such"][..], 1, "no counter's name has `/no/such'"),
        (&["get", "(/if"], 1, "unclosed group"),
        (&["poll", "--interval", "0"], 1, "0.01 to 86400"),
        (&["poll", "--interval", "nan"], 1, "0.01 to 86400"),
        (&["nonsense"], 2, "nonsense"),
    ] {
        let out = shoalctl(&server.socket, words);
        let error = text(&out.stderr);
        assert!(out.status.code() == Some(code) && error.contains(said), "{words:?}: {error}");
    }
    let out = shoalctl(Path::new("/no/such/stats.sock"), &["ls"]);
    assert!(out.status.code() == Some(1) && text(&out.stderr).contains("/no/such/stats.sock"));
}
