//! `vpp`: FD.io VPP, where its program is found. It could not be run where this was written: what it is told follows its
//! manuals and the paper.

use std::time::{Duration, Instant};

use shoal_lab_plan::{Family, Forwarding, Scenario};

use crate::error::SetupError;
use crate::line::Line;
use crate::program::need;
use crate::routes::{Route, extra};
use crate::settings::Settings;
use crate::shoal_config::{forget, route};
use crate::user_space::{Adapter, Ground};
use crate::vpp_config::{names, setup, startup};

/// How long it may take until its CLI answers.
const STARTED: Duration = Duration::from_secs(30);
/// How long a million routes may take.
const ROUTES: Duration = Duration::from_mins(10);

/// The adapter.
#[derive(Debug)]
pub(crate) struct Vpp;

impl Adapter for Vpp {
    fn name(&self) -> &'static str {
        "vpp"
    }

    fn available(&self, _: &Settings, _: &Scenario) -> Result<(), String> {
        need(&[("vpp", "vpp (from packagecloud.io/fdio)"), ("vppctl", "vpp (from packagecloud.io/fdio)")])?;
        need(&[("taskset", "util-linux")])?;
        if nix::unistd::geteuid().is_root() {
            Ok(())
        } else {
            Err("vpp has to be started by root".to_owned())
        }
    }

    fn transports(&self) -> Vec<&'static str> {
        vec!["memif", "af-packet"]
    }

    fn rewrites(&self, scenario: &Scenario) -> bool {
        matches!(scenario.forwarding, Forwarding::Route | Forwarding::Snat(_))
    }

    fn version(&self, _: &Settings) -> String {
        let said = Line::words("vpp --version").run().unwrap_or_default();
        said.lines().next().unwrap_or("vpp").trim().to_owned()
    }

    fn launch(&self, ground: &mut Ground) -> Result<(), SetupError> {
        let run = ground.stand.path("run");
        std::fs::create_dir_all(&run).map_err(SetupError::file(&run))?;
        let socket = ground.stand.path("memif.sock");
        let memif = ground.wires.is_none().then_some(socket.as_path());
        let script = ground.stand.write("setup.cli", &setup(memif, &ground.scenario))?;
        let main = ground.stand.settings.cores.main;
        let text = startup(&run, &script, main, &ground.workers());
        let config = ground.stand.write("startup.conf", &text)?;
        let line = Line::words(ground.inside(&ground.cores()))
            .then(Line::words("vpp -c"))
            .arg(config.to_string_lossy());
        let mut process = ground.stand.start("vpp", &line)?;
        let show = client(ground, "show version");
        process.wait_until("no answer from vpp", STARTED, || show.run().is_ok())?;
        process.wait_until("vpp's ports are not there", STARTED, || {
            client(ground, "show interface")
                .run()
                .is_ok_and(|said| names(memif.is_some()).iter().all(|n| said.contains(n)))
        })?;
        ground.processes.push(process);
        bulk(ground)
    }

    fn counters(&self, ground: &mut Ground) -> Result<Vec<(String, u64)>, SetupError> {
        let names = names(ground.wires.is_none());
        Ok(counters(&client(ground, "show interface").run()?, names))
    }

    fn flap(&self, ground: &mut Ground) -> Option<Result<(), SetupError>> {
        let [left, _] = names(ground.wires.is_none());
        let set = |ground: &mut Ground, state: &str| {
            let line = client(ground, &format!("set interface state {left} {state}"));
            ground.stand.run(&line).map(drop)
        };
        Some(set(ground, "down").and_then(|()| set(ground, "up")))
    }

    fn forget(&self, ground: &mut Ground) -> Option<Result<(), SetupError>> {
        let words = forget(&ground.scenario.forwarding)?;
        let line = client(ground, words);
        Some(ground.stand.run_often(&line).map(drop))
    }
}

fn client(ground: &Ground, words: &str) -> Line {
    let socket = ground.stand.path("run").join("cli.sock");
    Line::words("vppctl -s").arg(socket.to_string_lossy()).then(Line::words(words))
}

/// The extra routes by one file.
fn bulk(ground: &mut Ground) -> Result<(), SetupError> {
    if ground.scenario.routes == 0 {
        return Ok(());
    }
    let names = names(ground.wires.is_none());
    let all: Vec<Route> =
        extra(&ground.scenario, Family::Ip4).chain(extra(&ground.scenario, Family::Ip6)).collect();
    let text: String =
        all.iter().map(|r| route(r, names.get(r.out.index()).copied().unwrap_or_default())).collect();
    let path = ground.stand.write("routes.cli", &text)?;
    let line = client(ground, "exec").arg(path.to_string_lossy()).limit(ROUTES);
    let begun = Instant::now();
    ground.stand.run(&line)?;
    ground.stand.note(format!("{} routes were set in {:.3} s", all.len(), begun.elapsed().as_secs_f64()));
    Ok(())
}

/// Out of `show interface`: a line begins with a port's name, and each ends with a counter's name and value.
fn counters(said: &str, names: [&str; 2]) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    let mut port = None;
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(first) = words.first().filter(|_| !line.starts_with(' ')) {
            port = ["left", "right"]
                .into_iter()
                .zip(names)
                .find(|(_, name)| name == first)
                .map(|(side, _)| side);
        }
        let (Some(side), [.., last]) = (port, words.as_slice()) else { continue };
        // Columns are at least two blanks apart; a counter's name has single ones.
        let what = line.trim_end().strip_suffix(last).unwrap_or_default().trim_end().rsplit("  ").next();
        if let (Some(what), Ok(count)) = (what, last.parse()) {
            all.push((format!("{side} {}", what.trim()), count));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_port() {
        let said = "              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count     
local0                            0     down          0/0/0/0       
memif1/0                          1      up          9000/0/0/0     rx packets                    12
                                                                    rx bytes                     720
                                                                    drops                          3
memif1/1                          2      up          9000/0/0/0     tx packets                     9
";
        let all = counters(said, names(true));
        assert_eq!(
            all,
            [("left rx packets", 12), ("left rx bytes", 720), ("left drops", 3), ("right tx packets", 9)]
                .map(|(name, count)| (name.to_owned(), count))
        );
    }

    #[test]
    fn where_it_is_not_installed_the_reason_says_where_it_comes_from() {
        if crate::program::find("vpp").is_some() {
            println!("SKIP where_it_is_not_installed_the_reason_says_where_it_comes_from: it is installed");
            return;
        }
        let why = Vpp.available(&Settings::default(), &crate::routes::tests::scenario()).unwrap_err();
        assert!(why.contains("vpp") && why.contains("fdio"), "{why}");
    }
}
