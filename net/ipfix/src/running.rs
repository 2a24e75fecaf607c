//! What rebuilds it.

use std::fmt::Write as _;

use shoal_datagram::Checksum;
use shoal_module::{Control, Phase, Running};

use crate::exporter::{INTERVAL, PATH_MTU, PORT};
use crate::{Exporter, Ipfix};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(ipfix) = running.part::<Ipfix>(control) else { return };
    for (index, exporter) in ipfix.exporters(0).into_iter().filter(|(_, exporter)| exporter.is_on()) {
        let command = if index == 0 { "set ipfix exporter" } else { "ipfix exporter add" };
        running.line(Phase::Policies, format!("{command} {}", settings(&exporter)));
    }
    if let Some((domain, port)) = ipfix.classify_stream() {
        running.line(Phase::Policies, format!("set ipfix classify stream domain {domain} src-port {port}"));
    }
}

fn settings(exporter: &Exporter) -> String {
    let Exporter { collector, port, source, vrf, path_mtu, template_interval, checksum } = *exporter;
    let mut line = format!("collector {collector} src {source}");
    if let Some(vrf) = vrf {
        let _ = write!(line, " fib-id {vrf}");
    }
    let numbers = [
        ("port", u32::from(port), u32::from(PORT)),
        ("path-mtu", path_mtu, PATH_MTU),
        ("template-interval", template_interval, INTERVAL),
    ];
    for (word, value, usual) in numbers {
        if value != usual {
            let _ = write!(line, " {word} {value}");
        }
    }
    if checksum == Checksum::Computed {
        line += " udp-checksum";
    }
    line
}
