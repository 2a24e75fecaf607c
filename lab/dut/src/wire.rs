//! `wire`: no device at all. The tester's two ends are one veth pair; what a self-test measures over it is the tester and
//! the kernel's veth, the ceiling of every device over veth.

use std::fs;

use shoal_lab_plan::{Attachment, Described, Device, DeviceError, Port, Ports, Reset, Scenario, Side};

use crate::device_environment::{DeviceEnvironment, Namespace, need_namespaces};
use crate::error::SetupError;
use crate::registry::{check_transport, not_started};
use crate::routes::side;
use crate::settings::Settings;
use crate::wires::{mac, name, receive_on};

/// The tester's ports joined.
#[derive(Debug)]
pub(crate) struct Wire {
    settings: Settings,
    running: Option<(DeviceEnvironment, Namespace)>,
    described: Described,
}

const NAME: &str = "wire";

impl Wire {
    pub fn new(settings: Settings) -> Wire {
        Wire { settings, running: None, described: Described::default() }
    }

    fn set_up(
        &self,
        scenario: &Scenario,
        transport: &str,
    ) -> Result<((DeviceEnvironment, Namespace), Ports), SetupError> {
        let mut stand = DeviceEnvironment::begin(&self.settings)?;
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        stand.record.version = format!("veth of Linux {}", release.trim());
        let at = stand.namespace('w')?;
        stand.run(
            &at.exec("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"),
        )?;
        let [left, right] = Side::BOTH.map(|s| mac(side(scenario, s).tester_mac));
        let mtu = scenario.mtu;
        stand.run(&at.ip(format!(
            "link add left address {left} mtu {mtu} type veth peer name right address {right} mtu {mtu}"
        )))?;
        let tester = stand.settings.cores.tester.clone();
        for end in Side::BOTH.map(name) {
            stand.run(&at.exec(format!("ethtool -K {end} gro off gso off tso off tx off rx off")))?;
            stand.run(&at.ip(format!("link set {end} up")))?;
            receive_on(&mut stand, &at, end, &tester);
        }
        let port = |of: Side| Port {
            attachment: Attachment::Interface {
                namespace: Some(at.path()),
                name: name(of).to_owned(),
                transport: transport.to_owned(),
            },
            mac: None,
        };
        let ports = Ports { left: port(Side::Left), right: port(Side::Right) };
        Ok(((stand, at), ports))
    }
}

impl Device for Wire {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Whatever is to be measured, the self-test runs without it: frames arrive as they were sent.
    fn available(&self, _: &Scenario) -> Result<(), String> {
        need_namespaces()
    }

    fn transports(&self) -> Vec<&'static str> {
        vec!["af-packet", "af-xdp"]
    }

    fn start(&mut self, scenario: &Scenario, transport: &str) -> Result<Ports, DeviceError> {
        self.stop();
        self.available(scenario).map_err(DeviceError::Unavailable)?;
        check_transport(self, transport)?;
        let (running, ports) = self.set_up(scenario, transport).map_err(not_started(NAME))?;
        self.running = Some(running);
        Ok(ports)
    }

    fn counters(&mut self) -> Result<Vec<(String, u64)>, DeviceError> {
        let died = |reason: String| DeviceError::Died { device: NAME.to_owned(), reason };
        let (_, at) = self.running.as_ref().ok_or_else(|| died("it was not started".to_owned()))?;
        crate::interface_counters::of_kernel(at).map_err(|why| died(why.to_string()))
    }

    fn cpu_time(&mut self) -> Option<u64> {
        None
    }

    fn reset(&mut self, kind: Reset) -> Result<(), DeviceError> {
        let cannot = |what: &str| DeviceError::Cannot { device: NAME.to_owned(), what: what.to_owned() };
        let Some((stand, at)) = self.running.as_mut().filter(|_| kind == Reset::Flap) else {
            return Err(cannot("be restarted: there is nothing to start"));
        };
        for state in ["down", "up"] {
            stand
                .run(&at.ip(format!("link set left {state}")))
                .map_err(|why| DeviceError::Died { device: NAME.to_owned(), reason: why.to_string() })?;
        }
        Ok(())
    }

    fn stop(&mut self) {
        if let Some((stand, _)) = self.running.take() {
            self.described = stand.end();
        }
    }

    fn describe(&self) -> Described {
        self.running.as_ref().map_or_else(|| self.described.clone(), |(stand, _)| stand.record.clone())
    }
}
