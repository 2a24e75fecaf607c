//! `shoal`: the router of this project.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use shoal_lab_plan::{Family, Forwarding, Scenario, Side};

use crate::error::SetupError;
use crate::line::Line;
use crate::program::{can_run, find, need};
use crate::routes::{Route, extra};
use crate::settings::Settings;
use crate::shoal_config::{Attach, forget, route, setup, startup};
use crate::user_space::{Adapter, Ground};

/// How long the router may take until its CLI answers.
const STARTED: Duration = Duration::from_secs(20);
/// How long a million routes may take.
const ROUTES: Duration = Duration::from_mins(10);

/// The adapter.
#[derive(Debug)]
pub(crate) struct Shoal;

impl Adapter for Shoal {
    fn name(&self) -> &'static str {
        "shoal"
    }

    fn available(&self, settings: &Settings, _: &Scenario) -> Result<(), String> {
        let (daemon, client) = programs(settings)?;
        if !can_run(&client) {
            let (daemon, client) = (daemon.display(), client.display());
            return Err(format!(
                "{daemon} is there, its client {client} is not: cargo build --release -p shoalctl"
            ));
        }
        need(&[("taskset", "util-linux")])
    }

    fn transports(&self) -> Vec<&'static str> {
        vec!["memif", "af-xdp", "af-packet"]
    }

    fn rewrites(&self, scenario: &Scenario) -> bool {
        matches!(scenario.forwarding, Forwarding::Route | Forwarding::Snat(_))
    }

    fn version(&self, settings: &Settings) -> String {
        version(settings)
    }

    fn launch(&self, ground: &mut Ground) -> Result<(), SetupError> {
        let (daemon, _) = programs(&ground.stand.settings).map_err(|why| SetupError::NotReady {
            what: "no shoal".to_owned(),
            seconds: 0,
            last: why,
        })?;
        let attach = attach(ground);
        let run = ground.stand.path("run");
        let setup = setup(&attach, &ground.scenario);
        let setup = ground.stand.write("setup.cli", &setup)?;
        let cores = &ground.stand.settings.cores;
        let text = startup(&run, &ground.stand.path("lib"), &setup, cores.main, &ground.workers());
        let config = ground.stand.write("startup.conf", &text)?;
        let line = Line::words(ground.inside(&ground.cores()))
            .arg(daemon.to_string_lossy())
            .arg("-c")
            .arg(config.to_string_lossy());
        let mut process = ground.stand.start("shoal", &line)?;
        let show = client(ground, "show version")?;
        process.wait_until("no answer from shoal", STARTED, || show.run().is_ok())?;
        // The commands of the start-up file ran, or the log says which did not.
        process.wait_until("shoal's ports are not there", STARTED, || {
            attach.names.iter().all(|name| {
                client(ground, &format!("show interface {name}"))
                    .and_then(|l| l.run())
                    .is_ok_and(|t| t.contains(" up "))
            })
        })?;
        ground.processes.push(process);
        bulk(ground, &attach)
    }

    fn counters(&self, ground: &mut Ground) -> Result<Vec<(String, u64)>, SetupError> {
        let names = attach(ground).names;
        let read = |words: &str| -> Result<Value, SetupError> {
            let text = client(ground, &format!("--json {words}"))?.run()?;
            serde_json::from_str(&text).map_err(|_| answer(&text))
        };
        let mut all = of_interfaces(&read("show interface")?, &names);
        all.extend(of_errors(&read("show errors")?));
        Ok(all)
    }

    /// Workers come and go while packets flow; new ones are given ports, those of the ones that go move by themselves.
    fn change_workers(&self, ground: &mut Ground, before: usize) -> Option<Result<(), SetupError>> {
        let cores = ground.workers();
        let mut all: Vec<String> =
            cores.iter().skip(before).map(|core| format!("create worker cpu {core}")).collect();
        all.extend((cores.len()..before).rev().map(|worker| format!("delete worker {worker}")));
        for (n, name) in attach(ground).names.iter().enumerate() {
            all.push(format!("set interface rx-placement {name} worker {}", n % cores.len()));
        }
        let told = all.iter().try_for_each(|words| {
            let line = client(ground, words)?;
            ground.stand.run(&line).map(drop)
        });
        Some(told)
    }

    fn flap(&self, ground: &mut Ground) -> Option<Result<(), SetupError>> {
        let [left, _] = attach(ground).names;
        let set = |ground: &mut Ground, state: &str| {
            let line = client(ground, &format!("set interface state {left} {state}"))?;
            ground.stand.run(&line).map(drop)
        };
        Some(set(ground, "down").and_then(|()| set(ground, "up")))
    }

    fn forget(&self, ground: &mut Ground) -> Option<Result<(), SetupError>> {
        let words = forget(&ground.scenario.forwarding)?;
        Some(client(ground, words).and_then(|line| ground.stand.run_often(&line).map(drop)))
    }
}

/// What the daemon says of itself.
pub(crate) fn version(settings: &Settings) -> String {
    let Ok((daemon, _)) = programs(settings) else { return "shoal".to_owned() };
    let said = Line::words("").arg(daemon.to_string_lossy()).arg("--version").run().unwrap_or_default();
    // Who built it and where says nothing of what it is.
    let line = said.lines().next().unwrap_or("shoal");
    line.split(" built by").next().unwrap_or(line).trim().to_owned()
}

/// Daemon and client: where the settings say, beside this executable, in `target/release` of a checkout around it, in
/// `PATH`; the client lies beside the daemon.
pub(crate) fn programs(settings: &Settings) -> Result<(PathBuf, PathBuf), String> {
    let daemon = match &settings.shoal {
        Some(path) if can_run(path) => Some(path.clone()),
        Some(path) => return Err(format!("{} is no program: build it by `make build`", path.display())),
        None => near_this().or_else(|| find("shoal")),
    };
    let daemon =
        daemon.ok_or_else(|| "shoal is not built: cargo build --release -p shoal -p shoalctl".to_owned())?;
    let beside = daemon.with_file_name("shoalctl");
    let client = if can_run(&beside) { beside } else { find("shoalctl").unwrap_or(beside) };
    Ok((daemon, client))
}

fn near_this() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let beside = own.with_file_name("shoal");
    let above = own.ancestors().map(|folder| folder.join("target/release/shoal"));
    std::iter::once(beside).chain(above).find(|path| can_run(path))
}

/// What the ports are attached to.
fn attach(ground: &Ground) -> Attach {
    match ground.transport.as_str() {
        "memif" => Attach::memif(&ground.stand.path("memif.sock")),
        "af-xdp" => Attach::af_xdp(),
        _ => Attach::af_packet(),
    }
}

/// A command of the client's.
fn client(ground: &Ground, words: &str) -> Result<Line, SetupError> {
    let (_, client) = programs(&ground.stand.settings).map_err(|why| answer(&why))?;
    let socket = ground.stand.path("run").join("cli.sock");
    Ok(Line::words("")
        .arg(client.to_string_lossy())
        .arg("-s")
        .arg(socket.to_string_lossy())
        .then(Line::words(words)))
}

/// The extra routes, in one file: each line is checked before the first one runs.
fn bulk(ground: &mut Ground, attach: &Attach) -> Result<(), SetupError> {
    if ground.scenario.routes == 0 {
        return Ok(());
    }
    let name = |side: Side| attach.name(side);
    let all: Vec<Route> =
        extra(&ground.scenario, Family::Ip4).chain(extra(&ground.scenario, Family::Ip6)).collect();
    let text: String = all.iter().map(|r| route(r, name(r.out))).collect();
    let path = ground.stand.write("routes.cli", &text)?;
    let line = client(ground, "exec")?.arg(path.to_string_lossy()).limit(ROUTES);
    let begun = std::time::Instant::now();
    ground.stand.run(&line)?;
    ground.stand.note(format!("{} routes were set in {:.3} s", all.len(), begun.elapsed().as_secs_f64()));
    Ok(())
}

/// Counters of the two ports, by side.
fn of_interfaces(shown: &Value, names: &[String; 2]) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    let empty = Vec::new();
    for (side, name) in ["left", "right"].iter().zip(names) {
        let port = shown
            .as_array()
            .unwrap_or(&empty)
            .iter()
            .find(|i| i.get("name").and_then(Value::as_str) == Some(name.as_str()));
        let counters = port.and_then(|p| p.get("counters")).and_then(Value::as_object);
        for (what, count) in counters.into_iter().flatten() {
            if let Some(count) = count.as_u64() {
                all.push((format!("{side} {what}"), count));
            }
        }
        // Only counters that are not zero are shown; these two are always worth a line.
        for what in ["rx packets", "tx packets"] {
            let line = format!("{side} {what}");
            if all.iter().all(|(name, _)| *name != line) {
                all.push((line, 0));
            }
        }
    }
    all
}

/// What nodes counted: `ip4-input: ip4 ttl <= 1`.
fn of_errors(shown: &Value) -> Vec<(String, u64)> {
    let rows = shown.get("total").and_then(Value::as_array).into_iter().flatten();
    rows.filter_map(|row| {
        let text = |key: &str| row.get(key).and_then(Value::as_str);
        Some((format!("{}: {}", text("node")?, text("reason")?), row.get("count")?.as_u64()?))
    })
    .collect()
}

fn answer(text: &str) -> SetupError {
    SetupError::Answer { program: "shoal".to_owned(), answer: text.chars().take(200).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counters_are_told_by_side_and_what_is_not_shown_is_zero() {
        let shown = json!([
            {"name": "local0", "counters": {"drops": 9}},
            {"name": "memif1/0", "counters": {"rx packets": 5, "drops": 2}},
            {"name": "memif1/1", "counters": {}},
        ]);
        let all = of_interfaces(&shown, &["memif1/0".to_owned(), "memif1/1".to_owned()]);
        for (name, count) in
            [("left rx packets", 5), ("left drops", 2), ("left tx packets", 0), ("right rx packets", 0)]
        {
            assert!(all.contains(&(name.to_owned(), count)), "{name}: {all:?}");
        }
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn errors_are_named_by_node_and_reason() {
        let shown = json!({"total": [{"node": "ip4-input", "reason": "ttl", "count": 3}, {"node": "x"}]});
        assert_eq!(of_errors(&shown), [("ip4-input: ttl".to_owned(), 3)]);
        assert_eq!(of_errors(&json!([])), []);
    }

    #[test]
    fn a_daemon_that_was_named_and_is_not_there_is_a_reason() {
        let settings = Settings { shoal: Some("/no/such/shoal".into()), ..Settings::default() };
        let why = Shoal.available(&settings, &crate::routes::tests::scenario()).unwrap_err();
        assert_eq!(why, "/no/such/shoal is no program: build it by `make build`");
    }
}
