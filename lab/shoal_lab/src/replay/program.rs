//! The program of replays as a child process: found, run, watched, and ended with all that it started if it takes too long.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use shoal_lab_dut::{can_run, find as find_in_path};
use shoal_lab_measure::{Revision, nearest, spoken};
use shoal_lab_report::{Bench, ReportError};
use thiserror::Error;

/// The program's name.
pub const PROGRAM: &str = "shoal-lab-graph";
/// What builds it.
pub const BUILD: &str = "make bench";
/// Where that puts it.
pub const BUILT: &str = "target/bench/release/shoal-lab-graph";

/// How often a child that says nothing is looked after.
const LOOK: Duration = Duration::from_millis(50);

/// Why a replay gave no figures.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// Someone wanted it to end.
    #[error("interrupted")]
    Interrupted,
    /// It cannot be started, or waited for.
    #[error("{}: {source}", program.display())]
    Start {
        /// Which.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It ended with an error.
    #[error("{} ended with {status}: {said}", program.display())]
    Failed {
        /// Which.
        program: PathBuf,
        /// `exit status: 1`.
        status: String,
        /// Its last line.
        said: String,
    },
    /// It did not end.
    #[error("{} was not done after {} and was ended; its last line: {said}", program.display(), spoken(*limit))]
    Late {
        /// Which.
        program: PathBuf,
        /// How long it was given.
        limit: Duration,
        /// Its last line.
        said: String,
    },
    /// What it wrote is not what it should be.
    #[error("{}: what it wrote cannot be used: {reason}", program.display())]
    Rubbish {
        /// Which.
        program: PathBuf,
        /// The file and what is wrong with it.
        reason: String,
    },
}

/// Finds the program: where the settings say, in a checkout around this executable or the current folder, beside this
/// executable, in `PATH`.
///
/// # Errors
///
/// If there is none; the text says what builds it.
pub fn find(set: &Path) -> Result<PathBuf, String> {
    if set != Path::new("") {
        return if can_run(set) {
            Ok(set.to_owned())
        } else {
            Err(format!("{} is no program; `{BUILD}' builds {BUILT}", set.display()))
        };
    }
    let own = std::env::current_exe().unwrap_or_default();
    // Before the one beside this: what a workspace's build puts there may be without optimization.
    let around = own.ancestors().map(|folder| folder.join(BUILT));
    let here = [PathBuf::from(BUILT), own.with_file_name(PROGRAM)];
    around
        .chain(here)
        .find(|path| can_run(path))
        .or_else(|| find_in_path(PROGRAM))
        .ok_or_else(|| format!("{PROGRAM} is not built; `{BUILD}' builds it"))
}

/// One call of the program.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// Which.
    pub program: &'a Path,
    /// Whose: the revision that this process was told is not the base's.
    pub build: Revision,
    /// What is replayed, by name.
    pub scenarios: &'a [String],
    /// How long each scenario is measured.
    pub duration: Duration,
    /// Whether instructions are counted, which takes longer than the rest where valgrind does it.
    pub instructions: Instructions,
    /// Its results; what it prints goes beside, as `.txt`.
    pub json: PathBuf,
    /// When it is ended.
    pub limit: Duration,
}

/// Whether instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// If they can be.
    Counted,
    /// They were before.
    LeftOut,
}

impl Call<'_> {
    /// Runs it, and reads what it wrote. `watch` gets each line that it says, or nothing every 50 ms; `false` ends it.
    ///
    /// # Errors
    ///
    /// See [`ReplayError`]. Nothing of it runs any more then.
    pub fn run(&self, watch: &mut dyn FnMut(Option<&str>) -> bool) -> Result<Bench, ReplayError> {
        let fail = |source| ReplayError::Start { program: self.program.into(), source };
        let text = self.json.with_extension("txt");
        if let Some(folder) = self.json.parent() {
            fs::create_dir_all(folder).map_err(fail)?;
        }
        let mut command = Command::new(self.program);
        command.arg("--json").arg(&self.json).arg("--seconds").arg(self.duration.as_secs_f64().to_string());
        for scenario in self.scenarios {
            command.args(["--scenario", scenario]);
        }
        if self.instructions == Instructions::LeftOut {
            command.arg("--no-instructions");
        }
        if self.build == Revision::Base {
            command.env_remove("SHOAL_REVISION");
        }
        // A group of its own: valgrind, which it starts, ends with it.
        command
            .stdin(Stdio::null())
            .stdout(File::create(&text).map_err(fail)?)
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn().map_err(fail)?;
        let lines = child.stderr.take().map(lines_of);
        let ended = self.wait(&mut child, lines, watch);
        if ended.is_err() {
            // Whatever is left of it: of a child that has ended, nothing.
            let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
            let _ = child.wait();
        }
        ended?;
        self.read()
    }

    fn wait(
        &self,
        child: &mut Child,
        mut lines: Option<Receiver<String>>,
        watch: &mut dyn FnMut(Option<&str>) -> bool,
    ) -> Result<(), ReplayError> {
        let end = Instant::now() + self.limit;
        let mut said = "nothing said".to_owned();
        loop {
            let next = if let Some(lines) = &lines {
                lines.recv_timeout(LOOK)
            } else {
                std::thread::sleep(LOOK);
                Err(RecvTimeoutError::Timeout)
            };
            let line = match next {
                Ok(line) => Some(line),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    lines = None;
                    None
                }
            };
            if !watch(line.as_deref()) {
                return Err(ReplayError::Interrupted);
            }
            if let Some(line) = line {
                said = line;
                continue;
            }
            let status = child
                .try_wait()
                .map_err(|source| ReplayError::Start { program: self.program.into(), source })?;
            match status {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    let rest = lines.iter().flat_map(Receiver::try_iter).last();
                    let said = rest.unwrap_or(said);
                    return Err(ReplayError::Failed {
                        program: self.program.into(),
                        status: status.to_string(),
                        said,
                    });
                }
                None if Instant::now() >= end => {
                    return Err(ReplayError::Late { program: self.program.into(), limit: self.limit, said });
                }
                None => {}
            }
        }
    }

    /// What it wrote, if it says something of each scenario.
    fn read(&self) -> Result<Bench, ReplayError> {
        let rubbish = |reason: String| ReplayError::Rubbish { program: self.program.into(), reason };
        let bench = Bench::read(&self.json).map_err(|error: ReportError| rubbish(error.to_string()))?;
        for wanted in self.scenarios {
            let file = self.json.display();
            let Some(found) = bench.find(wanted) else {
                let there: Vec<&str> = bench.scenarios.iter().map(|s| s.name.as_str()).collect();
                let reason = match there.as_slice() {
                    [] => format!("{file} says nothing of any scenario"),
                    some => format!(
                        "{file} says nothing of {wanted}; the nearest that it has is {}",
                        nearest(wanted, some.iter().copied())
                    ),
                };
                return Err(rubbish(reason));
            };
            if found.clocks_min <= 0.0 || found.nodes.is_empty() {
                return Err(rubbish(format!(
                    "{file}: {wanted} takes {} clocks in {} nodes; both must be more than 0",
                    found.clocks_min,
                    found.nodes.len()
                )));
            }
        }
        Ok(bench)
    }
}

/// Its lines as they come. The thread ends with the pipe; nothing waits for it, since a grandchild may keep the pipe
/// open.
fn lines_of(pipe: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                break;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        r#"{"scenarios":[{"name":"ip4-1","clocks_min":30.5,"clocks_median":31,"nodes":{"a":30.5}}]}"#;

    /// A stand-in: a shell script in a folder of its own.
    fn stand_in(folder: &Path, script: &str) -> PathBuf {
        let program = folder.join("stand-in");
        // Another process writes it: what this one has open, children of other tests have open for a moment, too, and a
        // program that is open for writing cannot be started.
        let write = r#"printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod 755 "$1""#;
        let status = Command::new("sh").args(["-c", write, "sh"]).arg(&program).arg(script).status();
        assert!(status.unwrap().success());
        program
    }

    fn call(script: &str, limit: Duration) -> (Result<Bench, ReplayError>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let program = stand_in(folder.path(), script);
        let call = Call {
            program: &program,
            build: Revision::Change,
            scenarios: &["ip4-1".to_owned()],
            duration: Duration::from_millis(500),
            instructions: Instructions::LeftOut,
            json: folder.path().join("replay/change-1.json"),
            limit,
        };
        let mut said = Vec::new();
        let found = call.run(&mut |line| {
            said.extend(line.map(ToOwned::to_owned));
            true
        });
        (found, said)
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn it_is_called_as_its_arguments_say_and_its_words_are_seen() {
        let script = format!(r#"echo "$@" >&2; echo printed; printf '%s' '{GOOD}' > "$2""#);
        let (found, said) = call(&script, LONG);
        assert!((found.unwrap().find("ip4-1").unwrap().clocks_min - 30.5).abs() < 1e-9);
        let line = said.first().unwrap();
        assert!(line.contains("--seconds 0.5 --scenario ip4-1 --no-instructions"), "{line}");
    }

    #[test]
    fn one_that_fails_is_named_with_its_last_words() {
        let (found, _) = call("echo first >&2; echo 'bench: packets allocate in ip4-1' >&2; exit 1", LONG);
        let error = found.unwrap_err().to_string();
        assert!(
            error.contains("stand-in ended with exit status: 1: bench: packets allocate in ip4-1"),
            "{error}"
        );
    }

    #[test]
    fn rubbish_is_an_error_with_the_programs_name() {
        for (script, words) in [
            (r#"echo rubbish > "$2""#, "line 1"),
            ("exit 0", "change-1.json"),
            (r#"echo '{"scenarios":[]}' > "$2""#, "nothing of any scenario"),
            (
                r#"echo '{"scenarios":[{"name":"ip4-2","clocks_min":1,"clocks_median":1,"nodes":{"a":1}}]}' > "$2""#,
                "nothing of ip4-1; the nearest that it has is ip4-2",
            ),
            (
                r#"echo '{"scenarios":[{"name":"ip4-1","clocks_min":0,"clocks_median":1,"nodes":{"a":1}}]}' > "$2""#,
                "takes 0 clocks",
            ),
        ] {
            let (found, _) = call(script, LONG);
            let error = found.unwrap_err().to_string();
            assert!(error.contains("stand-in: what it wrote") && error.contains(words), "{script}: {error}");
        }
    }

    #[test]
    fn one_that_hangs_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let script =
            format!("sleep 1000 & echo $! > {0}.part; mv {0}.part {0}; echo begun >&2; wait", pids.display());
        let began = Instant::now();
        let (found, said) = call(&script, Duration::from_secs(2));
        let error = found.unwrap_err().to_string();
        assert!(error.contains("was not done after 2 s and was ended"), "{error}");
        assert!(began.elapsed() < LONG);
        if said.is_empty() {
            return; // So busy a machine that the shell did not come to its first line.
        }
        let child: i32 = fs::read_to_string(pids).unwrap().trim().parse().unwrap();
        let end = Instant::now() + LONG;
        while runs(child) {
            assert!(Instant::now() < end, "{child} still runs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether a process runs; a zombie does not.
    fn runs(pid: i32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    #[test]
    fn an_interruption_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let program = stand_in(folder.path(), "sleep 1000");
        let call = Call {
            program: &program,
            build: Revision::Change,
            scenarios: &[],
            duration: LONG,
            instructions: Instructions::Counted,
            json: folder.path().join("x.json"),
            limit: LONG * 10,
        };
        let began = Instant::now();
        assert!(matches!(call.run(&mut |_| false), Err(ReplayError::Interrupted)));
        assert!(began.elapsed() < LONG);
    }

    #[test]
    fn a_program_that_is_not_there_is_told_with_what_builds_it() {
        let error = find(Path::new("/nowhere/shoal-lab-graph")).unwrap_err();
        assert!(error.contains("/nowhere/shoal-lab-graph") && error.contains("make bench"), "{error}");
    }
}
