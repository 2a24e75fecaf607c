//! `ovs` and `ovs-dpdk`: Open vSwitch with its user-space datapath, with the kernel's interfaces or with DPDK's devices. Its
//! database, its sockets and its bridge are its own, apart from a switch that this machine may run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shoal_lab_plan::{Forwarding, Scenario, Side};

use crate::dpdk;
use crate::error::SetupError;
use crate::line::Line;
use crate::program::{can_run, find, need};
use crate::settings::{Settings, list};
use crate::user_space::{Adapter, Ground};
use crate::wires::name;

/// How long each of its programs may take to start; with DPDK the memory is taken then.
const STARTED: Duration = Duration::from_secs(30);
/// The switch; it lives in a namespace, so it needs no name of its own.
const BRIDGE: &str = "lab0";
/// Seconds that a learnt address lives: as long as it can be, so that none ages within a test.
const AGEING: u32 = 3600;
/// Where it listens to `ovs-appctl`. The usual name has the process's id in it.
const CONTROL: &str = "switch.ctl";
/// How long forgetting may take.
const FORGET: Duration = Duration::from_mins(1);
/// What Debian's package brings.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
/// Where Debian keeps the two variants that `ovs-vswitchd` may be an alternative of.
const PLAIN: &str = "/usr/lib/openvswitch-switch/ovs-vswitchd";
const DPDK: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// What its ports are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ovs {
    /// The kernel's interfaces.
    Netdev,
    /// DPDK's devices.
    Dpdk,
}

impl Ovs {
    fn daemon(self) -> Option<PathBuf> {
        let packaged = Path::new(if self == Ovs::Dpdk { DPDK } else { PLAIN });
        if can_run(packaged) {
            return Some(packaged.to_owned());
        }
        if self == Ovs::Dpdk { None } else { find("ovs-vswitchd") }
    }
}

impl Adapter for Ovs {
    fn name(&self) -> &'static str {
        match self {
            Ovs::Netdev => "ovs",
            Ovs::Dpdk => "ovs-dpdk",
        }
    }

    fn available(&self, _: &Settings, scenario: &Scenario) -> Result<(), String> {
        if !matches!(scenario.forwarding, Forwarding::CrossConnect | Forwarding::Bridge) {
            return Err(format!("{} does no {}: it switches", self.name(), scenario.forwarding.name()));
        }
        let package = "openvswitch-switch";
        need(&[
            ("ovsdb-server", package),
            ("ovsdb-tool", package),
            ("ovs-vsctl", package),
            ("ovs-ofctl", package),
            ("ovs-appctl", package),
        ])?;
        if self.daemon().is_none() {
            let package = if *self == Ovs::Dpdk { "openvswitch-switch-dpdk" } else { package };
            return Err(format!("its ovs-vswitchd is not installed: apt install {package}"));
        }
        if !Path::new(SCHEMA).exists() {
            return Err(format!("{SCHEMA} is missing: apt install --reinstall openvswitch-switch"));
        }
        need(&[("taskset", "util-linux")])?;
        crate::device_environment::need_namespaces()
    }

    fn transports(&self) -> Vec<&'static str> {
        // Not memif: a slave with one queue connects, but Open vSwitch sends by as many as it has threads, and nothing came back.
        vec!["af-packet", "af-xdp"]
    }

    fn rewrites(&self, _: &Scenario) -> bool {
        false
    }

    fn version(&self, _: &Settings) -> String {
        let Some(daemon) = self.daemon() else { return self.name().to_owned() };
        let said = Line::words("").arg(daemon.to_string_lossy()).arg("--version").run().unwrap_or_default();
        said.lines().take(2).collect::<Vec<_>>().join(", ")
    }

    fn launch(&self, ground: &mut Ground) -> Result<(), SetupError> {
        let cores = list(&ground.cores());
        let folder = ground.stand.path("ovs");
        // Each beginning is from nothing, so that it does what the record says.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(SetupError::file(&folder))?;
        let (db, socket) = (folder.join("conf.db"), folder.join("db.sock"));
        ground.stand.run(&Line::words("ovsdb-tool create").arg(db.to_string_lossy()).arg(SCHEMA))?;
        let environment = environment(&folder);
        let line = Line::words(format!("{environment} taskset -c {cores} ovsdb-server"))
            .arg(db.to_string_lossy())
            .arg(format!("--remote=punix:{}", socket.display()));
        let mut database = ground.stand.start("ovsdb-server", &line)?;
        database.wait_until("no socket of ovsdb-server", STARTED, || socket.exists())?;
        ground.processes.push(database);
        ground.stand.run(&vsctl(&folder, "--no-wait init"))?;
        if *self == Ovs::Dpdk {
            for undo in dpdk::leftovers(ground.stand.name()) {
                ground.stand.undo(undo)?;
            }
            for setting in dpdk_settings(ground) {
                let line = vsctl(&folder, "--no-wait set Open_vSwitch .").arg(setting);
                ground.stand.run(&line)?;
            }
        }
        let daemon = self.daemon().unwrap_or_default();
        let line = Line::words(format!("{} {environment}", ground.inside(&ground.cores())))
            .arg(daemon.to_string_lossy())
            .arg(format!("unix:{}", socket.display()))
            .arg(format!("--unixctl={}", folder.join(CONTROL).display()));
        let mut switch = ground.stand.start("ovs-vswitchd", &line)?;
        let bridge = format!(
            "--timeout=20 add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type=netdev fail_mode=secure other-config:disable-in-band=true other-config:mac-aging-time={AGEING}"
        );
        let made = ground.stand.run(&vsctl(&folder, &bridge).limit(STARTED));
        // It waits for the switch: if that has ended, why it did is the better answer.
        switch.alive()?;
        made?;
        for side in Side::BOTH {
            let mut line = vsctl(&folder, &format!("--timeout=20 add-port {BRIDGE} {}", name(side)));
            if *self == Ovs::Dpdk {
                line = line.then(Line::words(format!("-- set Interface {} type=dpdk", name(side))));
                let device = format!("net_af_packet{},iface={}", side.index(), name(side));
                // The quotes are for its own parser, which would end the word at a comma.
                line = line.arg(format!("options:dpdk-devargs=\"{device}\""));
            }
            ground.stand.run(&line.limit(STARTED))?;
        }
        check(&folder)?;
        for flow in flows(&ground.scenario.forwarding) {
            let line = ofctl(&folder, &format!("add-flow {BRIDGE} {flow}"));
            ground.stand.run(&line)?;
        }
        switch.alive()?;
        ground.processes.push(switch);
        Ok(())
    }

    fn counters(&self, ground: &mut Ground) -> Result<Vec<(String, u64)>, SetupError> {
        let said = ofctl(&ground.stand.path("ovs"), &format!("dump-ports {BRIDGE}")).run()?;
        Ok(counters(&said))
    }

    fn flap(&self, ground: &mut Ground) -> Option<Result<(), SetupError>> {
        let folder = ground.stand.path("ovs");
        let set = |ground: &mut Ground, state: &str| {
            ground.stand.run(&ofctl(&folder, &format!("mod-port {BRIDGE} left {state}"))).map(drop)
        };
        Some(set(ground, "down").and_then(|()| set(ground, "up")))
    }

    /// Cached flows go first: when they are taken away they are counted once more, and what is counted is learnt.
    fn forget(&self, ground: &mut Ground) -> Option<Result<(), SetupError>> {
        if ground.scenario.forwarding != Forwarding::Bridge {
            return None;
        }
        let folder = ground.stand.path("ovs");
        let mut tell = |words: &str| {
            let line = appctl(&folder, words).limit(FORGET);
            ground.stand.run_often(&line).map(drop)
        };
        Some(tell("revalidator/purge").and_then(|()| tell(&format!("fdb/flush {BRIDGE}"))))
    }
}

/// A port that could not be opened is told in the database only.
fn check(folder: &Path) -> Result<(), SetupError> {
    let said = vsctl(folder, "--columns=name,error --format=csv --no-headings list Interface").run()?;
    match said.lines().find(|line| !line.trim_end().ends_with("[]") && !line.trim().is_empty()) {
        None => Ok(()),
        Some(line) => Err(SetupError::Answer { program: "ovs-vswitchd".to_owned(), answer: line.to_owned() }),
    }
}

fn environment(folder: &Path) -> String {
    let folder = folder.display();
    format!("env OVS_RUNDIR={folder} OVS_LOGDIR={folder} OVS_DBDIR={folder}")
}

fn vsctl(folder: &Path, words: &str) -> Line {
    Line::words(format!("ovs-vsctl --db=unix:{}/db.sock {words}", folder.display()))
}

fn ofctl(folder: &Path, words: &str) -> Line {
    // Ports have names in flows only if it is told so.
    Line::words(format!("{} ovs-ofctl --names {words}", environment(folder)))
}

fn appctl(folder: &Path, words: &str) -> Line {
    Line::words(format!("ovs-appctl -t {} {words}", folder.join(CONTROL).display()))
}

/// Memory, and which processors poll.
fn dpdk_settings(ground: &Ground) -> Vec<String> {
    let mask =
        |cores: &[usize]| format!("{:#x}", cores.iter().fold(0_u128, |mask, core| mask | 1 << (core % 128)));
    // It adds --in-memory, which leaves no files; with ordinary memory DPDK refuses that, unless the older kind is asked for.
    let memory = dpdk::memory_of_switch(ground.stand.name());
    vec![
        "other_config:dpdk-init=true".to_owned(),
        format!("other_config:dpdk-extra=\"{memory}\""),
        format!("other_config:dpdk-lcore-mask={}", mask(&[ground.stand.settings.cores.main])),
        format!("other_config:pmd-cpu-mask={}", mask(&ground.workers())),
    ]
}

/// A bridge learns; a cross-connect does not look.
fn flows(forwarding: &Forwarding) -> Vec<&'static str> {
    match forwarding {
        Forwarding::Bridge => vec!["actions=NORMAL"],
        _ => vec!["in_port=left,actions=output:right", "in_port=right,actions=output:left"],
    }
}

/// Out of `dump-ports`: `port "left": rx pkts=1, bytes=2, drop=?, ...` and a line for `tx`.
fn counters(said: &str) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    let mut port = None;
    for line in said.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("port") {
            let name = rest.split(':').next().unwrap_or_default().trim().trim_matches('"');
            port = ["left", "right"].into_iter().find(|side| *side == name);
        }
        let Some(side) = port else { continue };
        let Some(at) = ["rx pkts=", "tx pkts="].iter().find_map(|way| line.find(way)) else { continue };
        let Some((way, fields)) = line.get(at..).and_then(|l| l.split_once(' ')) else { continue };
        for (word, what) in [("pkts", "packets"), ("bytes", "bytes"), ("drop", "drops"), ("errs", "errors")] {
            let value = fields.split(", ").find_map(|f| f.trim().strip_prefix(word)?.strip_prefix('='));
            // What a kind of port does not count is a question mark.
            if let Some(value) = value.and_then(|v| v.parse().ok()) {
                all.push((format!("{side} {way} {what}"), value));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_both_ports_are_read_and_question_marks_are_not() {
        let said = "OFPST_PORT reply (xid=0x2): 3 ports
  port  left: rx pkts=17, bytes=1020, drop=?, errs=0, frame=0, over=0, crc=0
           tx pkts=4, bytes=240, drop=1, errs=0, coll=0
  port LOCAL: rx pkts=99, bytes=0, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=99, bytes=0, drop=0, errs=0, coll=0
  port  \"right\": rx pkts=5, bytes=300, drop=0, errs=2, frame=0, over=0, crc=0
           tx pkts=16, bytes=960, drop=0, errs=0, coll=0
";
        let all = counters(said);
        for (name, count) in
            [("left rx packets", 17), ("left tx drops", 1), ("right rx errors", 2), ("right tx packets", 16)]
        {
            assert!(all.contains(&(name.to_owned(), count)), "{name}: {all:?}");
        }
        assert!(all.iter().all(|(name, count)| name != "left rx drops" && *count != 99));
    }

    #[test]
    fn a_bridge_learns_and_a_cross_connect_has_a_flow_each_way() {
        assert_eq!(flows(&Forwarding::Bridge), ["actions=NORMAL"]);
        assert_eq!(flows(&Forwarding::CrossConnect).len(), 2);
    }

    #[test]
    fn its_sockets_are_in_a_folder_of_its_own() {
        let line = ofctl(Path::new("/tmp/x"), "dump-ports lab0").to_string();
        assert_eq!(
            line,
            "env OVS_RUNDIR=/tmp/x OVS_LOGDIR=/tmp/x OVS_DBDIR=/tmp/x ovs-ofctl --names dump-ports lab0"
        );
    }
}
