//! Linux itself: `linux-route`, `linux-bridge`, `linux-nft`, `linux-iptables`.

use std::fs;
use std::time::{Duration, Instant};

use shoal_lab_plan::{Described, Device, DeviceError, Ports, Reset, Scenario};

use crate::cleaner::Undo;
use crate::device_environment::{DeviceEnvironment, need_namespaces};
use crate::error::SetupError;
use crate::interface_counters;
use crate::kernel::{Role, SESSIONS, batch, forget_addresses, nat_rules, neighbours, pool, set_up, trial};
use crate::line::Line;
use crate::probe::probe;
use crate::proc_stat::softirq_time;
use crate::program::{find, need};
use crate::settings::Settings;
use crate::softnet;
use crate::wires::{Wires, kind_of};

/// How long a million routes may take.
const ROUTES: Duration = Duration::from_mins(10);
/// How long forgetting millions of sessions or addresses may take.
const FLUSH: Duration = Duration::from_mins(5);

/// The kernel of this machine as a device.
#[derive(Debug)]
pub(crate) struct Linux {
    role: Role,
    settings: Settings,
    running: Option<Running>,
    described: Described,
}

#[derive(Debug)]
struct Running {
    scenario: Scenario,
    wires: Wires,
    stand: DeviceEnvironment,
    workers: u16,
}

impl Linux {
    pub fn new(role: Role, settings: Settings) -> Linux {
        Linux { role, settings, running: None, described: Described::default() }
    }

    fn set_up(&self, scenario: &Scenario, transport: &str) -> Result<(Running, Ports), SetupError> {
        let mut stand = DeviceEnvironment::begin(&self.settings)?;
        stand.record.version = version(self.role);
        let wires = Wires::make(&mut stand, scenario, kind_of(transport))?;
        let at = wires.device.clone();
        for line in set_up(self.role, &at, scenario) {
            stand.run(&line)?;
        }
        if self.role != Role::Bridge {
            load_routes(&mut stand, &wires, scenario)?;
        }
        if let Some(nat) = pool(scenario) {
            let (file, command, text) = nat_rules(self.role, nat);
            let path = stand.write(file, &text)?;
            stand.run(&at.exec(command).arg(path.to_string_lossy()))?;
            table(&mut stand, &wires)?;
        }
        let macs = self.role != Role::Bridge;
        let mut running = Running { scenario: scenario.clone(), wires, stand, workers: scenario.workers };
        probe(&mut running.stand, &running.wires, scenario, macs)?;
        if self.role.tracks() && find("conntrack").is_some() {
            // The probe's own sessions are no part of a test.
            running.stand.run(&running.wires.device.exec("conntrack -F"))?;
        }
        let ports = running.wires.ports(transport, macs);
        Ok((running, ports))
    }

    fn cannot(&self, what: impl Into<String>) -> DeviceError {
        DeviceError::Cannot { device: self.role.device().to_owned(), what: what.into() }
    }

    fn running(&mut self) -> Result<&mut Running, DeviceError> {
        let device = self.role.device();
        self.running.as_mut().ok_or_else(|| DeviceError::Died {
            device: device.to_owned(),
            reason: "it was not started".to_owned(),
        })
    }

    fn died(&self) -> impl FnOnce(SetupError) -> DeviceError + use<> {
        let device = self.role.device().to_owned();
        move |why| DeviceError::Died { device, reason: why.to_string() }
    }
}

impl Device for Linux {
    fn name(&self) -> &str {
        self.role.device()
    }

    fn available(&self, scenario: &Scenario) -> Result<(), String> {
        let (wanted, able) = (scenario.forwarding.name(), self.role.forwarding());
        if wanted != able {
            return Err(format!("{} does {able}, not {wanted}", self.role.device()));
        }
        need_namespaces()?;
        need(self.role.programs())?;
        // Not every kernel has everything, and without modules nothing can be added: it is tried.
        let mut stand = DeviceEnvironment::begin(&self.settings).map_err(|e| e.to_string())?;
        let tried = stand.namespace('t').and_then(|at| stand.run(&trial(self.role, &at)));
        stand.end();
        tried.map(drop).map_err(|why| format!("this kernel cannot {able} this way: {why}"))
    }

    fn transports(&self) -> Vec<&'static str> {
        vec!["af-packet", "af-xdp", "tap"]
    }

    fn start(&mut self, scenario: &Scenario, transport: &str) -> Result<Ports, DeviceError> {
        self.stop();
        self.available(scenario).map_err(DeviceError::Unavailable)?;
        crate::registry::check_transport(self, transport)?;
        let (running, ports) =
            self.set_up(scenario, transport).map_err(crate::registry::not_started(self.role.device()))?;
        self.running = Some(running);
        Ok(ports)
    }

    fn counters(&mut self) -> Result<Vec<(String, u64)>, DeviceError> {
        let (died, tracks) = (self.died(), self.role.tracks());
        let running = self.running()?;
        let (at, cores) = (&running.wires.device, running.stand.settings.cores.workers(running.workers));
        let read = || -> Result<_, SetupError> {
            let mut all = interface_counters::of_kernel(at)?;
            if let Some(softnet) = softnet::read() {
                let sum = softnet::sum(&softnet, &cores);
                all.push(("softnet processed".to_owned(), sum.processed));
                all.push(("softnet dropped".to_owned(), sum.dropped));
                all.push(("softnet squeezed".to_owned(), sum.squeezed));
            }
            if tracks {
                let count = at.exec("cat /proc/sys/net/netfilter/nf_conntrack_count").run()?;
                all.push(("sessions".to_owned(), count.trim().parse().unwrap_or(0)));
            }
            Ok(all)
        };
        read().map_err(died)
    }

    fn cpu_time(&mut self) -> Option<u64> {
        let running = self.running.as_ref()?;
        softirq_time(&running.stand.settings.cores.workers(running.workers))
    }

    fn reset(&mut self, kind: Reset) -> Result<(), DeviceError> {
        let (died, role) = (self.died(), self.role);
        let cannot = match kind {
            Reset::Restart | Reset::Crash => Some("be restarted: it is this machine's kernel"),
            Reset::Reload if !role.tracks() => Some("read its configuration again: it has no file of it"),
            Reset::Flush if role == Role::Route => Some("forget sessions or addresses: it has none"),
            Reset::Flush if role.tracks() && find("conntrack").is_none() => {
                Some("forget sessions without conntrack: apt install conntrack")
            }
            _ => None,
        };
        if let Some(what) = cannot {
            return Err(self.cannot(what));
        }
        let running = self.running()?;
        running.reset(role, kind).map_err(died)
    }

    fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            self.described = running.stand.end();
        }
    }

    fn describe(&self) -> Described {
        self.running.as_ref().map_or_else(|| self.described.clone(), |r| r.stand.record.clone())
    }
}

impl Running {
    fn reset(&mut self, role: Role, kind: Reset) -> Result<(), SetupError> {
        let at = self.wires.device.clone();
        match kind {
            Reset::Flap => {
                self.stand.run(&at.ip("link set left down"))?;
                self.stand.run(&at.ip("link set left up"))?;
                if role != Role::Bridge {
                    // The kernel forgets them with the link.
                    for line in neighbours(&at, &self.scenario) {
                        self.stand.run(&line)?;
                    }
                    load_routes(&mut self.stand, &self.wires, &self.scenario)?;
                }
                Ok(())
            }
            Reset::Workers(workers) => {
                self.wires.place(&mut self.stand, workers);
                self.workers = workers;
                Ok(())
            }
            Reset::Reload => {
                let Some(nat) = pool(&self.scenario) else { return Ok(()) };
                let (file, command, _) = nat_rules(role, nat);
                let path = self.stand.path(file);
                self.stand.run(&at.exec(command).arg(path.to_string_lossy())).map(drop)
            }
            Reset::Flush if role == Role::Bridge => {
                self.stand.run_often(&forget_addresses(&at).limit(FLUSH)).map(drop)
            }
            Reset::Flush => {
                let sessions = at.exec("conntrack -C").run().unwrap_or_default();
                let begun = Instant::now();
                self.stand.run(&at.exec("conntrack -F").limit(FLUSH))?;
                self.stand.note(format!(
                    "{} sessions were forgotten in {:.6} s",
                    sessions.trim(),
                    begun.elapsed().as_secs_f64()
                ));
                Ok(())
            }
            Reset::Restart | Reset::Crash => unreachable!("refused before"),
        }
    }
}

/// All routes by one process.
fn load_routes(stand: &mut DeviceEnvironment, wires: &Wires, scenario: &Scenario) -> Result<(), SetupError> {
    let text = batch(scenario);
    if text.is_empty() {
        return Ok(());
    }
    let path = stand.write("routes.batch", &text)?;
    let begun = Instant::now();
    stand.run(&wires.device.ip("-batch").arg(path.to_string_lossy()).limit(ROUTES))?;
    stand.note(format!("{} routes were set in {:.3} s", text.lines().count(), begun.elapsed().as_secs_f64()));
    Ok(())
}

/// Where the machine says how many sessions it keeps.
const MOST_SESSIONS: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// Room for more sessions while the device runs, where this process may say so, and sizes and timeouts for the record.
fn table(stand: &mut DeviceEnvironment, wires: &Wires) -> Result<(), SetupError> {
    let was = fs::read_to_string(MOST_SESSIONS).unwrap_or_default();
    if was.trim().parse().is_ok_and(|n: u32| n < SESSIONS) {
        stand.undo(Undo::Setting { path: MOST_SESSIONS.into(), was: was.trim().to_owned() })?;
        if fs::write(MOST_SESSIONS, SESSIONS.to_string()).is_ok() {
            stand.record.commands.push(format!("sysctl -w net.netfilter.nf_conntrack_max={SESSIONS}"));
        }
    }
    for name in ["max", "buckets", "udp_timeout", "udp_timeout_stream"] {
        let file = format!("/proc/sys/net/netfilter/nf_conntrack_{name}");
        if let Ok(value) = wires.device.exec(format!("cat {file}")).run() {
            stand.note(format!("{file}: {}", value.trim()));
        }
    }
    Ok(())
}

fn version(role: Role) -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let with = match role {
        Role::Route | Role::Bridge => String::new(),
        Role::Nft => Line::words("nft --version").run().unwrap_or_default(),
        Role::Iptables => Line::words("iptables --version").run().unwrap_or_default(),
    };
    format!("Linux {} {}", release.trim(), with.trim()).trim_end().to_owned()
}
