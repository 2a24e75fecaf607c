//! `testpmd-io` and `testpmd-mac`: DPDK's own test program, the upper bound of what a DPDK device can do. It looks at no
//! address; `mac` writes those of its port and of the peer that it was given.

use std::time::{Duration, Instant};

use shoal_lab_plan::{Forwarding, Scenario, Side};

use crate::dpdk;
use crate::error::SetupError;
use crate::line::Line;
use crate::program::need;
use crate::routes::side;
use crate::settings::Settings;
use crate::user_space::{Adapter, Ground};
use crate::wires::{device_mac, mac, name};

/// How long it may take to start.
const STARTED: Duration = Duration::from_secs(20);
/// How long it may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// What it is asked for counters by.
const ASK: &str = "show port stats all";

/// How it forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Testpmd {
    /// Frames as they are.
    Io,
    /// With MACs rewritten.
    Mac,
}

impl Adapter for Testpmd {
    fn name(&self) -> &'static str {
        match self {
            Testpmd::Io => "testpmd-io",
            Testpmd::Mac => "testpmd-mac",
        }
    }

    fn available(&self, _: &Settings, scenario: &Scenario) -> Result<(), String> {
        let able = match self {
            // It takes whatever comes for the other port, so a routing test's frames pass it too.
            Testpmd::Mac => matches!(scenario.forwarding, Forwarding::Route | Forwarding::CrossConnect),
            Testpmd::Io => matches!(scenario.forwarding, Forwarding::CrossConnect | Forwarding::Bridge),
        };
        if !able {
            return Err(format!("{} does no {}", self.name(), scenario.forwarding.name()));
        }
        need(&[("dpdk-testpmd", "dpdk-dev"), ("taskset", "util-linux")])
    }

    fn transports(&self) -> Vec<&'static str> {
        vec!["memif", "af-packet"]
    }

    fn rewrites(&self, _: &Scenario) -> bool {
        *self == Testpmd::Mac
    }

    fn version(&self, _: &Settings) -> String {
        dpdk::version()
    }

    fn launch(&self, ground: &mut Ground) -> Result<(), SetupError> {
        let before = ground.stand.path("testpmd.log");
        let begin = std::fs::metadata(&before).map_or(0, |m| m.len() as usize);
        for undo in dpdk::leftovers(ground.stand.name()) {
            ground.stand.undo(undo)?;
        }
        let line = Line::words(format!("{} {}", ground.inside(&ground.cores()), arguments(*self, ground)));
        let mut process = ground.stand.start("testpmd", &line)?;
        let log = ground.stand.path("testpmd.log");
        process.wait_until("testpmd does not start", STARTED, || {
            std::fs::read_to_string(&log)
                .is_ok_and(|t| t.get(begin..).is_some_and(|t| t.contains("packet forwarding -")))
        })?;
        if ground.wires.is_none() {
            let socket = ground.stand.path("memif.sock");
            process.wait_until("testpmd has no memif socket", STARTED, || socket.exists())?;
        }
        ground.processes.push(process);
        Ok(())
    }

    /// Its own word, after which it closes its ports and removes its files.
    fn farewell(&self, ground: &mut Ground) {
        if let Some(process) = ground.processes.last_mut()
            && process.say("quit").is_ok()
        {
            process.gone_within(ANSWER);
        }
    }

    fn counters(&self, ground: &mut Ground) -> Result<Vec<(String, u64)>, SetupError> {
        let Some(process) = ground.processes.last_mut() else { return Ok(Vec::new()) };
        let before = process.said().len();
        process.say(ASK)?;
        let until = Instant::now() + ANSWER;
        loop {
            let said = process.said();
            let answer = said.get(before..).unwrap_or_default();
            if let Some(counters) = statistics(answer) {
                return Ok(counters);
            }
            process.alive()?;
            if Instant::now() > until {
                return Err(SetupError::NotReady {
                    what: format!("no answer to '{ASK}'"),
                    seconds: ANSWER.as_secs(),
                    last: crate::error::tail(answer, 6),
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn flap(&self, ground: &mut Ground) -> Option<Result<(), SetupError>> {
        // net_memif knows no such thing: it would say "not supported" and nothing would happen.
        ground.flap_wire()
    }
}

/// The program and its arguments.
fn arguments(mode: Testpmd, ground: &Ground) -> String {
    let cores = &ground.stand.settings.cores;
    let workers = ground.workers();
    // Its threads are numbered from 0, which is the main one's, and put on processors behind the @.
    let lcores: Vec<String> = std::iter::once(cores.main)
        .chain(workers.iter().copied())
        .enumerate()
        .map(|(n, core)| format!("{n}@{core}"))
        .collect();
    // To a file it would write in blocks of 4,096 bytes, and an answer would not come until the next few were asked for.
    let mut words = vec![format!(
        "stdbuf -oL dpdk-testpmd {} --lcores {}",
        dpdk::memory(ground.stand.name()),
        lcores.join(",")
    )];
    for at in Side::BOTH {
        let n = at.index();
        words.push(match &ground.wires {
            None => format!(
                "--vdev=net_memif{n},role=server,id={n},socket={},socket-abstract=no,rsize=11,bsize=2048,mac={}",
                ground.stand.path("memif.sock").display(),
                mac(device_mac(at))
            ),
            Some(_) => format!("--vdev=net_af_packet{n},iface={}", name(at)),
        });
    }
    let forward = if mode == Testpmd::Mac { "mac" } else { "io" };
    words.push(format!(
        "-- -i --auto-start --forward-mode={forward} --nb-cores={} --total-num-mbufs=32768 --no-mlockall --disable-link-check",
        workers.len()
    ));
    if mode == Testpmd::Mac {
        for at in Side::BOTH {
            words.push(format!("--eth-peer={},{}", at.index(), mac(side(&ground.scenario, at).tester_mac)));
        }
    }
    words.join(" ")
}

/// Counters out of the answer for both ports; `None`: it is not complete.
fn statistics(text: &str) -> Option<Vec<(String, u64)>> {
    let mut counters = Vec::new();
    for (n, side) in ["left", "right"].iter().enumerate() {
        let (_, block) = text.split_once(&format!("NIC statistics for port {n} "))?;
        // The second line of signs ends it; the first is the rest of the head.
        let (_, block) = block.split_once('\n')?;
        let (block, _) = block.split_once("####")?;
        for (word, what) in [
            ("RX-packets:", "rx packets"),
            ("RX-bytes:", "rx bytes"),
            ("RX-missed:", "rx missed"),
            ("RX-errors:", "rx errors"),
            ("RX-nombuf:", "rx without a buffer"),
            ("TX-packets:", "tx packets"),
            ("TX-bytes:", "tx bytes"),
            ("TX-errors:", "tx errors"),
        ] {
            let (_, rest) = block.split_once(word)?;
            counters.push((format!("{side} {what}"), rest.split_whitespace().next()?.parse().ok()?));
        }
    }
    Some(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: &str = "  RX-packets: 12         RX-missed: 1          RX-bytes:  720
  RX-errors: 0
  RX-nombuf:  3         
  TX-packets: 9          TX-errors: 0          TX-bytes:  540

  Throughput (since last show)
  Rx-pps:            0          Rx-bps:            0
  ############################################################################
";

    #[test]
    fn statistics_are_read_when_both_ports_are_there() {
        let head = |n: u8| {
            format!(
                "\n  ######################## NIC statistics for port {n}  ########################\n{PORT}"
            )
        };
        let text = format!("{}{}", head(0), head(1));
        let counters = statistics(&text).unwrap();
        assert_eq!(counters.len(), 16);
        for (name, count) in
            [("left rx packets", 12), ("left rx without a buffer", 3), ("right tx bytes", 540)]
        {
            assert!(counters.contains(&(name.to_owned(), count)), "{name}");
        }
        assert_eq!(statistics(&head(0)), None);
        let cut = text.rfind("####").unwrap() - 80;
        assert_eq!(statistics(&text[..cut]), None);
    }
}
