//! `show hardware-interfaces`: devices, their queues and what their drivers say.

use std::fmt;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::column::{centre, left, line, number};
use super::show::chosen;
use crate::{IfFlags, Info, Interfaces};

pub(super) const SHOW_HARDWARE: Command = Command::new(
    "show hardware-interfaces [<interface>] ... [{brief | verbose | detail}]",
    "Show devices with link, queues and what their drivers say",
    show,
)
.examples(&["show hardware-interfaces", "sh hardware brief", "show hardware-interfaces local0 detail"]);

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let brief = args.has("brief");
    let mut all = chosen(&interfaces, args)?;
    if !args.has("interface") {
        // Their device is that of their port.
        all.retain(|index| interfaces.sub(*index).is_none());
    }
    let detail = args.has("detail") || args.has("verbose");
    // One that goes before its turn is left out.
    let device = move |index| {
        let info = interfaces.info(index).ok()?;
        let more = if detail { interfaces.detail(info.index).ok()? } else { String::new() };
        let mut device = Device::new(&interfaces, info, brief).ok()?;
        device.lines.extend(more.lines().map(str::to_owned));
        Some(device)
    };
    Ok(Output::rows_in("devices", head(), all.into_iter().filter_map(device)))
}

#[derive(Serialize)]
struct OneQueue {
    queue: u32,
    thread: usize,
    thread_name: String,
    mode: String,
}

#[derive(Serialize)]
struct OneTxQueue {
    queue: u32,
    threads: Vec<usize>,
}

#[derive(Serialize)]
struct Device {
    name: String,
    sw_if_index: u32,
    link: &'static str,
    speed_kbps: u32,
    rx_queues: Vec<OneQueue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tx_queues: Vec<OneTxQueue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ethernet_address: Option<String>,
    class: &'static str,
    lines: Vec<String>,
    #[serde(skip)]
    brief: bool,
}

impl Device {
    fn new(interfaces: &Interfaces, info: Info, brief: bool) -> Result<Self, CliError> {
        let threads = interfaces.graph().threads();
        let name = |n| threads.iter().find(|t| t.index == n).map(|t| t.name.clone()).unwrap_or_default();
        let queue = |q: shoal_graph::QueueInfo| OneQueue {
            queue: q.queue,
            thread: q.thread,
            thread_name: name(q.thread),
            mode: q.mode.to_string(),
        };
        let tx_queue = |q: crate::TxQueueInfo| OneTxQueue { queue: q.number, threads: q.threads };
        Ok(Device {
            tx_queues: interfaces.tx_queues(info.index)?.into_iter().map(tx_queue).collect(),
            rx_queues: interfaces.queues(info.index)?.into_iter().map(queue).collect(),
            sw_if_index: info.index.0,
            link: if info.flags.has(IfFlags::LINK_UP) { "up" } else { "down" },
            speed_kbps: info.speed_kbps,
            ethernet_address: info.flags.has(IfFlags::ETHERNET).then(|| info.mac.to_string()),
            class: info.class,
            lines: info.device.lines().map(str::to_owned).collect(),
            name: info.name,
            brief,
        })
    }
}

/// `10 Gbps`, `2.5 Gbps`, `100 Mbps`, `unknown`.
fn speed(kbps: u32) -> String {
    match kbps {
        0 => "unknown".into(),
        1..1_000 => format!("{kbps} Kbps"),
        1_000..1_000_000 => format!("{} Mbps", f64::from(kbps) / 1e3),
        _ => format!("{} Gbps", f64::from(kbps) / 1e6),
    }
}

fn head() -> String {
    line(&[centre("Name", 32), centre("Idx", 6), centre("Link", 8), "Hardware".into()])
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells =
            [left(&self.name, 32), number(self.sw_if_index, 6), centre(self.link, 8), self.name.clone()];
        f.write_str(&line(&cells))?;
        if self.brief { Ok(()) } else { self.fmt_rest(f) }
    }
}

impl Device {
    fn fmt_rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  Link speed: {}", speed(self.speed_kbps))?;
        if !self.rx_queues.is_empty() {
            writeln!(f, "  RX Queues:")?;
            f.write_str(&line(&["    ".into(), left("queue", 6), left("thread", 15), left("mode", 10)]))?;
        }
        for q in &self.rx_queues {
            let thread = format!("{} ({})", q.thread_name, q.thread);
            let cells = ["    ".into(), left(q.queue, 6), left(thread, 15), left(&q.mode, 10)];
            f.write_str(&line(&cells))?;
        }
        if !self.tx_queues.is_empty() {
            writeln!(f, "  TX Queues:")?;
            f.write_str(&line(&["    ".into(), left("queue", 6), "threads".into()]))?;
        }
        for q in &self.tx_queues {
            let threads: Vec<String> = q.threads.iter().map(usize::to_string).collect();
            f.write_str(&line(&["    ".into(), left(q.queue, 6), threads.join(", ")]))?;
        }
        if let Some(mac) = &self.ethernet_address {
            writeln!(f, "  Ethernet address {mac}")?;
        }
        writeln!(f, "  {}", self.class)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(brief: bool) -> Device {
        let queue = |queue, thread, name: &str| OneQueue {
            queue,
            thread,
            thread_name: name.into(),
            mode: "adaptive".into(),
        };
        Device {
            name: "host-eth0".into(),
            sw_if_index: 1,
            link: "up",
            speed_kbps: 10_000_000,
            rx_queues: vec![queue(0, 0, "vpp_main"), queue(1, 1, "vpp_wk_0")],
            tx_queues: vec![OneTxQueue { queue: 0, threads: vec![0, 1] }],
            ethernet_address: Some("02:fe:00:00:00:01".into()),
            class: "Linux PACKET socket interface",
            lines: vec!["ring: 32 blocks".into()],
            brief,
        }
    }

    #[test]
    fn devices_are_laid_out_as_vpps() {
        let text = format!("{}{}", head(), device(false));
        assert_eq!(
            text,
            "              Name                Idx   Link  Hardware\n\
             host-eth0                          1     up   host-eth0\n  \
             Link speed: 10 Gbps\n  \
             RX Queues:\n    \
             queue thread         mode\n    \
             0     vpp_main (0)   adaptive\n    \
             1     vpp_wk_0 (1)   adaptive\n  \
             TX Queues:\n    \
             queue threads\n    \
             0     0, 1\n  \
             Ethernet address 02:fe:00:00:00:01\n  \
             Linux PACKET socket interface\n  \
             ring: 32 blocks\n"
        );
    }

    #[test]
    fn brief_is_one_line_each() {
        let text = format!("{}{}", head(), device(true));
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn speeds_have_the_unit_that_fits() {
        assert_eq!([0, 64, 100_000, 2_500_000].map(speed), ["unknown", "64 Kbps", "100 Mbps", "2.5 Gbps"]);
    }
}
