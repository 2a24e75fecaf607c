//! The program as its parent process sees it: exit codes, files, sockets. Needs no privileges.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a test's failure, told at once"
)]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A folder for one test, and the program with its runtime directory in it.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.0.path().join("run")
    }

    fn shoal(&self, settings: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
        let dir = self.run_dir();
        command.args(["unix", "{", "nosyslog", "runtime-dir"]).arg(dir).arg("}");
        // What the machine's own router has saved is not for tests.
        command
            .args(["configuration", "{", "directory"])
            .arg(self.0.path().join("lib"))
            .arg("}")
            .arg(settings);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_remove("NOTIFY_SOCKET");
        command
    }

    fn start(&self, settings: &str) -> Child {
        let child = self.shoal(settings).spawn().unwrap();
        self.wait_for("cli.sock");
        child
    }

    fn wait_for(&self, name: &str) {
        let path = self.run_dir().join(name);
        let until = Instant::now() + Duration::from_secs(20);
        while !path.exists() {
            assert!(Instant::now() < until, "{} does not come", path.display());
            std::thread::yield_now();
        }
    }
}

fn end(mut child: Child, signal: Signal) -> (Option<i32>, String) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code(), text)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn is_empty(path: &Path) -> bool {
    !path.exists() || path.read_dir().unwrap().next().is_none()
}

#[test]
fn ends_on_sigterm_and_leaves_nothing() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let place = Place::new();
        let child = place.start("unix { nodaemon pidfile shoal.pid } cpu { workers 1 }");
        place.wait_for("stats.sock");
        let pid = std::fs::read_to_string(place.run_dir().join("shoal.pid")).unwrap();
        assert_eq!(pid.trim(), child.id().to_string());
        let begun = Instant::now();
        let (code, log) = end(child, signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        assert!(!place.run_dir().exists(), "the runtime directory was ours");
    }
}

#[test]
fn a_mistake_in_the_configuration_touches_nothing() {
    let place = Place::new();
    let output = place.shoal("unix { nodaemon } cpu { wrokers 1 }").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("did you mean 'workers'?"), "{}", text(&output));
    assert!(!place.run_dir().exists());
}

#[test]
fn sighup_is_survived() {
    let place = Place::new();
    let child = place.start("unix { nodaemon }");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGHUP).unwrap();
    let (code, log) = end(child, Signal::SIGTERM);
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn a_second_router_is_refused_and_the_first_keeps_its_sockets() {
    let place = Place::new();
    let first = place.start("unix { nodaemon }");
    let second = place.shoal("unix { nodaemon }").output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second).contains("another process serves this socket"), "{}", text(&second));
    assert!(place.run_dir().join("cli.sock").exists() && place.run_dir().join("stats.sock").exists());
    assert_eq!(end(first, Signal::SIGTERM).0, Some(0));
}

#[test]
fn a_failed_start_leaves_nothing() {
    let place = Place::new();
    std::fs::create_dir(place.run_dir()).unwrap();
    let socket = place.0.path().join("file");
    std::fs::write(&socket, "not a socket").unwrap();
    let settings = format!("unix {{ nodaemon pidfile p cli-listen {} }}", socket.display());
    let output = place.shoal(&settings).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("exists and is not a socket"), "{}", text(&output));
    assert!(is_empty(&place.run_dir()), "{:?}", place.run_dir().read_dir().unwrap().collect::<Vec<_>>());
}

#[test]
fn in_the_background_the_command_returns_when_the_router_is_up() {
    let place = Place::new();
    let output = place.shoal("unix { pidfile shoal.pid }").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(place.run_dir().join("cli.sock").exists());
    let pid: i32 =
        std::fs::read_to_string(place.run_dir().join("shoal.pid")).unwrap().trim().parse().unwrap();
    let second = place.shoal("").output().unwrap();
    assert_eq!(second.status.code(), Some(1), "a start that fails is told: {}", text(&second));
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while place.run_dir().exists() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::yield_now();
    }
}

#[test]
fn the_console_runs_lines_and_ends_with_its_input() {
    let place = Place::new();
    let mut child = place.shoal("unix { interactive }").stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"show version\nno such command\nset logging size 7\nshow logging configuration")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("shoal") && said.contains("size 7"), "{said}");
}

#[test]
fn bad_lines_of_the_command_file_are_all_in_the_log() {
    let place = Place::new();
    let file = place.0.path().join("commands with blank");
    std::fs::write(&file, "show version\nnonsense\nset interface state\n").unwrap();
    let settings = format!(
        "unix {{ nodaemon exec \"{}\" log {} }}",
        file.display(),
        place.0.path().join("log").display()
    );
    let child = place.start(&settings);
    let until = Instant::now() + Duration::from_secs(10);
    let log = loop {
        let log = std::fs::read_to_string(place.0.path().join("log")).unwrap_or_default();
        if log.contains("blank:3") || Instant::now() > until {
            break log;
        }
        std::thread::yield_now();
    };
    assert!(log.contains("blank:2") && log.contains("blank:3"), "{log}");
    assert_eq!(end(child, Signal::SIGTERM).0, Some(0), "the router ran on");
}

#[test]
fn a_file_with_a_bad_line_is_run_as_far_as_it_is_right() {
    let place = Place::new();
    let file = place.0.path().join("router.cli");
    std::fs::write(&file, "create loopback interface\nmpls table add 10\nset interface state loop0 up\n")
        .unwrap();
    let settings = format!("unix {{ exec {} }}", file.display());
    let (said, log) = say(&place, &settings, "show interface\n");
    assert!(said.contains("loop0") && said.contains("up"), "{said}");
    assert!(log.contains("1 of 3 lines failed, the others were run"), "{log}");
    assert!(log.contains("router.cli:2: mpls table: VPP has this; Shoal"), "{log}");

    let check = |settings: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
        let output = command.arg("--check-config").arg(settings).output().unwrap();
        (output.status.code(), text(&output))
    };
    let (code, said) = check(&settings);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("router.cli: 1 line is wrong") && said.contains("router.cli:2: "), "{said}");
    let strict = format!("unix {{ exec-strict exec {} }}", file.display());
    let output = place.shoal(&format!("unix {{ nodaemon }} {strict}")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "nothing starts");
    assert!(is_empty(&place.run_dir()) && text(&output).contains("router.cli:2: "), "{}", text(&output));
    std::fs::write(&file, "create loopback interface\n").unwrap();
    assert_eq!(check(&strict).0, Some(0));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(check(&settings).0, Some(1));
}

#[test]
fn what_was_saved_and_the_file_of_commands_make_things_once() {
    let place = Place::new();
    let file = place.0.path().join("router.cli");
    let first = "create loopback interface\nset interface state loop0 up\nset interface ip address loop0 10.0.0.1/24\n";
    std::fs::write(&file, first).unwrap();
    let settings = format!("unix {{ exec {} }}", file.display());
    let (said, _) = say(&place, &settings, "write\n");
    assert!(said.contains("saved as revision 1"), "{said}");
    std::fs::write(&file, format!("{first}create loopback interface\nset interface state loop1 up\n"))
        .unwrap();
    let (said, log) = say(&place, &settings, "show interface address\nshow configuration diff\n");
    assert!(!log.contains("failed"), "{log}");
    assert!(said.contains("loop1 (up)") && !said.contains("loop2"), "{said}");
    assert!(
        said.contains("+create loopback interface") && said.contains("+set interface state loop1 up"),
        "{said}"
    );
}

/// What the router says to lines on its console, and what its log says.
pub(crate) fn say(place: &Place, settings: &str, lines: &str) -> (String, String) {
    let shoal = place.shoal(&format!("unix {{ interactive }} {settings}")).stdin(Stdio::piped()).spawn();
    let mut child = shoal.unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

pub(crate) const LOOPBACK: &str = "create loopback interface instance 7
set interface ip address loop7 10.7.0.1/24
set interface ip address loop7 2001:db8:7::1/64
ip route add 20.0.0.0/8 via 10.7.0.9
set interface state loop7 up
";

/// What a router shows that has been configured so.
const SHOWN: &str = "# interfaces
create loopback interface instance 7
# addresses
set interface ip address loop7 10.7.0.1/24
set interface ip address loop7 2001:db8:7::1/64
# routes
ip route add 20.0.0.0/8 via 10.7.0.9
# state
set interface state loop7 up
";

#[test]
fn what_is_saved_is_there_after_the_next_start() {
    let place = Place::new();
    let (said, _) = say(&place, "", "show configuration revisions\nshow startup-config\n");
    assert!(said.contains("nothing was saved yet"), "{said}");
    assert!(!place.0.path().join("lib").exists(), "only `write' makes the directory");
    let lines = format!("{LOOPBACK}show configuration diff\nwrite\nwrite memory\nshow running-config\n");
    let (said, log) = say(&place, "", &lines);
    assert!(said.contains("+set interface state loop7 up\n"), "{said}{log}");
    let want = format!("saved as revision 1\nnothing has changed since revision 1\n{SHOWN}");
    assert!(said.ends_with(&want), "{said}{log}");
    let lines = "wait 0.5\nshow configuration diff\nshow running-config\nset interface tag loop7 x\nwrite\n\
                 show configuration diff 1\nshow configuration diff 9\nshow configuration revisions\n";
    let (said, log) = say(&place, "", lines);
    assert!(log.contains("5 commands restored"), "{log}");
    let want = format!("waited 0.500 sec.\n{SHOWN}saved as revision 2\n--- revision 1\n+++ running-config\n");
    assert!(said.starts_with(&want), "{said}{log}");
    assert!(said.contains("there is no revision 9"), "{said}");
    let lines = "show running-config\nshow startup-config --json\n";
    let (said, log) = say(&place, "configuration { restore off }", lines);
    assert!(!log.contains("restored") && said.contains("\"part\": \"interfaces\""), "{said}{log}");
}

#[test]
fn what_the_daemon_itself_was_told_is_saved() {
    let place = Place::new();
    let settings = "plugins { plugin ip6_dad_autoremove_plugin.so { enable } } metrics { listen 127.0.0.1:19484 } dslite { ce }";
    let lines = [
        "dslite set b4-tunnel-endpoint-address 2001:db8:1::2",
        "set logging class ip4 level debug",
        "set logging size 1000",
        "set metrics disable",
        "set ip6 dad autoremove disable",
    ];
    let (said, log) = say(&place, settings, &format!("{}\nshow running-config\n", lines.join("\n")));
    for line in lines {
        assert!(said.lines().any(|l| l == line), "`{line}' is not in: {said}{log}");
    }
    let (said, log) = say(&place, "", "set metrics listen 127.0.0.1:19485\nshow running-config\n");
    assert!(said.contains("\nset metrics listen 127.0.0.1:19485\n"), "{said}{log}");
}

#[test]
fn a_damaged_configuration_does_not_stop_the_start() {
    let place = Place::new();
    say(&place, "", &format!("{LOOPBACK}write\n"));
    let file = place.0.path().join("lib/startup.cli");
    let whole = std::fs::read_to_string(&file).unwrap();
    // Cut off in the middle of a route: half of it must not become another one.
    let cut = whole.find("20.0.0.0/8 via").unwrap() + "20.0.0.0/8 via 10.7.0".len();
    std::fs::write(&file, &whole[..cut]).unwrap();
    let (said, log) = say(&place, "", "wait 0.5\nshow running-config\n");
    assert!(log.contains("startup.cli is cut off"), "{log}");
    assert!(said.contains("10.7.0.1/24") && !said.contains("ip route"), "{said}");
    // A line that fails is reported by its number, and the rest runs.
    std::fs::write(&file, whole.replace("via 10.7.0.9", "via nowhere")).unwrap();
    let (said, log) = say(&place, "", "wait 0.5\nshow running-config\nwrite\n");
    assert!(log.contains("startup.cli:8: ") && log.contains("1 of 5 commands failed"), "{log}");
    assert!(
        said.contains("set interface state loop7 up") && said.contains("1 commands of what was saved"),
        "{said}"
    );
    std::fs::write(&file, [0xff, 0xff]).unwrap();
    let (said, log) = say(&place, "", "show version\n");
    assert!(log.contains("not restored") && said.contains("shoal"), "{log}");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let place = Place::new();
    let (said, _) = say(&place, "configuration { directory /dev/null/shoal }", "write\nshow version\n");
    assert!(said.contains("/dev/null/shoal") && said.contains("configuration { directory PATH }"), "{said}");
}

#[test]
fn options_print_and_leave() {
    let run = |option: &str| Command::new(env!("CARGO_BIN_EXE_shoal")).arg(option).output().unwrap();
    assert!(text(&run("--version")).contains(env!("CARGO_PKG_VERSION")));
    assert!(text(&run("--help")).contains("--check-config"));
    assert_eq!(run("--nonsense").status.code(), Some(2));
}

/// A shell in a network of its own, with /sys of it; None where that is not allowed.
fn in_a_network(script: &str) -> Option<Output> {
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-ec", script]);
        command.arg(env!("CARGO_BIN_EXE_shoal")).env_remove("SSH_CONNECTION").stdin(Stdio::null());
        command.output().ok()
    };
    unshare("mount -t sysfs none /sys && ip link").filter(|o| o.status.success())?;
    unshare(&format!("mount -t sysfs none /sys\n{script}"))
}

#[test]
fn the_doctor_tells_of_a_network_and_its_words_are_the_routers() {
    let script = "ip link add eth1 type veth peer name far1; ip link add eth2 type veth peer name far2\n\
                  for i in eth1 far1 eth2 far2; do ip link set $i up; done\n\
                  ip address add 192.0.2.2/24 dev eth1; ip route add default via 192.0.2.1\n\
                  \"$0\" doctor; \"$0\" doctor --json; \"$0\" tune";
    let Some(output) = in_a_network(script) else {
        println!("SKIP the_doctor_tells_of_a_network_and_its_words_are_the_routers: no namespaces here");
        return;
    };
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("carries the default route (IPv4)"), "{said}");
    assert!(
        said.contains("\"share\": \"create interface af_xdp") || said.contains("\"share\": \"create host"),
        "{said}"
    );
    assert!(said.contains("vfio-noiommu"), "{said}");
    let command = "create host-interface name eth2";
    assert!(said.contains(command), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "ip link add eth2 type veth peer name far2; echo '{command}' | \"$0\" unix {{ interactive nosyslog runtime-dir {0}/run }} \
         configuration {{ directory {0}/lib }}",
        dir.path().display()
    );
    let said = text(&in_a_network(&script).unwrap());
    assert!(said.contains("host-eth2"), "{said}");
}

#[test]
fn doctor_and_tune_stand_alone_and_take_nothing_from_the_settings() {
    let shoal = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_shoal")).args(words).output().unwrap();
        (output.status.code(), text(&output))
    };
    let (code, said) = shoal(&["doctor", "--verbose"]);
    assert_eq!(code, Some(2));
    assert_eq!(said, "shoal: unknown word '--verbose'; shoal doctor takes --json and --help\n");
    let (code, said) = shoal(&["tune", "apply", "hugepage"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("did you mean 'hugepages'?"), "{said}");
    // Behind an option it is a setting, and there is none of this name.
    let (code, said) = shoal(&["--check-config", "doctor"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("doctor"), "{said}");
    let (code, said) = shoal(&["--check-config", "unix", "{", "nodaemon", "}"]);
    assert_eq!((code, said.trim()), (Some(0), "the configuration is good"));
}

#[test]
fn a_plugin_that_cannot_be_loaded_keeps_the_router_from_starting_only_if_it_is_named() {
    let place = Place::new();
    let folder = place.0.path().join("plugins");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("x_plugin.so"), "not a library").unwrap();
    let settings = |more: &str| format!("unix {{ nodaemon }} plugins {{ path {} {more} }}", folder.display());
    let line =
        format!("{}: cannot be loaded, expected a shared library", folder.join("x_plugin.so").display());
    let (code, log) = end(place.start(&settings("")), Signal::SIGTERM);
    assert_eq!((code, log.matches(&line).count()), (Some(0), 1), "{log}");
    let (code, log) = end(place.start(&settings("plugin x_plugin.so { disable }")), Signal::SIGTERM);
    assert_eq!((code, log.contains("x_plugin")), (Some(0), false), "{log}");
    let (code, log) = end(place.start(&settings("plugin y_plugin.so { enable }")), Signal::SIGTERM);
    assert_eq!(code, Some(0), "a plugin that is not there: {log}");
    let output = place.shoal(&settings("plugin x_plugin.so { enable }")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains(&line), "{}", text(&output));
    assert!(is_empty(&place.run_dir()));
}
