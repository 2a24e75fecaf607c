//! The Raritan source against a real SNMP agent (net-snmp's snmpd with a script behind it) and against a socket that
//! answers nonsense.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use shoal_lab_energy::{EnergyError, Meter, OutletOrInlet, Raritan, Source};

/// net-snmp calls it with `-g OID`; it answers with OID, type and value from the file named after the object.
const SCRIPT: &str = r#"[ "$1" = -g ] || exit 0
file="$(dirname "$0")/values/${2#.}"
[ -f "$file" ] || exit 0
echo "$2"; echo "$(cut -d' ' -f1 "$file")"; cut -d' ' -f2 "$file"
"#;

const VALUE: &str = "1.3.6.1.4.1.13742.6.5.4.3.1.4.1.3";
const DIGITS: &str = "1.3.6.1.4.1.13742.6.3.5.4.1.7.1.3";

struct Agent {
    child: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Agent {
    fn start() -> Option<Self> {
        if !Path::new("/usr/sbin/snmpd").exists() {
            println!("SKIP raritan_agent: no /usr/sbin/snmpd (Debian package snmpd)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display();
        fs::create_dir(folder.path().join("values")).unwrap();
        fs::write(folder.path().join("answer.sh"), SCRIPT).unwrap();
        let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let configuration = format!(
            "rocommunity lab 127.0.0.1\npass .1.3.6.1.4.1.13742.6 /bin/sh {here}/answer.sh\n\
             agentAddress udp:{address}\n[snmp] persistentDir {here}\n"
        );
        fs::write(folder.path().join("snmpd.conf"), configuration).unwrap();
        let child = Command::new("/usr/sbin/snmpd")
            .args(["-f", "-Ln", "-C", "-c"])
            .arg(folder.path().join("snmpd.conf"))
            .env("SNMP_PERSISTENT_DIR", folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let agent = Agent { child, address, folder };
        agent.set(&format!("{DIGITS}.5"), "gauge", 1);
        agent.set(&format!("{DIGITS}.8"), "gauge", 0);
        agent.set(&format!("{VALUE}.5"), "gauge", 1515);
        agent.set(&format!("{VALUE}.8"), "gauge", 1000);
        let until = Instant::now() + Duration::from_secs(20);
        while Meter::open(&agent.source("lab", 3)).unwrap().start().is_err() {
            assert!(Instant::now() < until, "snmpd does not answer");
        }
        Some(agent)
    }

    fn set(&self, oid: &str, kind: &str, value: u64) {
        fs::write(self.folder.path().join("values").join(oid), format!("{kind} {value}\n")).unwrap();
    }

    fn source(&self, community: &str, outlet: u32) -> Source {
        source(&self.address, community, outlet)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn source(agent: &str, community: &str, outlet: u32) -> Source {
    let at = OutletOrInlet::Outlet(outlet);
    Source::SnmpRaritan(Raritan { agent: agent.into(), community: community.into(), pdu: 1, at, try_ms: 300 })
}

#[test]
fn power_of_a_real_agent_is_integrated_and_its_counter_is_the_check() {
    let Some(agent) = Agent::start() else { return };
    let mut meter = Meter::open(&agent.source("lab", 3)).unwrap().every(Duration::from_millis(20));
    meter.start().unwrap();
    thread::sleep(Duration::from_millis(300)); // the time that is measured
    agent.set(&format!("{VALUE}.8"), "gauge", 1003);
    let reading = meter.stop().unwrap();
    let watts = reading.watts.unwrap();
    assert!((watts - 151.5).abs() < 1e-9, "{watts}: 1515 with one decimal digit");
    let wanted = 151.5 * reading.seconds / 3600.0;
    assert!((reading.wh.unwrap() - wanted).abs() < 1e-9 && reading.seconds >= 0.3, "{reading:?}");
    assert!(reading.samples.len() > 2 && reading.gaps.is_empty(), "{reading:?}");
    assert_eq!(
        (reading.source.as_str(), reading.scope.as_str()),
        ("snmp-raritan", "outlet 3 of PDU 1 (wall)")
    );
    assert_eq!(reading.counter_wh, Some(3.0));
    assert!(reading.notes.iter().any(|n| n.contains("counter says 3.00 Wh")), "{:?}", reading.notes);
}

#[test]
fn an_agent_that_dies_leaves_a_gap_and_what_was_seen_before() {
    let Some(mut agent) = Agent::start() else { return };
    let mut meter = Meter::open(&agent.source("lab", 3)).unwrap().every(Duration::from_millis(20));
    meter.start().unwrap();
    thread::sleep(Duration::from_millis(200));
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    let reading = meter.stop().unwrap();
    assert!((reading.watts.unwrap() - 151.5).abs() < 1e-9, "{reading:?}");
    assert!(reading.gaps[0].why.contains("did not answer"), "{:?}", reading.gaps);
    assert!(reading.notes.iter().any(|n| n.contains("were not seen")), "{:?}", reading.notes);
}

#[test]
fn a_wrong_community_is_said_to_be_possible_when_the_agent_is_silent() {
    let Some(agent) = Agent::start() else { return };
    let error = Meter::open(&agent.source("public", 3)).unwrap().start().unwrap_err();
    assert!(matches!(error, EnergyError::Silent { .. }), "{error}");
    assert!(error.to_string().contains("\"public\" is not its community"), "{error}");
}

#[test]
fn an_outlet_that_the_strip_has_not_is_named_by_its_object() {
    let Some(agent) = Agent::start() else { return };
    let error = Meter::open(&agent.source("lab", 99)).unwrap().start().unwrap_err().to_string();
    assert!(error.contains(".99.5") && error.contains("NO SUCH"), "{error}");
}

#[test]
fn a_text_where_a_number_should_be_is_shown() {
    let Some(agent) = Agent::start() else { return };
    fs::write(agent.folder.path().join("values").join(format!("{VALUE}.5")), "string plenty\n").unwrap();
    let error = Meter::open(&agent.source("lab", 3)).unwrap().start().unwrap_err().to_string();
    assert!(error.contains("plenty"), "{error}");
}

#[test]
fn a_port_without_a_listener_is_an_error_that_names_it() {
    let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().to_string();
    let error = Meter::open(&source(&closed, "lab", 3)).unwrap().start().unwrap_err().to_string();
    assert!(error.contains(&closed) && error.contains("not reachable"), "{error}");
    let error = Meter::open(&source("no port", "lab", 3)).err().unwrap().to_string();
    assert!(error.contains("host:port"), "{error}");
}

#[test]
fn bytes_that_are_no_snmp_are_refused() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let answers: [&[u8]; 4] =
        [b"hello", &[], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 0x02, 0x02, 0x09]];
    let responder = thread::spawn(move || {
        for answer in answers.iter().cycle().take(8) {
            let mut question = [0; 1500];
            let Ok((_, from)) = socket.recv_from(&mut question) else { return };
            socket.send_to(answer, from).unwrap();
        }
    });
    for _ in 0..4 {
        let error = Meter::open(&source(&address, "lab", 3)).unwrap().start().unwrap_err().to_string();
        assert!(error.contains("no SNMP response"), "{error}");
    }
    responder.join().unwrap();
}
