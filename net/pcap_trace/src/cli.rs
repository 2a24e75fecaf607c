//! Commands: `pcap trace`, `pcap dispatch trace`, `set pcap filter function`, `show pcap filter function`.

use shoal_graph::FilterUse;
use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{CaptureSettings, DispatchStatus, DispatchTrace, PcapTrace};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "pcap trace [rx] [tx] [drop] [max <max:u32>] [intfc {any | <interface>}] [file <file:word>] \
         [max-bytes-per-pkt <bytes:u32>] [error <reason:word>] [filter] [preallocate-data] [free-data] [status] [off]",
        "Capture packets of interfaces, or dropped ones, in a file in /tmp",
        trace,
    )
    .examples(&[
        "pcap trace rx tx max 100 intfc any file look.pcap",
        "pcap trace drop max 100 error ip4-input.time_expired",
        "pcap trace status",
        "pcap trace off",
    ])
    .doc(
        "Packets are kept in memory and written by `off`. 1000 packets and 512 bytes of each unless `max` and \
         `max-bytes-per-pkt` say otherwise. `filter` takes packets only that the function chosen by `set pcap filter \
         function` wants. `preallocate-data` and `free-data` are taken for VPP's sake.",
    ),
    Command::new(
        "pcap dispatch trace [on] [max <max:u32>] [file <file:word>] [buffer-trace <node:node> <count:u32>] [status] [off]",
        "Capture each packet at every node it comes to, in a file in /tmp",
        dispatch,
    )
    .examples(&[
        "pcap dispatch trace on max 1000 file dispatch.pcap",
        "pcap dispatch trace on max 100 buffer-trace pg-input 10",
        "pcap dispatch trace status",
        "pcap dispatch trace off",
    ])
    .doc(
        "Wireshark shows the file: each record has the node, the buffer's number and metadata, and the packet as it came to \
         the node. 1000 records unless `max` says otherwise, in /tmp/dispatch.pcap. While it is on, packets pass every node \
         by itself, which is slower. `buffer-trace` asks for traces as `trace add` does; `show trace` shows them.",
    ),
    Command::new(
        "set pcap filter function <function:word>",
        "Choose what decides which packets are captured, with `filter`",
        choose,
    )
    .examples(&["set pcap filter function bpf_trace_filter"]),
    Command::new("show pcap filter function", "Show what may decide which packets are captured", show)
        .examples(&["show pcap filter function"]),
];

fn trace(control: &Control, args: &Args) -> Result<Output, CliError> {
    let trace = control.get::<PcapTrace>()?;
    if args.has("status") {
        let Some(status) = trace.status() else {
            return Ok(Output::text("pcap dispatch capture disabled\n"));
        };
        return Ok(Output::text(format!(
            "pcap {} dispatch capture enabled: {} of {} pkts...\ncapture to file {}\n",
            status.what.join(" and "),
            status.captured,
            status.max,
            status.file.display()
        )));
    }
    if args.has("off") {
        let (count, file) = trace.stop()?;
        return Ok(Output::text(written(count, &file)));
    }
    let default = CaptureSettings::default();
    trace.start(CaptureSettings {
        rx: args.has("rx"),
        tx: args.has("tx"),
        drop: args.has("drop"),
        max: args.opt::<u32>("max")?.map_or(default.max, |max| max as usize),
        max_bytes: args.opt::<u32>("bytes")?.map_or(default.max_bytes, |bytes| bytes as usize),
        interface: args.opt::<InterfaceArg>("interface")?.map(|InterfaceArg(index)| index),
        file: args.text("file").map(str::to_owned),
        filter: args.has("filter"),
        reason: args.text("reason").map(str::to_owned),
    })?;
    Ok(Output::none())
}

fn dispatch(control: &Control, args: &Args) -> Result<Output, CliError> {
    let trace = control.get::<DispatchTrace>()?;
    if args.has("status") {
        let text = match trace.status() {
            None => "pcap dispatch capture is off...\n".to_owned(),
            Some(DispatchStatus { captured, max, file }) => format!(
                "pcap dispatch capture is on: {captured} of {max} pkts...\ncapture to file {}\n",
                file.display()
            ),
        };
        return Ok(Output::text(text));
    }
    if args.has("off") {
        let (count, file) = trace.stop()?;
        return Ok(Output::text(written(count, &file)));
    }
    let graph = control.graph()?;
    let node = args.text("node").map(|node| graph.node(node)).transpose()?;
    let max = args.opt::<u32>("max")?.map_or(DispatchTrace::MAX, |max| max as usize);
    trace.start(max, args.text("file").unwrap_or(DispatchTrace::FILE))?;
    if let Some(node) = node {
        graph.trace_add(node, args.get("count")?, None)?;
    }
    Ok(Output::none())
}

fn written(count: usize, file: &std::path::Path) -> String {
    format!("Write {count} packets to {}, and stop capture...\n", file.display())
}

fn choose(control: &Control, args: &Args) -> Result<Output, CliError> {
    let name: String = args.get("function")?;
    control.graph()?.filters().select(FilterUse::Pcap, &name).map_err(|there| {
        CliError::argument(
            "function",
            format!("no filter function `{name}', there are: {}", there.join(", ")),
        )
    })?;
    Ok(Output::none())
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let line = |function: shoal_graph::FilterInfo| {
        let mark = if function.selected { "(*) " } else { "    " };
        format!(
            "{mark}name:{} description: {} priority: {}\n",
            function.name, function.description, function.priority
        )
    };
    let all = control.graph()?.filters().list(FilterUse::Pcap);
    Ok(Output::text(all.into_iter().map(line).collect::<String>()))
}
