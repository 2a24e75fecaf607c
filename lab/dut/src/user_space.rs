//! What devices have in common that are programs: ground to stand on, processes on their processors, wires where they
//! are not attached to by memif, and restarts. What differs is the adapter's.

use std::fs;
use std::time::{Duration, Instant};

use shoal_lab_plan::{Attachment, Described, Device, DeviceError, Port, Ports, Reset, Scenario, Side};

use crate::device_environment::DeviceEnvironment;
use crate::error::SetupError;
use crate::probe::probe;
use crate::proc_stat::process_time;
use crate::process::Process;
use crate::registry::{check_transport, not_started};
use crate::settings::{Settings, list};
use crate::wires::{Kind, Wires, device_mac};

/// A device that is a program.
pub(crate) trait Adapter: Send {
    /// As users write it.
    fn name(&self) -> &'static str;
    /// As [`Device::available`].
    fn available(&self, settings: &Settings, scenario: &Scenario) -> Result<(), String>;
    /// As [`Device::transports`].
    fn transports(&self) -> Vec<&'static str>;
    /// Whether its ports have MACs of their own, as a router's.
    fn rewrites(&self, scenario: &Scenario) -> bool;
    /// Program and version.
    fn version(&self, settings: &Settings) -> String;
    /// Writes what it is configured by and starts its processes; all is done when it returns. It is called again for each
    /// new beginning, maybe with other workers.
    fn launch(&self, ground: &mut Ground) -> Result<(), SetupError>;
    /// Asks it to end in its own words, before it is told by a signal.
    fn farewell(&self, _ground: &mut Ground) {}
    /// Its counters.
    fn counters(&self, ground: &mut Ground) -> Result<Vec<(String, u64)>, SetupError>;
    /// As many workers as the ground's scenario says now, instead of `before`, while it runs; `None`: it has to be restarted.
    fn change_workers(&self, _ground: &mut Ground, _before: usize) -> Option<Result<(), SetupError>> {
        None
    }
    /// The left port down and up; `None`: it cannot do that.
    fn flap(&self, _ground: &mut Ground) -> Option<Result<(), SetupError>> {
        None
    }
    /// What it has learnt as a bridge is forgotten when this returns; `None`: it learns nothing.
    fn forget(&self, _ground: &mut Ground) -> Option<Result<(), SetupError>> {
        None
    }
}

/// What a running adapter has at hand.
#[derive(Debug)]
pub(crate) struct Ground {
    /// Ended before the wires are taken away, the last started first.
    pub processes: Vec<Process>,
    /// What it is to do.
    pub scenario: Scenario,
    /// How the tester attaches.
    pub transport: String,
    /// None with memif.
    pub wires: Option<Wires>,
    /// Folder, record, cleaner.
    pub stand: DeviceEnvironment,
}

impl Ground {
    /// Words before a program: its namespace and the processors that it may use.
    pub fn inside(&self, cores: &[usize]) -> String {
        let pinned = format!("taskset -c {}", list(cores));
        match &self.wires {
            Some(wires) => format!("ip netns exec {} {pinned}", wires.device.name),
            None => pinned,
        }
    }

    /// Processors of all its threads: the workers' and the main one's.
    pub fn cores(&self) -> Vec<usize> {
        let cores = &self.stand.settings.cores;
        let mut all = self.workers();
        if !all.contains(&cores.main) {
            all.push(cores.main);
        }
        all
    }

    /// Processors of its workers.
    pub fn workers(&self) -> Vec<usize> {
        self.stand.settings.cores.workers(self.scenario.workers)
    }

    /// The left wire's end at the device down and up; `None`: there are no wires.
    pub fn flap_wire(&mut self) -> Option<Result<(), SetupError>> {
        let at = self.wires.as_ref()?.device.clone();
        let mut set = |state: &str| self.stand.run(&at.ip(format!("link set left {state}"))).map(drop);
        Some(set("down").and_then(|()| set("up")))
    }

    /// How the tester attaches to its ports.
    fn ports(&self, rewrites: bool) -> Ports {
        if let Some(wires) = &self.wires {
            return wires.ports(&self.transport, rewrites);
        }
        let port = |side: Side| Port {
            attachment: Attachment::Memif { socket: self.stand.path("memif.sock"), id: side.index() as u32 },
            mac: rewrites.then(|| device_mac(side)),
        };
        Ports { left: port(Side::Left), right: port(Side::Right) }
    }
}

/// A program as a device.
#[derive(Debug)]
pub(crate) struct UserSpace<A: Adapter> {
    adapter: A,
    settings: Settings,
    running: Option<Ground>,
    /// CPU time of processes that have ended, in microseconds.
    spent: u64,
    described: Described,
}

impl<A: Adapter> UserSpace<A> {
    pub fn new(adapter: A, settings: Settings) -> Self {
        UserSpace { adapter, settings, running: None, spent: 0, described: Described::default() }
    }

    fn set_up(&self, scenario: &Scenario, transport: &str) -> Result<Ground, SetupError> {
        let mut stand = DeviceEnvironment::begin(&self.settings)?;
        stand.record.version = self.adapter.version(&self.settings);
        let wires = match transport {
            "memif" => None,
            _ => Some(Wires::make(&mut stand, scenario, Kind::Veth)?),
        };
        let mut ground = Ground {
            processes: Vec::new(),
            scenario: scenario.clone(),
            transport: transport.to_owned(),
            wires,
            stand,
        };
        let workers = list(&ground.workers());
        ground.stand.note(format!(
            "workers on processor {workers}, main thread on {}, tester on {}",
            self.settings.cores.main,
            list(&self.settings.cores.tester)
        ));
        self.adapter.launch(&mut ground)?;
        if let Some(wires) = ground.wires.clone() {
            probe(&mut ground.stand, &wires, scenario, self.adapter.rewrites(scenario))?;
        }
        Ok(ground)
    }

    fn died(&self, why: &SetupError) -> DeviceError {
        DeviceError::Died { device: self.adapter.name().to_owned(), reason: why.to_string() }
    }

    fn not_running(&self) -> DeviceError {
        DeviceError::Died { device: self.adapter.name().to_owned(), reason: "it was not started".to_owned() }
    }

    fn cannot(&self, what: &str) -> DeviceError {
        DeviceError::Cannot { device: self.adapter.name().to_owned(), what: what.to_owned() }
    }

    fn again(&mut self, kind: Reset) -> Result<(), SetupError> {
        let Some(ground) = self.running.as_mut() else { return Ok(()) };
        let begun = Instant::now();
        if let Reset::Workers(workers) = kind {
            let before = ground.workers().len();
            ground.scenario.workers = workers;
            if let Some(wires) = &ground.wires {
                wires.place(&mut ground.stand, workers);
            }
            if let Some(done) = self.adapter.change_workers(ground, before) {
                let took = begun.elapsed().as_secs_f64();
                ground.stand.note(format!("{kind:?}: from {before} while it runs, in {took:.3} s"));
                return done;
            }
        }
        self.spent += used(ground);
        if kind == Reset::Crash {
            ground.processes.iter_mut().rev().for_each(Process::kill);
            ground.processes.clear();
        } else {
            self.adapter.farewell(ground);
            end(ground);
        }
        // One that was killed leaves its socket, and DPDK's programs do not start on it again.
        let _ = fs::remove_file(ground.stand.path("memif.sock"));
        let ended = begun.elapsed();
        self.adapter.launch(ground)?;
        let took = begun.elapsed();
        ground.stand.note(format!(
            "{kind:?}: ended after {:.3} s, started and configured after {:.3} s",
            ended.as_secs_f64(),
            took.as_secs_f64()
        ));
        Ok(())
    }
}

impl<A: Adapter> Device for UserSpace<A> {
    fn name(&self) -> &str {
        self.adapter.name()
    }

    fn available(&self, scenario: &Scenario) -> Result<(), String> {
        self.adapter.available(&self.settings, scenario)
    }

    fn transports(&self) -> Vec<&'static str> {
        self.adapter.transports()
    }

    fn start(&mut self, scenario: &Scenario, transport: &str) -> Result<Ports, DeviceError> {
        self.stop();
        self.spent = 0;
        self.available(scenario).map_err(DeviceError::Unavailable)?;
        check_transport(self, transport)?;
        if transport != "memif" {
            crate::device_environment::need_namespaces().map_err(DeviceError::Unavailable)?;
        }
        let ground = self.set_up(scenario, transport).map_err(not_started(self.adapter.name()))?;
        let ports = ground.ports(self.adapter.rewrites(scenario));
        self.running = Some(ground);
        Ok(ports)
    }

    fn counters(&mut self) -> Result<Vec<(String, u64)>, DeviceError> {
        let Some(ground) = self.running.as_mut() else { return Err(self.not_running()) };
        let alive: Result<Vec<()>, _> = ground.processes.iter_mut().map(Process::alive).collect();
        let counters = alive.and_then(|_| self.adapter.counters(ground));
        counters.map_err(|why| self.died(&why))
    }

    fn cpu_time(&mut self) -> Option<u64> {
        self.running.as_ref().map(|ground| self.spent + used(ground))
    }

    fn reset(&mut self, kind: Reset) -> Result<(), DeviceError> {
        let Some(ground) = self.running.as_mut() else { return Err(self.not_running()) };
        let done = match kind {
            Reset::Reload => {
                return Err(
                    self.cannot("read its configuration again while it runs: a restart is what it has")
                );
            }
            Reset::Flush => match self.adapter.forget(ground) {
                Some(done) => done,
                None => return Err(self.cannot("forget sessions or addresses: it has none")),
            },
            Reset::Flap => match self.adapter.flap(ground) {
                Some(done) => done,
                None => return Err(self.cannot("put a port down and up")),
            },
            Reset::Restart | Reset::Crash | Reset::Workers(_) => self.again(kind),
        };
        done.map_err(|why| self.died(&why))
    }

    fn stop(&mut self) {
        if let Some(mut ground) = self.running.take() {
            self.adapter.farewell(&mut ground);
            end(&mut ground);
            self.described = ground.stand.end();
        }
    }

    fn describe(&self) -> Described {
        self.running.as_ref().map_or_else(|| self.described.clone(), |g| g.stand.record.clone())
    }
}

impl<A: Adapter> Drop for UserSpace<A> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends the processes, the last started first.
fn end(ground: &mut Ground) {
    while let Some(mut process) = ground.processes.pop() {
        let name = process.name().to_owned();
        if !process.gone_within(Duration::ZERO) && !process.end() {
            ground.stand.note(format!("{name} did not end within 5 s and was killed"));
        }
    }
}

fn used(ground: &Ground) -> u64 {
    ground.processes.iter().filter_map(|p| process_time(p.pid())).sum()
}
