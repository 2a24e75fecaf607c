//! Namespaces, forwarder and daemon: made, watched, taken away.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use shoal_lab_plan::{Described, DeviceError};

use super::config;
use super::words::{Daemon, FRR, Forwarder};
use crate::device_environment::{DeviceEnvironment, Namespace};
use crate::error::SetupError;
use crate::line::Line;
use crate::proc_stat::{main_thread_time, process_time};
use crate::process::Process;
use crate::registry::not_started;
use crate::settings::Settings;
use crate::shoal::{programs, version};

/// How long a program may take until it answers.
const STARTED: Duration = Duration::from_secs(20);
/// How long until images have their addresses and the peer is a neighbour.
const LINKED: Duration = Duration::from_secs(20);

/// A port of the forwarder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub name: &'static str,
    pub mac: [u8; 6],
    pub address4: Ipv4Addr,
    pub address6: Ipv6Addr,
}

const fn port(name: &'static str, n: u8) -> Port {
    Port {
        name,
        mac: [2, 0, 0, 0, 0xd, n],
        address4: Ipv4Addr::new(10, 0, n, 1),
        address6: Ipv6Addr::new(0x2001, 0xdb8, n as u16, 0, 0, 0, 0, 1),
    }
}

/// To the sender, to the peer, and to the peer once more.
pub(super) const PORTS: [Port; 3] = [port("left", 1), port("right", 2), port("spare", 3)];

/// A link to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerLink {
    /// The interface at the peer.
    pub name: &'static str,
    /// The forwarder's address.
    pub device4: Ipv4Addr,
    /// The forwarder's address.
    pub device6: Ipv6Addr,
    /// The peer's, where it listens.
    pub peer4: Ipv4Addr,
    /// The peer's, where it listens.
    pub peer6: Ipv6Addr,
}

const fn link(name: &'static str, n: u8) -> PeerLink {
    let port = port(name, n);
    PeerLink {
        name,
        device4: port.address4,
        device6: port.address6,
        peer4: Ipv4Addr::new(10, 0, n, 2),
        peer6: Ipv6Addr::new(0x2001, 0xdb8, n as u16, 0, 0, 0, 0, 2),
    }
}

/// Both links to the peer.
pub const LINKS: [PeerLink; 2] = [link("first", 2), link("second", 3)];
/// The tester's interface where it sends.
const SENDER: &str = "sender";
/// Its MAC.
const SENDER_MAC: [u8; 6] = [2, 0, 0, 0, 0x5a, 1];

/// Processor seconds that programs have used; of the kernel nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The forwarder's process.
    pub device: Option<f64>,
    /// The thread of it that takes routes.
    pub main_thread: Option<f64>,
    /// The daemon's processes.
    pub daemon: Option<f64>,
}

impl Spent {
    /// What was used since then.
    pub fn since(self, then: Spent) -> Spent {
        let less = |now: Option<f64>, then: Option<f64>| now.zip(then).map(|(now, then)| now - then);
        Spent {
            device: less(self.device, then.device),
            main_thread: less(self.main_thread, then.main_thread),
            daemon: less(self.daemon, then.daemon),
        }
    }
}

/// What routes are measured on. Dropped, all of it is gone.
#[derive(Debug)]
pub struct RoutingBed {
    forwarder: Forwarder,
    daemon: Daemon,
    router: Option<Process>,
    daemons: Vec<Process>,
    sender: Namespace,
    peer: Namespace,
    routes: Namespace,
    /// `None` only when it is over.
    stand: Option<DeviceEnvironment>,
}

impl RoutingBed {
    /// Starts the forwarder; the daemon is started by [`start_daemon`](Self::start_daemon).
    ///
    /// # Errors
    ///
    /// If it does not start. Nothing is left then.
    pub fn start(forwarder: Forwarder, daemon: Daemon, settings: &Settings) -> Result<Self, DeviceError> {
        daemon.available(forwarder, settings).map_err(DeviceError::Unavailable)?;
        Self::set_up(forwarder, daemon, settings).map_err(not_started(forwarder.name()))
    }

    fn set_up(forwarder: Forwarder, daemon: Daemon, settings: &Settings) -> Result<Self, SetupError> {
        let mut stand = DeviceEnvironment::begin(settings)?;
        let (sender, peer) = (stand.namespace('a')?, stand.namespace('b')?);
        let device = stand.namespace('d')?;
        let routes = if forwarder == Forwarder::Shoal { stand.namespace('l')? } else { device.clone() };
        for at in [&sender, &peer, &device, &routes] {
            stand.run(&at.shell(
                "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0 \
                 net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.accept_ra=0 && ip link set lo up",
            ))?;
        }
        let mut bed = RoutingBed {
            forwarder,
            daemon,
            router: None,
            daemons: Vec::new(),
            sender,
            peer,
            routes,
            stand: Some(stand),
        };
        bed.cables(&device)?;
        match forwarder {
            Forwarder::Shoal => bed.shoal(&device)?,
            Forwarder::LinuxRoute | Forwarder::None => bed.linux(&device)?,
        }
        bed.linked()?;
        Ok(bed)
    }

    fn stand(&mut self) -> &mut DeviceEnvironment {
        match &mut self.stand {
            Some(stand) => stand,
            None => unreachable!("it is taken when the bed is dropped, and nothing is called then"),
        }
    }

    fn cables(&mut self, device: &Namespace) -> Result<(), SetupError> {
        let (sender, peer) = (self.sender.clone(), self.peer.clone());
        let ends = [(&sender, SENDER), (&peer, LINKS[0].name), (&peer, LINKS[1].name)];
        let quiet = self.forwarder == Forwarder::Shoal;
        let stand = self.stand();
        for (port, (at, end)) in PORTS.iter().zip(ends) {
            let name = port.name;
            stand.run(
                &device.ip(format!("link add name {name} type veth peer name {end} netns {}", at.name)),
            )?;
            if quiet {
                // The router speaks there, not the kernel below it.
                stand.run(&device.shell(format!("sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1")))?;
            }
            stand.run(&device.ip(format!("link set {name} up")))?;
        }
        // No address here: this kernel says and answers nothing.
        stand.run(&sender.shell(format!("sysctl -qw net.ipv6.conf.{SENDER}.disable_ipv6=1")))?;
        let own = crate::wires::mac(SENDER_MAC);
        stand.run(&sender.ip(format!("link set {SENDER} address {own} up")))?;
        for link in &LINKS {
            stand.run(&peer.ip(format!("addr add {}/24 dev {}", link.peer4, link.name)))?;
            stand.run(&peer.ip(format!("addr add {}/64 dev {} nodad", link.peer6, link.name)))?;
            stand.run(&peer.ip(format!("link set {} up", link.name)))?;
        }
        Ok(())
    }

    fn shoal(&mut self, device: &Namespace) -> Result<(), SetupError> {
        let (beside, fpm) = (self.routes.name.clone(), self.daemon.is_fpm());
        let stand = self.stand();
        stand.record.version = version(&stand.settings);
        let setup = stand.write("setup.cli", &config::setup(&beside, fpm))?;
        let text = config::startup(&stand.path("run"), &stand.path("lib"), &setup);
        let file = stand.write("startup.conf", &text)?;
        let (daemon, client) = programs(&stand.settings).map_err(|why| SetupError::NotReady {
            what: "no shoal".into(),
            seconds: 0,
            last: why,
        })?;
        let line = on_all(device).arg(daemon.to_string_lossy()).arg("-c").arg(file.to_string_lossy());
        let mut process = stand.start("shoal", &line)?;
        let show = Line::words("")
            .arg(client.to_string_lossy())
            .arg("-s")
            .arg(stand.path("run").join("cli.sock").to_string_lossy())
            .then(Line::words("show version"));
        process.wait_until("no answer from shoal", STARTED, || show.run().is_ok())?;
        self.router = Some(process);
        Ok(())
    }

    fn linux(&mut self, device: &Namespace) -> Result<(), SetupError> {
        let stand = self.stand();
        let system = Line::words("uname -sr").run().unwrap_or_default();
        system.trim().clone_into(&mut stand.record.version);
        stand.run(&device.shell(
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv6.route.max_size=40000000 \
             net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0",
        ))?;
        for port in &PORTS {
            let (name, mac) = (port.name, crate::wires::mac(port.mac));
            stand.run(&device.shell(format!("sysctl -qw net.ipv4.conf.{name}.rp_filter=0")))?;
            stand.run(&device.ip(format!("link set {name} address {mac}")))?;
            stand.run(&device.ip(format!("addr add {}/24 dev {name}", port.address4)))?;
            stand.run(&device.ip(format!("addr add {}/64 dev {name} nodad", port.address6)))?;
        }
        Ok(())
    }

    /// Waits until the daemon's namespace reaches the peer over both links: images, addresses and neighbours are there.
    fn linked(&mut self) -> Result<(), SetupError> {
        let until = Instant::now() + LINKED;
        for link in &LINKS {
            for (own, to) in [
                (link.device4.to_string(), link.peer4.to_string()),
                (link.device6.to_string(), link.peer6.to_string()),
            ] {
                let line = self.routes.exec(format!("ping -c 1 -W 1 -I {own} {to}"));
                loop {
                    if let Some(router) = &mut self.router {
                        router.alive()?;
                    }
                    match self.stand().run_often(&line) {
                        Ok(_) => break,
                        Err(why) if Instant::now() > until => return Err(why),
                        Err(_) => std::thread::sleep(Duration::from_millis(50)),
                    }
                }
            }
        }
        Ok(())
    }

    /// Starts the daemon. It connects to the peer again and again, once a second.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start_daemon(&mut self) -> Result<(), DeviceError> {
        let name = self.daemon.name();
        match self.daemon {
            Daemon::Bird => self.bird(),
            Daemon::Frr | Daemon::FrrFpm => self.frr(),
            Daemon::Netlink | Daemon::Fpm => Ok(()),
        }
        .map_err(not_started(name))
    }

    fn bird(&mut self) -> Result<(), SetupError> {
        let installs = self.forwarder != Forwarder::None;
        let at = self.routes.clone();
        let stand = self.stand();
        let file = stand.write("bird.conf", &config::bird(installs))?;
        let control = stand.path("bird.ctl");
        let line = on_all(&at)
            .then(Line::words("bird -f -c"))
            .arg(file.to_string_lossy())
            .arg("-s")
            .arg(control.to_string_lossy())
            .arg("-P")
            .arg(stand.path("bird.pid").to_string_lossy());
        let mut process = stand.start("bird", &line)?;
        process.wait_until("bird does not open its socket", STARTED, || control.exists())?;
        self.daemons.push(process);
        Ok(())
    }

    fn frr(&mut self) -> Result<(), SetupError> {
        let (fpm, alone) = (self.daemon == Daemon::FrrFpm, self.forwarder == Forwarder::None);
        let at = self.routes.clone();
        let stand = self.stand();
        let zebra_file = stand.write("zebra.conf", &config::zebra(fpm))?;
        let bgpd_file = stand.write("bgpd.conf", &config::bgpd())?;
        let folder = stand.path("frr");
        std::fs::create_dir_all(&folder).map_err(SetupError::file(&folder))?;
        // FRR's daemons give up root, and have to read their files and to make sockets.
        stand.run(&Line::words("chown -R frr:frr").arg(folder.to_string_lossy()))?;
        let socket = folder.join("zserv.api");
        let with = |program: &str, file: &std::path::Path| {
            on_all(&at)
                .arg(format!("{FRR}/{program}"))
                .arg("--vty_socket")
                .arg(folder.to_string_lossy())
                .arg("-z")
                .arg(socket.to_string_lossy())
                .arg("-i")
                .arg(folder.join(format!("{program}.pid")).to_string_lossy())
                .arg("-f")
                .arg(file.to_string_lossy())
        };
        if !alone {
            let mut line = with("zebra", &zebra_file).arg("-s").arg("90000000");
            if fpm {
                line = line.arg("-M").arg("dplane_fpm_nl");
            }
            let mut zebra = stand.start("zebra", &line)?;
            zebra.wait_until("zebra does not open its socket", STARTED, || socket.exists())?;
            self.daemons.push(zebra);
        }
        let mut line = with("bgpd", &bgpd_file);
        if alone {
            line = line.arg("-Z");
        }
        let mut bgpd = self.stand().start("bgpd", &line)?;
        bgpd.alive()?;
        self.daemons.push(bgpd);
        Ok(())
    }

    /// Where the tester sends: namespace and interface, its MAC and the forwarder's.
    pub fn sends(&self) -> (PathBuf, &'static str, [[u8; 6]; 2]) {
        (self.sender.path(), SENDER, [SENDER_MAC, PORTS[0].mac])
    }

    /// The sender's addresses, which no host has.
    pub fn source(&self) -> (Ipv4Addr, Ipv6Addr) {
        (Ipv4Addr::new(10, 0, 1, 2), Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2))
    }

    /// The peer's namespace, in which [`LINKS`] are.
    pub fn peer(&self) -> PathBuf {
        self.peer.path()
    }

    /// The namespace whose kernel has the routes.
    pub fn routes(&self) -> PathBuf {
        self.routes.path()
    }

    /// The interface of the first link in that namespace.
    pub fn way_out(&self) -> &'static str {
        if self.forwarder == Forwarder::Shoal { "e1" } else { PORTS[1].name }
    }

    /// The port where Shoal takes FPM, on 127.0.0.1 of [`routes`](Self::routes).
    pub fn fpm_port(&self) -> u16 {
        config::FPM_PORT
    }

    /// The peer's system.
    pub fn peer_system(&self) -> u32 {
        config::PEER
    }

    /// The failure of the first link, to be had at any moment.
    pub fn link_failure(&mut self) -> LinkFailure {
        let line = self.peer.ip(format!("link set {} down", LINKS[0].name));
        self.stand().record.commands.push(line.to_string());
        LinkFailure(line)
    }

    /// Processor seconds that have been used so far.
    pub fn spent(&self) -> Spent {
        let seconds = |time: Option<u64>| time.map(|us| us as f64 / 1e6);
        let daemons: Vec<f64> = self.daemons.iter().filter_map(|p| seconds(process_time(p.pid()))).collect();
        let router = self.router.as_ref().map(Process::pid);
        Spent {
            device: router.and_then(|pid| seconds(process_time(pid))),
            main_thread: router.and_then(|pid| seconds(main_thread_time(pid))),
            daemon: (!daemons.is_empty()).then(|| daemons.iter().sum()),
        }
    }

    /// # Errors
    ///
    /// A program has ended, and what it said last.
    pub fn alive(&mut self) -> Result<(), DeviceError> {
        let all = self.router.iter_mut().chain(&mut self.daemons);
        for process in all {
            let device = process.name().to_owned();
            process.alive().map_err(|why| DeviceError::Died { device, reason: why.to_string() })?;
        }
        Ok(())
    }

    /// What was done, for the record.
    pub fn describe(&self) -> Described {
        self.stand.as_ref().map(|stand| stand.record.clone()).unwrap_or_default()
    }
}

/// A failure of a link, prepared.
#[derive(Clone, Debug)]
pub struct LinkFailure(Line);

impl LinkFailure {
    /// The peer's end goes down: the forwarder loses the carrier.
    ///
    /// # Errors
    ///
    /// `ip` fails.
    pub fn happen(&self) -> Result<(), DeviceError> {
        self.0.run().map(drop).map_err(not_started("ip"))
    }
}

/// Words before a program that may use all processors: the lab itself may be bound to one.
fn on_all(at: &Namespace) -> Line {
    let all = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let all = if all.trim().is_empty() { "0" } else { all.trim() };
    at.exec(format!("taskset -c {all}"))
}

impl Drop for RoutingBed {
    fn drop(&mut self) {
        // Daemons that withdraw a million routes when they are asked to end would take seconds, for tables that go anyway.
        self.daemons.iter_mut().for_each(Process::kill);
        self.daemons.clear();
        if let Some(router) = &mut self.router {
            router.kill();
        }
        if let Some(stand) = self.stand.take() {
            stand.end();
        }
    }
}
