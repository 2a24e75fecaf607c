//! Real hosts: network namespaces and veth pairs, made with `ip` and taken away when they go out of scope.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};

mod crossing;
mod traffic;

pub use crossing::{Crossing, Inside};
pub use traffic::{pings, pings_meanwhile, pings_with, tcp};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Ends a test that cannot run here, with a line that `make test` counts: `skip!("name_of_the_test: no namespaces: {error}")`.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        $crate::netns::skipped(format_args!($($reason)*));
        return;
    }};
}

/// Prints `SKIP NAME: reason`, as `make test` counts it, where the test harness does not swallow it; the name is part of `reason`.
/// Use [`skip!`](crate::skip).
pub fn skipped(reason: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "SKIP {reason}");
}

/// Whether a test that needs namespaces, and these device files, can run here; if not, says so as a skip does.
pub fn can_run(test: &str, devices: &[&str]) -> bool {
    let missing = devices.iter().find(|d| !Path::new(d).exists());
    if !nix::unistd::geteuid().is_root() {
        skipped(format_args!("{test}: not root"));
    } else if let Err(e) = command(&["ip", "-V"]) {
        skipped(format_args!("{test}: {e}"));
    } else if let Some(device) = missing {
        skipped(format_args!("{test}: no {device}"));
    } else {
        return true;
    }
    false
}

/// Runs lines of shell.
///
/// # Panics
/// One of them fails.
pub fn sh(lines: &str) {
    command(&["sh", "-ec", lines]).unwrap();
}

/// Waits for a condition; true when it came before the deadline.
pub fn wait_for(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Runs a program and returns what it printed, or what it complained about.
///
/// # Errors
/// It cannot be started, or it ended badly.
pub fn command(words: &[&str]) -> Result<String, String> {
    let line = words.join(" ");
    let (program, arguments) = words.split_first().ok_or("nothing to run")?;
    let Output { status, stdout, stderr } =
        Command::new(program).args(arguments).output().map_err(|e| format!("{line}: {e}"))?;
    if status.success() {
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    } else {
        Err(format!("{line}: {status}: {}", String::from_utf8_lossy(&stderr).trim()))
    }
}

/// A network namespace: a host of its own. Deleted when it goes out of scope, with the interfaces in it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace with its loopback up; the name is `shoal-<word>-<process>-<number>`.
    ///
    /// # Errors
    /// The system refused: no privilege, or no `ip`. A test then says [`skip!`](crate::skip).
    pub fn new(word: &str) -> Result<Self, String> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("shoal-{word}-{}-{number}", std::process::id());
        command(&["ip", "netns", "add", &name])?;
        let namespace = Namespace { name };
        namespace.run(&["ip", "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a program inside.
    ///
    /// # Errors
    /// It cannot be started, or it ended badly.
    pub fn run(&self, words: &[&str]) -> Result<String, String> {
        command(&[&["ip", "netns", "exec", &self.name], words].concat())
    }

    /// `ip -n NAMESPACE ...`
    ///
    /// # Panics
    /// `ip` complained.
    pub fn ip(&self, words: &str) {
        sh(&format!("ip -n {} {words}", self.name));
    }

    /// Runs `what` on a thread of its own inside.
    pub fn spawn<T: Send + 'static>(&self, what: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let path = format!("/run/netns/{}", self.name);
        std::thread::spawn(move || {
            setns(File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
            what()
        })
    }

    /// The same, and waits for it.
    ///
    /// # Panics
    /// `what` does.
    pub fn inside<T: Send + 'static>(&self, what: impl FnOnce() -> T + Send + 'static) -> T {
        self.spawn(what).join().unwrap()
    }

    /// A program to be started inside, for those that run on.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Gives one of its interfaces an address and sets it up: `ns.address("eth0", "10.0.0.2/24")`.
    ///
    /// # Errors
    /// `ip` complained.
    pub fn address(&self, interface: &str, prefix: &str) -> Result<(), String> {
        self.run(&["ip", "address", "add", prefix, "dev", interface])?;
        self.run(&["ip", "link", "set", interface, "up"]).map(drop)
    }

    /// Adds a route: `ns.route("default", "10.0.0.1")`.
    ///
    /// # Errors
    /// `ip` complained.
    pub fn route(&self, prefix: &str, via: &str) -> Result<(), String> {
        self.run(&["ip", "route", "add", prefix, "via", via]).map(drop)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(e) = command(&["ip", "netns", "delete", &self.name]) {
            eprintln!("left behind: {e}");
        }
    }
}

/// Two interfaces joined by a cable. Deleted when it goes out of scope.
#[derive(Debug)]
pub struct Veth {
    near: String,
}

impl Veth {
    /// Makes the pair: `near` in this process's namespace, set up, and `far` inside `namespace`.
    ///
    /// # Errors
    /// `ip` complained; nothing is left then.
    pub fn new(near: &str, namespace: &Namespace, far: &str) -> Result<Self, String> {
        command(&[
            "ip",
            "link",
            "add",
            near,
            "type",
            "veth",
            "peer",
            "name",
            far,
            "netns",
            namespace.name(),
        ])?;
        let pair = Veth { near: near.to_owned() };
        command(&["ip", "link", "set", near, "up"])?;
        namespace.run(&["ip", "link", "set", far, "up"])?;
        Ok(pair)
    }

    /// The end in this process's namespace.
    pub fn near(&self) -> &str {
        &self.near
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        // It may be gone already, with its namespace.
        let _ = command(&["ip", "link", "delete", &self.near]);
    }
}
