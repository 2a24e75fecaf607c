//! Network namespaces that clean up after themselves.
#![allow(dead_code)]

pub mod router;

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};

pub fn sh(command: &str) {
    let status = Command::new("sh").args(["-ec", command]).status().unwrap();
    assert!(status.success(), "{command}");
}

/// Whether tests that need namespaces can run; says why not.
pub fn can_run(test: &str) -> bool {
    let reason = if !nix::unistd::geteuid().is_root() {
        "not root"
    } else if !Command::new("ip").arg("-V").output().is_ok_and(|o| o.status.success()) {
        "no iproute2"
    } else if !std::path::Path::new("/dev/net/tun").exists() {
        "no /dev/net/tun"
    } else {
        return true;
    };
    println!("SKIP: {test}: {reason}");
    false
}

/// A named network namespace, removed with all that is in it.
pub struct Netns(pub String);

impl Netns {
    pub fn new(tag: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let ns = Self(format!("shoal-test-{}-{n}-{tag}", std::process::id()));
        sh(&format!("ip netns add {0}; ip -n {0} link set lo up", ns.0));
        ns
    }

    /// `ip -n NS ...`
    pub fn ip(&self, args: &str) {
        sh(&format!("ip -n {} {args}", self.0));
    }

    /// Runs `f` on a thread of its own inside the namespace.
    pub fn spawn<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let path = format!("/run/netns/{}", self.0);
        std::thread::spawn(move || {
            setns(std::fs::File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
            f()
        })
    }

    pub fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        self.spawn(f).join().unwrap()
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        Command::new("ip").args(["netns", "del", &self.0]).status().ok();
    }
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
