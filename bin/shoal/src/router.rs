//! The router: put together, run, taken apart.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures_lite::future::or;
use nix::sys::signal::Signal;
use shoal_cli::{Cli, FileRun};
use shoal_graph::process::Processes;
use shoal_graph::{Clock, Graph, GraphConfig};
use shoal_module::cli::WIRE;
use shoal_module::{Control, LoadedPlugins, ModuleList};
use shoal_stats::Stats;

use crate::console::Console;
use crate::files::{PidFile, RuntimeDir};
use crate::logging::{Log, LogHandle};
use crate::settings::{Memory, Settings};
use crate::signals::Signals;
use crate::stop::Stop;
use crate::{background, notify, restore, watch};

/// Why the router did not start, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

/// Says what was tried, for errors that only say why it failed.
fn trying<T, E: Display>(what: impl Display, result: Result<T, E>) -> Result<T, StartError> {
    result.map_err(|error| StartError(format!("{what}: {error}")))
}

/// Removes the sockets of modules, however the router ends.
struct Sockets(Rc<Control>);

impl Drop for Sockets {
    fn drop(&mut self) {
        if let Ok(stats) = self.0.get::<Stats>() {
            stats.close();
        }
        if let Ok(api) = self.0.get::<shoal_api::Server>() {
            api.close();
        }
    }
}

struct Router {
    control: Rc<Control>,
    graph: Rc<Graph>,
    processes: Rc<Processes>,
    cli: Rc<Cli>,
    stop: Rc<Stop>,
    // Dropped last, files before their directory.
    sockets: Sockets,
    _pidfile: Option<PidFile>,
    _runtime_dir: RuntimeDir,
}

/// What is done first, when the router is up.
struct First {
    /// How many workers it was started with.
    workers: usize,
    /// What was saved is run.
    restores: bool,
    /// Then this file of commands.
    exec: Option<PathBuf>,
    /// All of it or nothing.
    strict: bool,
}

/// Starts the router, runs it until it is asked to end, and ends it.
pub fn run(settings: Settings, log: &Arc<Log>) -> Result<(), StartError> {
    let begun = Instant::now();
    for line in &settings.notes {
        tracing::warn!("{line}");
    }
    let (interactive, nap) = (settings.process.interactive, settings.process.poll_sleep);
    let prompt = settings.cli.prompt.clone();
    let first = First {
        workers: settings.workers.len(),
        restores: settings.restores,
        exec: settings.process.exec.clone(),
        strict: settings.process.exec_strict,
    };
    let signals = trying("signals", Signals::new())?;
    let router = Router::start(settings, log, &signals)?;
    let console = Rc::new(Console::default());
    router.watch(signals.clone(), Rc::clone(&console));
    trying("the terminal", background::leave_terminal())?;
    let (cli, control, stop) = (Rc::clone(&router.cli), Rc::clone(&router.control), Rc::clone(&router.stop));
    let processes = Rc::clone(&router.processes);
    // What is typed finds what the files have made.
    router.welcome(first, begun, move || {
        if interactive {
            processes.spawn("unix-console", console.run(cli, control, stop, prompt));
        }
    });
    router.graph.run(&router.processes, || {
        if !nap.is_zero() {
            std::thread::sleep(nap);
        }
        router.stop.is_asked()
    });
    router.end(&signals)
}

impl Router {
    fn start(settings: Settings, log: &Arc<Log>, signals: &Signals) -> Result<Self, StartError> {
        let sockets_of_files = settings.sockets();
        let Settings { process, memory, modules, .. } = settings;
        let dir = &process.runtime_dir;
        let made = RuntimeDir::make(dir, process.gid);
        let runtime_dir = trying(format_args!("runtime directory {}", dir.display()), made)?;
        let pidfile = process.pidfile.as_deref();
        let pidfile = pidfile.map(|p| trying(format_args!("pid file {}", p.display()), PidFile::write(p)));
        let pidfile = pidfile.transpose()?;
        process.pidfile.iter().for_each(|path| signals.remove_at_end(path.clone()));

        let Memory { buffers, stats_bytes, tables } = memory;
        let graph = trying("memory", Graph::new(GraphConfig { buffers, stats_bytes, clock: Clock::real() }))?;
        signals.watch(graph.roster());
        trying("the watch", watch::start(graph.roster()))?;
        tracing::info!("{}", buffers_line(&graph));
        shoal_infra::budget::set_limit(tables);
        let control = Rc::new(Control::new());
        let sockets = Sockets(Rc::clone(&control));
        control.put_rc(Rc::clone(&graph));
        let processes = control.put(Processes::new(graph.clock().clone()));
        control.put(LogHandle(Arc::clone(log)));
        control.put(settings.sections);
        control.put(shoal_module::RuntimeDir(process.runtime_dir));
        control.put(settings.stats);
        control.put(settings.api);
        control.put(settings.configuration);
        control.put(settings.plugins);
        control.put(ModuleList(modules.clone()));
        graph.know_features(crate::modules::all().flat_map(|module| module.features).copied());
        shoal_module::init_all(&control, &modules).map_err(|e| StartError(e.to_string()))?;

        if let Some((policy, priority)) = &process.scheduling {
            // Threads that start from here on inherit it.
            trying(
                format_args!("scheduler-policy {policy}"),
                shoal_infra::scheduling::set(policy, *priority),
            )?;
        }
        for core in settings.workers {
            trying("worker", graph.add_worker(core))?;
        }
        let arg_types = modules.iter().flat_map(|m| m.arg_types).chain(WIRE);
        let loaded = control.get::<LoadedPlugins>().map(|p| p.commands.clone()).unwrap_or_default();
        let cli = Cli::new(modules.iter().flat_map(|m| m.commands).chain(loaded), arg_types);
        let cli = control.put(cli.map_err(|e| StartError(e.to_string()))?);
        shoal_module::start_all(&control, &modules).map_err(|e| StartError(e.to_string()))?;
        let listener = shoal_cli::server::listen(settings.cli).map_err(|e| StartError(e.to_string()))?;
        // After the first socket: its helper thread is there now and does not inherit the main thread's core.
        if let Some(core) = process.main_core {
            pin_main(&graph, core);
        }

        // They are ours from here on: had another router had them, the start would have failed.
        for path in sockets_of_files {
            signals.remove_at_end(path);
        }
        runtime_dir.path().iter().for_each(|path| signals.remove_at_end(path.to_path_buf()));

        let stop = Rc::new(Stop::default());
        let (tasks, until) = (Rc::clone(&processes), Rc::clone(&stop));
        let spawn = move |task| tasks.spawn_unlisted(task);
        let serve = listener.serve(Rc::clone(&cli), Rc::clone(&control), spawn);
        processes.spawn("unix-cli", async move { or(serve, until.asked()).await });
        Ok(Router {
            control,
            graph,
            processes,
            cli,
            stop,
            sockets,
            _pidfile: pidfile,
            _runtime_dir: runtime_dir,
        })
    }

    /// Ends the router when a signal asks for it.
    fn watch(&self, signals: Signals, console: Rc<Console>) {
        let stop = Rc::clone(&self.stop);
        self.processes.spawn("unix-signals", async move {
            loop {
                match signals.next().await {
                    Ok(Signal::SIGHUP) => tracing::info!("SIGHUP: there is nothing to read again"),
                    Ok(Signal::SIGINT) if console.interrupt() => signals.dismiss(),
                    Ok(signal) => {
                        tracing::info!("{signal}: the router ends");
                        return stop.ask();
                    }
                    Err(error) => return tracing::error!("signals are not read any more: {error}"),
                }
            }
        });
    }

    /// Runs what was saved and the file of commands, then tells the service manager that all is up, and calls `done`.
    fn welcome(&self, first: First, begun: Instant, done: impl FnOnce() + 'static) {
        let First { workers, restores, exec: file, strict } = first;
        tracing::info!("up in {} ms with {workers} workers", begun.elapsed().as_millis());
        let saved = if restores { restore::saved(&self.control) } else { None };
        if saved.is_none() && file.is_none() {
            all_ready(&self.control);
            return done();
        }
        let (cli, control) = (Rc::clone(&self.cli), Rc::clone(&self.control));
        self.processes.spawn("startup-config", async move {
            let mut restored = None;
            if let Some(saved) = saved {
                restored = Some(saved.0.text.clone());
                restore::run(&cli, &control, saved).await;
            }
            let mut status = None;
            if let Some(file) = file {
                status =
                    run_file(&cli, &control, &file, FileRun { strict, restored: restored.as_deref() }).await;
            }
            all_ready(&control);
            if let Some(status) = status {
                notify::notify(&format!("STATUS={status}"));
            }
            done();
        });
    }

    fn end(self, signals: &Signals) -> Result<(), StartError> {
        signals.ends();
        notify::notify("STOPPING=1");
        drop(self.sockets);
        // Tasks that wait for the end do what they have to, such as removing their socket.
        self.processes.run_until_idle();
        if let Err(why) = self.graph.stop_workers() {
            tracing::error!("the router ends without a thread: {why}");
            // What that thread uses stays until the process has gone, which is now.
            signals.leave();
        }
        tracing::info!("ended");
        signals.ended();
        Ok(())
    }
}

/// Tells all modules and the service manager that the start is over.
fn all_ready(control: &Rc<Control>) {
    if let Ok(modules) = control.get::<ModuleList>() {
        modules.0.iter().for_each(|module| (module.ready)(control));
    }
    notify::notify("READY=1");
}

/// Runs a file of commands. What is wrong with it is in the log, line by line, and its first line is the answer; the
/// router runs on, so that it can be put right.
async fn run_file(cli: &Cli, control: &Rc<Control>, file: &Path, how: FileRun<'_>) -> Option<String> {
    let reply = cli.run_file(control, &file.display().to_string(), how).await;
    let Some(complaint) = reply.complaint() else {
        reply.text().lines().for_each(|line| tracing::debug!("{line}"));
        return None;
    };
    let text = complaint.to_string();
    text.lines().filter(|l| !l.is_empty()).for_each(|line| tracing::error!("{line}"));
    text.lines().next().map(str::to_owned)
}

fn pin_main(graph: &Graph, core: u32) {
    let mut set = nix::sched::CpuSet::new();
    let pinned = set.set(core as usize);
    let pinned = pinned.and_then(|()| nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set));
    match pinned {
        Ok(()) => {
            graph
                .threads()
                .iter()
                .filter(|t| t.index == 0)
                .for_each(|t| t.cpu.store(core, Ordering::Relaxed));
        }
        Err(error) => tracing::warn!("the main thread is not pinned to core {core}: {error}"),
    }
}

/// How much memory for packets there is, and of what kind.
fn buffers_line(graph: &Graph) -> String {
    use shoal_buffer::Backing;
    let stats = graph.pool().stats();
    let megabytes = (stats.total * stats.size).div_ceil(1 << 20);
    let memory = match stats.backing {
        Backing::Huge2M => "reserved 2 MB pages",
        Backing::Transparent => {
            "ordinary memory the kernel may back with huge pages (no 2 MB pages are reserved)"
        }
        Backing::Small => "4 kB pages",
    };
    let (total, most) = (stats.total, stats.most);
    format!("{total} buffers, {megabytes} MB of {memory}; more as needed, up to {most}")
}
