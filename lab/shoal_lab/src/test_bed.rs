//! A device and the tester at its ports.

use std::path::Path;
use std::time::{Duration, Instant};

use shoal_lab_dut as dut;
use shoal_lab_engine::{Accounted, DpdkPort, Engine, EngineError, MachineClock, MemifPort, attach};
use shoal_lab_measure::{MeasureError, Offer, Traffic};
use shoal_lab_plan::{
    Addresses, Device, DeviceError, Forwarding, Nat, Outcome, Ports, Reset, Scenario, Side, Tester,
    TesterError, Trial, Unwatched,
};
use thiserror::Error;

use crate::cases::{Case, Frames};
use crate::profile;
use crate::settings::Settings;

/// A device and the tester at its ports. Both are taken away when this is dropped.
pub struct TestBed {
    /// The device; none where the tester's ports are joined.
    pub device: Option<Box<dyn Device>>,
    /// Its ports.
    pub ports: Option<Ports>,
    /// Sends and receives.
    pub tester: Box<dyn Tester>,
    /// What the device does.
    pub scenario: Scenario,
    /// The wire.
    pub transport: String,
}

/// Why there is no stand.
#[derive(Debug, Error)]
pub enum StandError {
    /// No device has this name.
    #[error(transparent)]
    Unknown(#[from] dut::UnknownDevice),
    /// It cannot be measured here; the reason.
    #[error("skipped: {0}")]
    Skipped(String),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The tester failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The first trial failed.
    #[error(transparent)]
    Tester(#[from] TesterError),
    /// The first trial could not be made.
    #[error(transparent)]
    Traffic(#[from] MeasureError),
}

/// How long a device may take until it forwards.
const PATIENCE: Duration = Duration::from_secs(15);

impl TestBed {
    /// Starts `case`'s device, set up for `scenario`, and attaches to its ports.
    ///
    /// # Errors
    ///
    /// If that cannot be; nothing is left then.
    pub fn open(
        case: &Case,
        scenario: Scenario,
        settings: &Settings,
        clock: &MachineClock,
    ) -> Result<Self, StandError> {
        let mut device = dut::device(&case.dut, &dut_settings(settings))?;
        device.available(&scenario).map_err(StandError::Skipped)?;
        let able = device.transports();
        let best = able.first().copied().unwrap_or("af-packet").to_owned();
        let transport = case.transport.clone().unwrap_or(best);
        let ports = device.start(&scenario, &transport)?;
        // From here on the device is stopped when `device` is dropped.
        let tester = attach(&ports, clock, settings.link.link())?;
        let tester = Box::new(Accounted::new(tester, cores(settings, scenario.workers)));
        Ok(TestBed { device: Some(device), ports: Some(ports), tester, scenario, transport })
    }

    /// The tester's ports joined over this wire, without a device.
    ///
    /// # Errors
    ///
    /// If that cannot be.
    pub fn joined(
        case: &Case,
        transport: &str,
        settings: &Settings,
        clock: &MachineClock,
    ) -> Result<Self, StandError> {
        let joined = |tester: Box<dyn Tester>| TestBed {
            device: None,
            ports: None,
            tester: Box::new(Accounted::new(tester, vec![tester_core(settings)])),
            scenario: scenario(case, settings),
            transport: transport.into(),
        };
        let link = settings.link.link();
        if transport == "memif" {
            let [left, right] = MemifPort::pair().map_err(EngineError::from)?;
            return Ok(joined(Box::new(Engine::new(left, right, clock.clone()).with_link(link))));
        }
        if transport == "dpdk" {
            let [left, right] = DpdkPort::pair(scenario(case, settings).mtu).map_err(EngineError::from)?;
            return Ok(joined(Box::new(Engine::new(left, right, clock.clone()).with_link(link))));
        }
        let wire = Case { dut: "wire".into(), transport: Some(transport.into()), ..case.clone() };
        Self::open(&wire, scenario(&wire, settings), settings, clock)
    }

    /// Sends a few frames until they come back: routes, neighbours and links may take a moment.
    ///
    /// # Errors
    ///
    /// If none come back in time.
    pub fn ready(&mut self, traffic: &dyn Traffic, name: &str) -> Result<(), StandError> {
        let end = Instant::now() + PATIENCE;
        loop {
            let outcome = self.probe(traffic)?;
            let silent: Vec<&str> = traffic
                .sides()
                .into_iter()
                .filter(|side| outcome.direction(*side).received == 0)
                .map(|side| if side == Side::Left { "from left to right" } else { "from right to left" })
                .collect();
            if silent.is_empty() {
                return Ok(());
            }
            if Instant::now() >= end {
                let reason =
                    format!("no frame came through {} in {} s", silent.join(" and "), PATIENCE.as_secs());
                return Err(DeviceError::Silent { device: name.into(), reason }.into());
            }
        }
    }

    fn probe(&mut self, traffic: &dyn Traffic) -> Result<Outcome, StandError> {
        let streams = traffic.streams(&Offer::steady(500))?;
        let mut trial = Trial::new(u16::MAX, streams, Duration::from_millis(100));
        trial.timeout = Duration::from_millis(200);
        trial.start_delay = Duration::from_millis(10);
        Ok(self.tester.run(&trial, &mut Unwatched)?)
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        if let Some(device) = &mut self.device {
            device.stop();
        }
    }
}

/// Empties the tables of what it has learnt; `what` is that in words, for where there is no device.
///
/// # Errors
///
/// If it cannot.
pub fn flush(device: &mut Option<Box<dyn Device>>, what: &str) -> Result<(), DeviceError> {
    match device {
        Some(device) => device.reset(Reset::Flush),
        None => Err(DeviceError::Cannot { device: "no device".into(), what: what.into() }),
    }
}

/// What the device of a case does.
pub fn scenario(case: &Case, settings: &Settings) -> Scenario {
    let mut addresses = Addresses::default();
    if case.test == "thesis" || matches!(&case.frames, Frames::Named(name) if !name.starts_with("imix:")) {
        // T-Rex's clients and servers.
        addresses.left.behind4.push(([16, 0, 0, 0].into(), 8));
        addresses.right.behind4.push(([48, 0, 0, 0].into(), 8));
    }
    let forwarding = match case.forwarding.as_str() {
        "cross-connect" => Forwarding::CrossConnect,
        "bridge" => Forwarding::Bridge,
        "snat" => Forwarding::Snat(Nat { first: [198, 19, 0, 3].into(), last: [198, 19, 0, 254].into() }),
        _ => Forwarding::Route,
    };
    let largest = match &case.frames {
        Frames::Size(size) => *size,
        Frames::Named(_) => 1518,
    };
    let mut scenario = Scenario {
        forwarding,
        addresses,
        networks: settings.traffic.networks,
        routes: case.routes,
        workers: case.workers,
        mtu: largest.saturating_sub(18).clamp(1500, 9198) as u16,
    };
    profile::add_routes(case, &mut scenario);
    scenario
}

/// The tester's processor.
pub fn tester_core(settings: &Settings) -> usize {
    let first = dut_settings(settings).cores.tester.first().copied();
    usize::try_from(settings.tester.core).ok().or(first).unwrap_or(0)
}

/// The processors that the tester and a device with so many workers run on.
pub fn cores(settings: &Settings, workers: u16) -> Vec<usize> {
    let of_device = dut_settings(settings).cores;
    let mut cores = of_device.workers(workers);
    cores.extend([of_device.main, tester_core(settings)]);
    cores.sort_unstable();
    cores.dedup();
    cores
}

/// Settings of devices.
pub fn dut_settings(settings: &Settings) -> dut::Settings {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let shoal = (settings.dut.shoal.as_path() != Path::new("")).then(|| settings.dut.shoal.clone());
    dut::Settings { cores: dut::Cores::of_machine(count), shoal, ..dut::Settings::default() }
}
