//! Commands: `set ipfix`, `ipfix exporter`, `ipfix flush`, `show ipfix exporters`.

use std::fmt;
use std::rc::Rc;

use serde::Serialize;
use shoal_datagram::Checksum;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::exporter::{INTERVAL, LEAST_MTU, MOST_MTU, PATH_MTU, PORT};
use crate::{Exporter, Ipfix, IpfixError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set ipfix exporter {disable | {collector <collector:ip-address> & src <src:ip-address> & [port <port:u16>] \
         & [fib-id <fib-id:u32>] & [path-mtu <path-mtu:u32>] & [template-interval <template-interval:u32>] & [udp-checksum]}}",
        "Send IPFIX records to a collector, or send no more",
        set,
    )
    .examples(&["set ipfix exporter collector 192.0.2.9 src 192.0.2.1 path-mtu 1450 template-interval 30"])
    .doc(
        "To port 4739, in packets of 512 bytes, with templates every 20 seconds and without UDP checksum over IPv4, where nothing \
         else is set.",
    ),
    Command::new(
        "ipfix exporter {add {collector <collector:ip-address> & src <src:ip-address> & [port <port:u16>] \
         & [fib-id <fib-id:u32>] & [path-mtu <path-mtu:u32>] & [template-interval <template-interval:u32>] & [udp-checksum]} \
         | del <of:ip-address>}",
        "Send IPFIX records to another collector, too, or no more",
        exporter,
    )
    .examples(&["ipfix exporter add collector 192.0.2.10 src 192.0.2.1"])
    .doc("Up to four beside the one of `set ipfix exporter`. A collector that is there already gets the new settings."),
    Command::new("ipfix flush", "Send IPFIX templates and records that wait", flush).examples(&["ipfix flush"]),
    Command::new(
        "set ipfix classify stream [domain <domain:u32>] [src-port <src-port:u16>] [disable]",
        "Say in which stream IPFIX records of classifier tables are to be",
        classify,
    )
    .examples(&["set ipfix classify stream domain 2 src-port 4739"]),
    Command::new("show ipfix exporters", "Show where IPFIX records go, and how many went", show)
        .examples(&["show ipfix exporters"]),
];

fn ipfix(control: &Control) -> Result<Rc<Ipfix>, CliError> {
    Ok(control.get::<Ipfix>()?)
}

fn settings(args: &Args) -> Result<Exporter, CliError> {
    Ok(Exporter {
        collector: args.get("collector")?,
        port: args.or("port", PORT)?,
        source: args.get("src")?,
        vrf: args.opt("fib-id")?,
        path_mtu: args.or("path-mtu", PATH_MTU)?,
        template_interval: args.or("template-interval", INTERVAL)?,
        checksum: if args.has("udp-checksum") { Checksum::Computed } else { Checksum::Zero },
    })
}

/// Points at the argument that is wrong.
fn refused(error: &IpfixError, exporter: &Exporter) -> CliError {
    let (argument, near) = match error {
        IpfixError::NoSource | IpfixError::Families(..) => ("src", None),
        IpfixError::NoHost(address) if *address != exporter.collector => ("src", None),
        IpfixError::Port => ("port", Some(PORT.to_string())),
        IpfixError::TooBig(_) => ("path-mtu", Some(MOST_MTU.to_string())),
        IpfixError::TooSmall(_) => ("path-mtu", Some(LEAST_MTU.to_string())),
        IpfixError::Interval => ("template-interval", Some("1".to_owned())),
        IpfixError::Fib(_) => ("fib-id", None),
        IpfixError::TooMany => return CliError::failed(error.to_string()),
        _ => ("collector", None),
    };
    CliError::argument(argument, error.to_string()).nearest(near)
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let exporter = if args.has("disable") { Exporter::OFF } else { settings(args)? };
    ipfix(control)?.set(exporter).map_err(|e| refused(&e, &exporter))?;
    Ok(Output::text(format!("{}\n", Line(&exporter))))
}

fn exporter(control: &Control, args: &Args) -> Result<Output, CliError> {
    let ipfix = ipfix(control)?;
    if args.has("del") {
        let of = args.get("of")?;
        ipfix.remove(of).map_err(|e| CliError::argument("of", e.to_string()))?;
    } else {
        let exporter = settings(args)?;
        ipfix.add(exporter).map_err(|e| refused(&e, &exporter))?;
    }
    Ok(Output::none())
}

fn flush(control: &Control, _: &Args) -> Result<Output, CliError> {
    ipfix(control)?.flush();
    Ok(Output::none())
}

fn classify(control: &Control, args: &Args) -> Result<Output, CliError> {
    if args.has("disable") {
        ipfix(control)?.forget_classify_stream();
        return Ok(Output::none());
    }
    ipfix(control)?.set_classify_stream(args.or("domain", 1)?, args.or("src-port", PORT)?);
    Ok(Output::none())
}

/// An exporter as VPP says it.
struct Line<'a>(&'a Exporter);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exporter { collector, source, vrf, path_mtu, template_interval, checksum, .. } = self.0;
        if !self.0.is_on() {
            return f.write_str("IPFIX Collector is disabled");
        }
        let fib = vrf.map_or(-1, i64::from);
        let sums = if *checksum == Checksum::Computed { "enabled" } else { "disabled" };
        write!(
            f,
            "Collector {collector}, src address {source}, fib index {fib}, path MTU {path_mtu}, \
             template resend interval {template_interval}s, udp checksum {sums}"
        )
    }
}

#[derive(Serialize)]
struct Row {
    index: u32,
    enabled: bool,
    port: u16,
    text: String,
    messages: u64,
    records: u64,
    lost: u64,
}

#[derive(Serialize)]
#[serde(transparent)]
struct View(Vec<Row>);

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let ipfix = ipfix(control)?;
    let row = |(index, exporter): (u32, Exporter)| {
        let (messages, records, lost) = ipfix.sent(index);
        let (enabled, text) = (exporter.is_on(), Line(&exporter).to_string());
        Row { index, enabled, port: exporter.port, text, messages, records, lost }
    };
    Ok(Output::view(View(ipfix.exporters(0).into_iter().map(row).collect())))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { index, enabled, port, text, messages, records, lost } in &self.0 {
            writeln!(f, "[{index}] {text}")?;
            if *enabled {
                writeln!(f, "  port {port}, messages {messages}, records {records}, lost {lost}")?;
            }
        }
        Ok(())
    }
}
