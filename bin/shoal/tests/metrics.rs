//! The counters over HTTP, as Prometheus, dashboards and hostile clients meet them. Needs no privileges.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a test's failure, told at once"
)]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A router that serves its counters, with a loopback whose tag is hard on labels.
struct Router {
    child: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Router {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = free_address();
        let script = folder.path().join("up.cli");
        std::fs::write(
            &script,
            "create loopback interface\nenable ip6 interface loop0\nset interface tag loop0 a\"b\\c\n",
        )
        .unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_shoal"))
            .args(["unix", "{", "nodaemon", "nosyslog", "runtime-dir"])
            .arg(folder.path().join("run"))
            .arg("exec")
            .arg(&script)
            .args(["}", "metrics", "{", "listen"])
            .arg(address.to_string())
            .args(["}", "statseg", "{", "per-node-counters", "on", "}"])
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let router = Router { child, address, folder };
        Router::until(|| router.get("/metrics").contains("description=\"a"));
        router
    }

    fn until(done: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !done() {
            assert!(Instant::now() < until, "it does not come");
            std::thread::yield_now();
        }
    }

    fn connect(&self) -> Option<TcpStream> {
        let stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Some(stream)
    }

    /// Head and body of an answer; nothing if there is none.
    fn ask(&self, request: &[u8]) -> String {
        let Some(mut stream) = self.connect() else { return String::new() };
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).as_bytes())
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = &self.folder;
    }
}

/// A port that was free a moment ago.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The names of samples in an exposition.
fn names(text: &str) -> BTreeSet<&str> {
    let samples = text.lines().filter(|l| !l.starts_with('#') && l.contains(' '));
    samples.map(|l| l.split(['{', ' ']).next().unwrap()).collect()
}

/// Metric names in a text of the query language.
fn mentioned(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|w| w.starts_with("shoal_")).map(str::to_owned).collect()
}

#[test]
fn every_metric_of_the_dashboard_is_there() {
    let router = Router::start();
    let text = router.get("/metrics");
    let there = names(&text);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../share/grafana/shoal.json");
    let dashboard = std::fs::read_to_string(file).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let mut wanted = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            wanted.extend(mentioned(target["expr"].as_str().unwrap()));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        wanted.extend(mentioned(variable["query"]["query"].as_str().unwrap_or("")));
    }
    assert!(wanted.len() > 20, "{wanted:?}");
    let missing: Vec<_> = wanted.iter().filter(|name| !there.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {there:?}");
}

#[test]
fn every_metric_of_the_alert_rules_is_there() {
    let router = Router::start();
    let text = router.get("/metrics");
    let there = names(&text);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../share/prometheus/shoal.rules.yml");
    let rules = std::fs::read_to_string(file).unwrap();
    let expressions = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let wanted: BTreeSet<_> = expressions.flat_map(mentioned).collect();
    assert!(wanted.len() > 5, "{wanted:?}");
    let missing: Vec<_> = wanted.iter().filter(|name| !there.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {there:?}");
}

#[test]
fn the_format_is_that_of_openmetrics() {
    let router = Router::start();
    let text = router.get("/metrics");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/openmetrics-text"), "{head}");
    assert!(body.ends_with("# EOF\n"));
    let info = "shoal_interface_info{interface=\"loop0\",index=\"1\",description=\"a\\\"b\\\\c\"} 1";
    assert!(body.lines().any(|l| l == info), "no line {info}");
    assert!(body.contains("shoal_interface_receive_packets_total{interface=\"loop0\",thread=\"0\"} 0\n"));
    assert!(body.contains("shoal_node_errors_total{node=\"ip4-input\",reason="));
    assert!(body.contains("shoal_node_calls_total{node="));
    // Each family once, and each sample of it behind its type.
    let mut types = BTreeSet::new();
    let mut current = String::new();
    for line in body.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ") {
            current = name.split(' ').next().unwrap().to_owned();
            assert!(types.insert(current.clone()), "{current} twice");
        } else if !line.starts_with('#') {
            assert!(line.starts_with(&current), "{line} is not of {current}");
            let value = line.rsplit(' ').next().unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    let vpp = router.get("/metrics?format=vpp");
    assert!(vpp.contains("text/plain") && vpp.contains("_if_rx_packets{thread=\"0\",interface=\"1\"} 0\n"));
    assert!(vpp.contains("_if_names_info{index=\"1\",name=\"loop0\"} 1\n"));
}

#[test]
fn mistakes_have_an_answer() {
    let router = Router::start();
    for (request, status) in [
        ("GET /metrics?format=xml HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
        ("GET /metrics?%ff&&== HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
        ("GET /other HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", "405"),
        ("nonsense\r\n\r\n", "400"),
        ("GET /metrics HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", "505"),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
        ("GET http://elsewhere/ HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
    ] {
        let answer = router.ask(request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request:?}: {answer:.80}");
    }
    // A head without end: an error, or the connection closes, before much was read.
    let endless = [b"GET / HTTP/1.1\r\n".to_vec(), b"X: y\r\n".repeat(100_000)].concat();
    let answer = router.ask(&endless);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer:.80}");
    assert!(router.get("/metrics").starts_with("HTTP/1.1 200"));
}

#[test]
fn head_has_the_length_and_nothing_behind_it() {
    let router = Router::start();
    let answer = router.ask(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty(), "{answer}");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    assert!(length.parse::<usize>().unwrap() > 1000, "{head}");
}

#[test]
fn a_client_that_sends_byte_by_byte_is_told_that_it_takes_too_long() {
    let router = Router::start();
    let mut stream = router.connect().unwrap();
    // Waiting for an answer is also what sets the pace.
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let begun = Instant::now();
    let mut answer = [0; 16];
    let read = loop {
        let _ = stream.write_all(b"G");
        match stream.read(&mut answer) {
            Ok(read) => break read,
            Err(_) => assert!(begun.elapsed() < Duration::from_secs(25), "no end"),
        }
    };
    assert!(answer[..read].starts_with(b"HTTP/1.1 408"), "{:?}", String::from_utf8_lossy(&answer));
}

#[test]
fn idle_clients_keep_no_client_out_for_long() {
    let router = Router::start();
    let idle: Vec<TcpStream> = (0..64).filter_map(|_| router.connect()).collect();
    let begun = Instant::now();
    // All places are taken; the sitters lose theirs after a few seconds.
    Router::until(|| router.get("/metrics").starts_with("HTTP/1.1 200"));
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    Router::until(|| !router.get("/metrics").contains("shoal_metrics_refused_total 0\n"));
    drop(idle);
}

#[test]
fn a_wrong_address_is_found_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("startup.conf");
    for (listen, code) in [("nonsense", 2), ("127.0.0.1:0", 2), ("[::1]:9482", 0)] {
        std::fs::write(&file, format!("metrics {{ listen {listen} }}\n")).unwrap();
        let checked = Command::new(env!("CARGO_BIN_EXE_shoal"))
            .arg("--check-config")
            .arg("-c")
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert_eq!(checked.status.code(), Some(code), "{listen}: {said}");
        assert!(code == 0 || (said.contains(listen) && said.contains("127.0.0.1:9482")), "{said}");
    }
}
