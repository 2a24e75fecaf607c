//! siitperf's programs, at ports that the settings name: siitperf sets up no device, its user does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use shoal_lab_engine::{Accounted, EngineError, MachineClock, attach};
use shoal_lab_measure::WhenDisturbed;
use shoal_lab_plan::{Attachment, Port, Ports, Sample, Tester, Watch};
use shoal_lab_siitperf::{Options, Program, run};

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::settings::Settings;

/// The file of siitperf's settings, in the current folder as the original has it.
const CONF: &str = "siitperf.conf";

/// Which of siitperf's programs this one was called as.
pub fn called_as(program: Option<&OsString>) -> Option<&'static str> {
    let program = Program::named(Path::new(program?).file_name()?.to_str()?)?;
    Some(program.name())
}

/// Runs one of them and prints what the original would.
pub fn siitperf(program: Program, arguments: &[String], settings: &Settings, interrupt: &Interrupt) -> Exit {
    let conf = match std::fs::read_to_string(CONF) {
        Ok(conf) => conf,
        Err(error) => {
            say!("Input Error: {CONF}: {error}.");
            return Exit::Usage;
        }
    };
    let tester = ports(settings).and_then(|ports| {
        let clock = MachineClock::calibrated();
        let tester = attach(&ports, &clock, settings.link.link()).map_err(|e: EngineError| e.to_string())?;
        // Nothing says where the tester runs here, and what the device is.
        let all = 0..std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Box::new(Accounted::new(tester, all.collect())))
    });
    let mut tester: Box<dyn Tester> = match tester {
        Ok(tester) => tester,
        Err(error) => {
            say!("Error: {error}.");
            return Exit::Tester;
        }
    };
    let mut watch = Until(interrupt.clone());
    let refuses = settings.test.when_disturbed == WhenDisturbed::Refuse;
    let most_taken = if refuses { settings.tester.most_taken } else { 1.0 };
    let options = Options { most_taken, ..Options::default() };
    let finished = run(program, arguments, &conf, &options, tester.as_mut(), &mut watch);
    say_as_is!("{}", finished.text);
    match finished.code {
        0 => Exit::Done,
        1 => Exit::Failed,
        130 => Exit::Interrupted,
        _ => Exit::Usage,
    }
}

struct Until(Interrupt);

impl Watch for Until {
    fn progress(&mut self, _so_far: &Sample) -> bool {
        !self.0.wanted()
    }
}

fn ports(settings: &Settings) -> Result<Ports, String> {
    let left = port("left", &settings.ports.left)?;
    let right = port("right", &settings.ports.right)?;
    Ok(Ports { left, right })
}

/// A port from words: `memif SOCKET ID`, `af-packet NAME`, `af-xdp NAME`, `tap NAME`, `dpdk DEVICE ...`.
fn port(side: &str, text: &str) -> Result<Port, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let attachment = match words.as_slice() {
        ["memif", socket, id] => {
            let id = id.parse().map_err(|_| format!("ports.{side}: `{id}' is no memif id; such as 0"))?;
            Attachment::Memif { socket: PathBuf::from(socket), id }
        }
        [transport @ ("af-packet" | "af-xdp"), name] => {
            Attachment::Interface { namespace: None, name: (*name).into(), transport: (*transport).into() }
        }
        ["tap", name] => Attachment::Tap { namespace: None, name: (*name).into() },
        // As they are: arguments of a device may have blanks in quotes.
        ["dpdk", _, ..] => {
            let words = text.trim().trim_start_matches("dpdk").trim_start().to_owned();
            Attachment::Dpdk { namespace: None, words }
        }
        _ => {
            return Err(format!(
                "ports.{side} is `{text}'; it must be `memif SOCKET ID', `af-packet NAME', `af-xdp NAME', `tap NAME' or \
                 `dpdk DEVICE' (settings of --config)"
            ));
        }
    };
    Ok(Port { attachment, mac: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_given_in_words() {
        assert_eq!(
            port("left", "memif /run/m.sock 1").unwrap().attachment,
            Attachment::Memif { socket: "/run/m.sock".into(), id: 1 }
        );
        assert!(matches!(port("left", "af-xdp eth0").unwrap().attachment, Attachment::Interface { .. }));
        for words in ["0000:03:00.0", "\"net_pcap0,rx_pcap=a  b\" mtu 9000"] {
            let words = words.to_owned();
            let made = port("left", &format!(" dpdk  {words} ")).unwrap().attachment;
            assert_eq!(made, Attachment::Dpdk { namespace: None, words });
        }
        for wrong in ["", "memif", "memif /x y", "af-pocket eth0", "tap", "dpdk", "dpdk0 x"] {
            assert!(port("left", wrong).unwrap_err().contains("ports.left"), "{wrong}");
        }
    }

    #[test]
    fn the_program_goes_by_the_name_it_is_called_by() {
        assert_eq!(called_as(Some(&"/usr/bin/siitperf-tp".into())), Some("siitperf-tp"));
        assert_eq!(called_as(Some(&"./shoal-lab".into())), None);
        assert_eq!(called_as(None), None);
    }
}
