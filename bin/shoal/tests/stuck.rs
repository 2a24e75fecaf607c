//! Threads that do not move: the process ends all the same, the log and `show threads` name them, the watchdog starves.
//! A plugin that is built for the test holds a worker in a node, or the main thread in a command.

use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How soon a signal ends the process, whatever its threads do: two seconds, and as much as a busy machine may be late.
/// Where it hangs, it hangs for ever.
const SOON: Duration = Duration::from_secs(2 + 8);

/// Holds the first worker.
const HOLD: &str = "create packet-generator interface pg0\n\
                    set interface state pg0 up\n\
                    packet-generator new { name s limit 1 worker 0 interface pg0 node stall data { hex 0x00 } }\n\
                    packet-generator enable-stream s\n";

struct Router {
    child: Option<Child>,
    folder: tempfile::TempDir,
    /// Where a service manager would listen.
    manager: Option<UnixDatagram>,
}

impl Router {
    /// A router with two workers and the plugin; with a watchdog of so many microseconds.
    fn start(watchdog: Option<u32>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plugins = folder.path().join("plugins");
        std::fs::create_dir(&plugins).unwrap();
        compile(&plugins.join("stall_plugin.so"));
        let settings = format!(
            "unix {{ nodaemon nosyslog runtime-dir {0}/run pidfile shoal.pid log {0}/log }} cpu {{ workers 2 }} \
             plugins {{ path {0}/plugins }} configuration {{ directory {0}/lib }}",
            folder.path().display()
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
        command.arg(settings).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC").env_remove("WATCHDOG_PID");
        command.env("STALL_MARK", folder.path().join("mark"));
        let manager = watchdog.map(|usec| {
            let path = folder.path().join("manager");
            command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", usec.to_string());
            UnixDatagram::bind(&path).unwrap()
        });
        let router = Router { child: Some(command.spawn().unwrap()), folder, manager };
        router.until("it answers", || UnixStream::connect(router.path("run/cli.sock")).is_ok());
        router
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn until(&self, what: &str, done: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_mins(1);
        while !done() {
            assert!(Instant::now() < until, "never: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// What it answers to lines.
    fn say(&self, lines: &str) -> String {
        let mut stream = self.send(lines);
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn send(&self, lines: &str) -> UnixStream {
        let mut stream = UnixStream::connect(self.path("run/cli.sock")).unwrap();
        stream.write_all(format!("{}\nquit\n", lines.trim_end()).as_bytes()).unwrap();
        stream
    }

    /// Holds the first worker in the plugin's node.
    fn hold_worker(&self) {
        let said = self.say(HOLD);
        self.until(&format!("a thread is held after: {said}"), || {
            self.say("show stall").contains("a thread is held")
        });
    }

    /// Holds the main thread in the plugin's command.
    fn hold_main(&self) -> UnixStream {
        let stream = self.send("stall main");
        self.until("the main thread is held", || self.path("mark").exists());
        stream
    }

    /// Sends a signal: the exit code, what stands on standard error, and how long it took.
    fn end(mut self, signal: Signal) -> (Option<i32>, String, Duration, tempfile::TempDir) {
        let mut child = self.child.take().unwrap();
        let begun = Instant::now();
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let code = child.wait().unwrap().code();
        let took = begun.elapsed();
        let other = tempfile::tempdir().unwrap();
        (code, said, took, std::mem::replace(&mut self.folder, other))
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn compile(to: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O1", "-w", "-fPIC", "-shared", "-fvisibility=hidden", "-I"]);
    cc.arg(root.join("../../plugin/include")).arg("-o").arg(to).arg(root.join("tests/stall.c"));
    let output = cc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn left(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    let run = folder.path().join("run");
    run.read_dir().map(|all| all.map(|e| e.unwrap().path()).collect()).unwrap_or_default()
}

#[test]
fn a_signal_ends_the_process_while_a_worker_hangs() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let router = Router::start(None);
        router.hold_worker();
        let (code, said, took, folder) = router.end(signal);
        println!("{signal} with a worker that hangs: {took:?}");
        assert!(took < SOON, "{took:?}");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("thread vpp_wk_0 (LWP"), "{said}");
        assert!(left(&folder).is_empty(), "{:?}", left(&folder));
    }
}

#[test]
fn a_signal_ends_the_process_while_the_main_thread_hangs() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let router = Router::start(None);
        let _stream = router.hold_main();
        let (code, said, took, folder) = router.end(signal);
        println!("{signal} with a main thread that hangs: {took:?}");
        assert!(took < SOON, "{took:?}");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("thread vpp_main (LWP") && said.contains("does not end"), "{said}");
        assert!(left(&folder).is_empty(), "{:?}", left(&folder));
    }
}

#[test]
fn a_stuck_worker_is_named_and_starves_the_watchdog_until_it_moves_again() {
    let router = Router::start(Some(1_000_000));
    let manager = router.manager.as_ref().unwrap();
    manager.set_nonblocking(true).unwrap();
    let fed = || {
        let mut bytes = [0; 64];
        let mut fed = false;
        while let Ok(n) = manager.recv(&mut bytes) {
            fed |= &bytes[..n] == b"WATCHDOG=1";
        }
        fed
    };
    router.until("the watchdog is fed", fed);
    router.hold_worker();
    router.until("the log names it", || router.log().contains("thread vpp_wk_0 (LWP"));
    fed();
    // Three of its meals.
    std::thread::sleep(Duration::from_millis(1500));
    assert!(!fed(), "the watchdog was fed while a worker was stuck");
    let threads = router.say("show threads");
    let line = threads.lines().find(|l| l.contains("vpp_wk_0")).unwrap_or_default();
    assert!(line.contains("stuck for "), "{threads}");
    assert!(!threads.lines().any(|l| l.contains("vpp_wk_1") && l.contains("stuck")), "{threads}");
    assert!(router.say("show threads --json").contains("\"stuck_ms\": "), "{threads}");
    let told =
        |log: &str| log.lines().filter(|l| l.contains("vpp_wk_0 (LWP") && l.contains("is stuck")).count();
    assert_eq!(told(&router.log()), 1, "{}", router.log());
    assert!(router.say("stall release").contains("released"));
    router.until("the log tells that it moves", || router.log().contains("moves again after "));
    router.until("the watchdog is fed again", fed);
    assert!(!router.say("show threads").contains("stuck for"));
    let (code, said, ..) = router.end(Signal::SIGTERM);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn the_configuration_changes_while_a_worker_is_stuck_and_holds_for_it_when_it_moves() {
    let router = Router::start(None);
    router.hold_worker();
    router.until("it is known", || router.log().contains("is stuck"));
    let said = router.say(
        "create loopback interface instance 7\nset interface state loop7 up\n\
         set interface ip address loop7 10.7.0.1/24\n\
         ip route add count 20000 20.0.0.0/24 via 10.7.0.9 loop7\n\
         ip route add 30.0.0.0/8 via 10.7.0.9 loop7\nip route del 30.0.0.0/8 via 10.7.0.9 loop7\n\
         show ip fib 20.0.200.0/24\nshow ip fib 30.0.0.0/8",
    );
    assert!(said.contains("20.0.200.0/24") && said.contains("via 10.7.0.9"), "{said}");
    // The same record again and again: each change is what the next packet of the other worker goes by.
    for n in 0..50 {
        let lines = format!("set ip neighbor loop7 10.7.0.9 02:00:00:00:00:{n:02x}");
        assert!(!router.say(&lines).contains("stuck"), "{n}");
    }
    assert!(router.say("show ip neighbors").contains("02:00:00:00:00:31"));
    // What the thread may be using cannot be taken away; what needs it is refused.
    for refused in ["delete loopback interface intfc loop7", "delete worker 0", "clear runtime"] {
        let said = router.say(refused);
        assert!(said.contains("thread vpp_wk_0 is stuck: it has not moved for "), "{refused}: {said}");
    }
    assert!(router.say("show runtime").contains("vpp_wk_1"), "the others are shown");
    router.say("stall release");
    router.until("it moves", || !router.say("show threads").contains("stuck for"));
    for line in ["delete loopback interface intfc loop7", "delete worker 0", "clear runtime"] {
        let said = router.say(line);
        assert!(!said.contains("stuck"), "{line}: {said}");
    }
    assert!(!router.say("show interface").contains("loop7"));
    let (code, said, ..) = router.end(Signal::SIGTERM);
    assert_eq!(code, Some(0), "{said}");
}
