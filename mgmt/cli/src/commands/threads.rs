//! `show threads`, `create worker`, `delete worker`.

use std::fmt;
use std::path::Path;
use std::sync::atomic::Ordering;

use serde::Serialize;
use shoal_graph::Graph;
use shoal_graph::thread::ThreadShared;
use shoal_interface::cli::column::{left, line};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::made_workers::MadeWorkers;

pub(super) const SHOW: Command = Command::new("show threads", "Show threads and where they run", show)
    .examples(&["show threads", "sh thread"])
    .doc("A thread that has not finished a round of its loop for a second stands there as stuck.");

pub(super) const CREATE: Command = Command::new(
    "create worker [cpu <cpu:u32>]",
    "Start a worker thread, on a processor of its own or anywhere; tells its name",
    create,
)
.examples(&["create worker", "create worker cpu 0"])
.doc("Queues stay where they are: move them with `set interface rx-placement`.");

pub(super) const DELETE: Command =
    Command::new("delete worker <worker:word>", "End a worker thread; its queues move to the others", delete);

#[derive(Clone, Serialize)]
pub(crate) struct Thread {
    pub(crate) id: usize,
    pub(crate) name: String,
    pub(crate) r#type: &'static str,
    pub(crate) lwp: i32,
    policy: &'static str,
    priority: u32,
    /// The processor it is pinned to, its core and socket.
    pub(crate) lcore: Option<u32>,
    pub(crate) core: Option<u32>,
    pub(crate) socket: Option<u32>,
    /// For how long it has not moved, when that is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    stuck_ms: Option<u64>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Threads(Vec<Thread>);

/// Scheduling policy and real-time priority from `/proc/self/task/LWP/stat`.
fn scheduling(stat: &str) -> Option<(&'static str, u32)> {
    // The name, the second field, may contain anything, even blanks and brackets.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(37);
    let priority = fields.next()?.parse().ok()?;
    let policy = match fields.next()? {
        "0" => "other",
        "1" => "fifo",
        "2" => "rr",
        "3" => "batch",
        "5" => "idle",
        "6" => "deadline",
        _ => "unknown",
    };
    Some((policy, priority))
}

fn topology(cpu: u32, what: &str) -> Option<u32> {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}");
    std::fs::read_to_string(Path::new(&file)).ok()?.trim().parse().ok()
}

impl Thread {
    fn new(shared: &ThreadShared) -> Self {
        let lwp = shared.lwp.load(Ordering::Relaxed);
        let stat = std::fs::read_to_string(format!("/proc/self/task/{lwp}/stat")).unwrap_or_default();
        let (policy, priority) = scheduling(&stat).unwrap_or(("unknown", 0));
        let cpu = shared.cpu.load(Ordering::Relaxed);
        let lcore = (cpu != u32::MAX).then_some(cpu);
        Thread {
            id: shared.index,
            name: shared.name.clone(),
            r#type: if shared.index == 0 { "" } else { "workers" },
            lwp,
            policy,
            priority,
            lcore,
            core: lcore.and_then(|c| topology(c, "core_id")),
            socket: lcore.and_then(|c| topology(c, "physical_package_id")),
            stuck_ms: shared.stuck_for().map(|still| still.as_millis() as u64),
        }
    }
}

/// All threads.
pub(crate) fn all(graph: &Graph) -> Vec<Thread> {
    graph.threads().iter().map(|t| Thread::new(t)).collect()
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Threads(all(&*control.graph()?))))
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let cpu = args.opt::<usize>("cpu")?;
    let most = std::fs::read_dir("/sys/devices/system/cpu").map_or(0, |dir| {
        let number =
            |e: std::fs::DirEntry| e.file_name().to_str()?.strip_prefix("cpu")?.parse::<usize>().ok();
        dir.flatten().filter_map(number).max().unwrap_or(0)
    });
    if let Some(cpu) = cpu.filter(|c| *c > most) {
        let message = format!("there is no processor {cpu}, the last is {most}");
        return Err(CliError::argument("cpu", message).nearest(Some(most.to_string())));
    }
    let number = graph.add_worker(cpu)?;
    if let (Ok(said), Some(worker)) = (control.get::<MadeWorkers>(), number.checked_sub(1)) {
        said.made(worker, cpu);
    }
    let threads = graph.threads();
    let name = threads.iter().find(|t| t.index == number).map(|t| t.name.clone());
    Ok(Output::text(format!("{}\n", name.unwrap_or_default())))
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    // By its number, or by the name that `create worker` printed.
    let given: String = args.get("worker")?;
    let number = given.strip_prefix("vpp_wk_").unwrap_or(&given);
    let worker: usize = number.parse().map_err(|_| {
        CliError::argument(
            "worker",
            format!("`{given}' is no worker: give a number, or a name such as vpp_wk_0"),
        )
    })?;
    let workers: Vec<usize> = graph.threads().iter().filter_map(|t| t.index.checked_sub(1)).collect();
    if !workers.contains(&worker) {
        let there: Vec<String> = workers.iter().map(ToString::to_string).collect();
        let there = if there.is_empty() { "none".into() } else { there.join(", ") };
        return Err(CliError::argument("worker", format!("no worker {worker}; there are: {there}")));
    }
    graph.remove_worker(worker + 1)?;
    if let Ok(said) = control.get::<MadeWorkers>() {
        said.ended(worker);
    }
    Ok(Output::none())
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = [7, 20, 12, 8, 25, 7, 7, 7, 10];
        let row = |cells: [String; 9]| {
            let last = cells.len() - 1;
            let cell = |(at, (cell, width)): (usize, (&String, usize))| {
                // There is nothing behind the last column that must stay in its place.
                if at == last { cell.clone() } else { left(cell, width) }
            };
            line(&cells.iter().zip(widths).enumerate().map(cell).collect::<Vec<_>>())
        };
        let header =
            ["ID", "Name", "Type", "LWP", "Sched Policy (Priority)", "lcore", "Core", "Socket", "State"];
        f.write_str(&row(header.map(str::to_owned)))?;
        let number = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
        self.0.iter().try_for_each(|t| {
            f.write_str(&row([
                t.id.to_string(),
                t.name.clone(),
                t.r#type.to_owned(),
                t.lwp.to_string(),
                format!("{} ({})", t.policy, t.priority),
                number(t.lcore),
                number(t.core),
                number(t.socket),
                // VPP's column for what the kernel says of the thread, empty there as a rule.
                t.stuck_ms.map(|ms| format!("stuck for {} s", ms / 1000)).unwrap_or_default(),
            ]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn threads_are_laid_out_as_vpps() {
        let main = Thread {
            id: 0,
            name: "vpp_main".into(),
            r#type: "",
            lwp: 1234,
            policy: "other",
            priority: 0,
            lcore: Some(1),
            core: Some(1),
            socket: Some(0),
            stuck_ms: None,
        };
        let worker = Thread { id: 1, stuck_ms: Some(12_345), ..main.clone() };
        assert_eq!(
            Threads(vec![main, worker]).to_string(),
            "ID     Name                Type        LWP     Sched Policy (Priority)  lcore  Core   Socket State\n\
             0      vpp_main                        1234    other (0)                1      1      0\n\
             1      vpp_main                        1234    other (0)                1      1      0      stuck for 12 s\n"
        );
    }

    #[test]
    fn policy_and_priority_are_read_behind_a_strange_name() {
        let mut stat = "12 (a) b (c) S".to_owned();
        stat.push_str(&" 0".repeat(36));
        stat.push_str(" 50 1 0 0");
        assert_eq!(scheduling(&stat), Some(("fifo", 50)));
        assert_eq!(scheduling("nonsense"), None);
    }

    #[test]
    fn workers_come_and_go() {
        let router = Router::new();
        assert_eq!(router.run("create worker"), "vpp_wk_0\n");
        let text = router.run("sh thread");
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("1      vpp_wk_0            workers"), "{text}");
        assert!(router.refused("create worker cpu 99999").contains("there is no processor 99999"));
        assert!(router.refused("delete worker 7").contains("no worker 7; there are: 0"));
        assert!(router.refused("delete worker wk").contains("is no worker"));
        router.run("delete worker vpp_wk_0");
        assert_eq!(router.run("show threads").lines().count(), 2);
        assert!(router.refused("delete worker 0").contains("there are: none"));
    }
}
