//! A process of a device: started, watched, ended.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::process::{getpriority_process, setpriority_process};

use crate::cleaner::Undo;
use crate::error::{SetupError, tail};
use crate::line::{Line, told};
use crate::proc_stat;
use crate::program::find;

/// How long a process that is asked to end is waited for, before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// Lines of a dead process's log that its error repeats.
const TAIL: usize = 6;

/// A running process. Dropped, it is ended.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    log: PathBuf,
}

impl Process {
    /// Starts `line`; what it says goes to the file `log`, and with the words of [`say`](Self::say) it is spoken to.
    pub fn start(name: &str, line: &Line, log: &Path) -> Result<Process, SetupError> {
        let file = open_log(log)?;
        let again = file.try_clone().map_err(SetupError::file(log))?;
        let mut command = with_its_parent(line).command();
        command.stdin(Stdio::piped()).stdout(file).stderr(again).process_group(0);
        let mut child = spawn(command).map_err(|why| SetupError::Spawn { command: line.to_string(), why })?;
        let input = child.stdin.take();
        Ok(Process { name: name.to_owned(), child, input, log: log.to_owned() })
    }

    /// For the journal of the cleaner.
    pub fn undo(&self) -> Undo {
        let pid = self.child.id();
        Undo::Process { pid, started: proc_stat::started(pid).unwrap_or(0) }
    }

    /// What it is called in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Writes a line to its standard input.
    pub fn say(&mut self, text: &str) -> Result<(), SetupError> {
        self.alive()?;
        let Some(input) = &mut self.input else { return Ok(()) };
        writeln!(input, "{text}").and_then(|()| input.flush()).map_err(SetupError::file(self.name.as_str()))
    }

    /// An error with the end of its log if it runs no more.
    pub fn alive(&mut self) -> Result<(), SetupError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(SetupError::Ended {
                program: self.name.clone(),
                status: told(status),
                tail: tail(&self.said(), TAIL),
            }),
            Err(why) => Err(SetupError::Spawn { command: self.name.clone(), why }),
        }
    }

    /// Waits until `done` says so; an error if it ends before, or when the time is over.
    pub fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        mut done: impl FnMut() -> bool,
    ) -> Result<(), SetupError> {
        let until = Instant::now() + limit;
        loop {
            self.alive()?;
            if done() {
                return Ok(());
            }
            if Instant::now() > until {
                let last = tail(&self.said(), TAIL);
                return Err(SetupError::NotReady { what: what.to_owned(), seconds: limit.as_secs(), last });
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks it to end by SIGTERM, and kills it if it has not after 5 s. Whether it ended when it was asked.
    pub fn end(&mut self) -> bool {
        self.signal(Signal::SIGTERM);
        if self.gone_within(PATIENCE) {
            return true;
        }
        self.kill();
        false
    }

    /// Whether it ends by itself in this time, for one that was told to in its own words.
    pub fn gone_within(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it with its children.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        // It cannot refuse; without this it would stay a zombie.
        let _ = self.child.wait();
    }

    fn signal(&self, signal: Signal) {
        // It leads its group. That it has ended already is what is wanted.
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

/// A device that is started again writes behind what it wrote before.
fn open_log(path: &Path) -> Result<File, SetupError> {
    OpenOptions::new().create(true).append(true).open(path).map_err(SetupError::file(path))
}

/// The kernel ends it when the lab is killed. `setpriv` of util-linux asks for that and becomes the program; without it
/// the journal has to do.
fn with_its_parent(line: &Line) -> Line {
    if find("setpriv").is_some() {
        Line::words("setpriv --pdeathsig KILL --").then(line.clone())
    } else {
        line.clone()
    }
}

type Job = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a command from a thread that lives as long as this process: to the kernel a child's parent is the *thread* that
/// made it, and with `--pdeathsig` a child would end with a thread of the lab's that only ran one test.
fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    spawn_by(SPAWNER.get_or_init(spawner), command)
}

/// A thread that starts commands.
fn spawner() -> mpsc::Sender<Job> {
    let (give, take) = mpsc::channel::<Job>();
    thread::spawn(move || {
        be_ordinary();
        for (mut command, answer) in take {
            let _ = answer.send(command.spawn());
        }
    });
    give
}

/// Priorities are inherited from thread to thread and by children. The tester goes before others on purpose; a device that
/// did too would go before whatever else its users run, and no user starts it so. Giving way needs no privilege.
fn be_ordinary() {
    if getpriority_process(None).is_ok_and(|priority| priority < 0) {
        let _ = setpriority_process(None, 0);
    }
}

fn spawn_by(spawner: &mpsc::Sender<Job>, command: Command) -> io::Result<Child> {
    let (give, take) = mpsc::channel();
    let lost = || io::Error::other("the thread that starts processes is gone");
    spawner.send((command, give)).map_err(|_| lost())?;
    take.recv().map_err(|_| lost())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(folder: &Path, script: &str) -> Process {
        Process::start("sh", &Line::words("sh -c").arg(script), &folder.join("log")).unwrap()
    }

    #[test]
    fn a_process_that_ends_says_why_it_did() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(folder.path(), "echo no such port >&2; exit 4");
        let error =
            process.wait_until("no answer", Duration::from_secs(30), || false).unwrap_err().to_string();
        assert_eq!(error, "sh ended (code 4): no such port");
    }

    #[test]
    fn what_does_not_come_is_an_error_after_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(folder.path(), "echo still waiting; sleep 600");
        process
            .wait_until("nothing said", Duration::from_secs(30), || {
                !fs::read(folder.path().join("log")).unwrap().is_empty()
            })
            .unwrap();
        let error = process.wait_until("no answer", Duration::ZERO, || false).unwrap_err().to_string();
        assert_eq!(error, "no answer after 0 s: still waiting");
    }

    #[test]
    fn it_is_spoken_to_by_its_standard_input() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(folder.path(), "read word; echo heard $word; read word");
        process.say("this").unwrap();
        let log = folder.path().join("log");
        process
            .wait_until("nothing heard", Duration::from_secs(30), || {
                fs::read_to_string(&log).unwrap() == "heard this\n"
            })
            .unwrap();
    }

    #[test]
    fn a_dropped_process_is_gone_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let process = shell(folder.path(), "sleep 600 & echo $!; wait");
        let log = folder.path().join("log");
        let until = Instant::now() + Duration::from_secs(30);
        let child: u32 = loop {
            if let Some(pid) = fs::read_to_string(&log).unwrap().lines().next().and_then(|l| l.parse().ok()) {
                break pid;
            }
            assert!(Instant::now() < until, "the shell said nothing");
            thread::sleep(Duration::from_millis(5));
        };
        let pid = process.pid();
        assert!(proc_stat::runs(pid) && proc_stat::runs(child));
        drop(process);
        let until = Instant::now() + Duration::from_secs(30);
        while proc_stat::runs(child) {
            assert!(Instant::now() < until, "its child runs on");
            thread::sleep(Duration::from_millis(5));
        }
        assert!(!proc_stat::runs(pid));
    }

    #[test]
    fn what_a_thread_of_high_priority_starts_runs_at_an_ordinary_one() {
        let said = thread::spawn(|| {
            setpriority_process(None, -5).ok()?;
            let mut command = Command::new("nice");
            command.stdout(Stdio::piped());
            let child = spawn_by(&spawner(), command).unwrap();
            Some(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
        });
        match said.join().unwrap() {
            Some(said) => assert_eq!(said.trim(), "0"),
            None => println!(
                "SKIP what_a_thread_of_high_priority_starts_runs_at_an_ordinary_one: priorities cannot be raised here"
            ),
        }
    }

    #[test]
    fn it_outlives_the_thread_that_started_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let mut process =
            thread::spawn(move || shell(&path, "echo up; read word; echo heard $word; sleep 600"))
                .join()
                .unwrap();
        process.say("it").unwrap();
        let log = folder.path().join("log");
        process
            .wait_until("nothing heard", Duration::from_secs(30), || {
                fs::read_to_string(&log).unwrap().ends_with("heard it\n")
            })
            .unwrap();
    }
}
