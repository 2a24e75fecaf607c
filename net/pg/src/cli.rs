//! Commands.

use std::path::PathBuf;
use std::rc::Rc;

use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, FromArg, Output, check, nearest};
use shoal_wire::MacAddress;

use crate::show::Detail;
use crate::spec::{SIZES, read_size};
use crate::{Change, CreateInterface, Mode, Pg, Size};
use shoal_interface::{Interfaces, SwIfIndex};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "create packet-generator interface <name:pg-name> [hw-addr <mac>] [gso-enabled] [gso-size <gso-size:u16>] \
         [coalesce-enabled] [csum-offload-enabled] [mode {ethernet | ip4 | ip6}]",
        "Create an interface whose other end is a capture file or a stream",
        create,
    )
    .examples(&[
        "create packet-generator interface pg0",
        "create packet-generator interface pg1 hw-addr 02:fe:00:00:00:07 gso-enabled gso-size 1460",
        "create packet-generator interface pg2 mode ip4",
    ]),
    Command::new("delete packet-generator interface <interface:pg-interface>", "Delete a packet-generator interface", delete)
        .examples(&["delete packet-generator interface pg0"]),
    Command::new("packet-generator new <spec:block>", "Define a stream of packets", new)
        .examples(&[
            "packet-generator new { name s0 limit 100 rate 1e3 size 64-64 interface pg0 node ip4-input \
             data { UDP: 10.0.0.1 - 10.0.0.100 -> 10.1.0.1 UDP: 1234 -> 5678 incrementing 30 } }",
            "packet-generator new pcap /tmp/in.pcap source pg0 name replay limit 5 worker 0",
        ])
        .doc(DOC),
    Command::new("packet-generator enable-stream [<stream:pg-stream>]", "Start one stream or all", enable)
        .examples(&["packet-generator enable-stream", "packet-generator enable-stream s0"]),
    Command::new("packet-generator disable-stream [<stream:pg-stream>]", "Stop one stream or all", disable)
        .examples(&["packet-generator disable-stream s0"]),
    Command::new("packet-generator delete <stream:pg-stream>", "Delete a stream", delete_stream)
        .examples(&["packet-generator delete s0"]),
    Command::new(
        "packet-generator configure <stream:pg-stream> [limit <limit:u64>] [rate <rate:f64>] [size <size:pg-size>] \
         [maxframe <maxframe:u32>]",
        "Change a stream, also while it runs",
        configure,
    )
    .examples(&["packet-generator configure s0 limit 1000 rate 1e6", "packet-generator configure s0 size 64-1500"])
    .doc(
        "Sizes as in `packet-generator new`: `A-B` one after the other, `A+B` at random. Packets of a capture keep \
         theirs. What was sent so far still counts against `limit`.",
    ),
    Command::new(
        "packet-generator mac-filter <interface:pg-interface> {on | off}",
        "Take only frames an Ethernet card would take, or all",
        mac_filter,
    )
    .examples(&["packet-generator mac-filter pg0 on", "packet-generator mac-filter pg0 off"])
    .doc(
        "With `on`, received frames for another station are dropped and counted by `pg-input-mac-filter`, a feature \
         of the arc `device-input`; those for the interface's MAC address, broadcasts and groups go on. Off at first.",
    ),
    Command::new(
        "packet-generator capture <interface:pg-interface> [pcap <file:path>] [count <count:u64>] [disable]",
        "Write what an interface sends into a capture file, or end that",
        capture,
    )
    .examples(&["packet-generator capture pg0 pcap /tmp/out.pcap count 100", "packet-generator capture pg0 disable"]),
    Command::new("show packet-generator [verbose]", "Show streams", show).examples(&["show packet-generator"]),
];

const DOC: &str = "Words in any order: `name S`, `limit N` (0: no limit; a capture is replayed once), `rate PPS` \
(0: as fast as possible), `size A-B` (one after the other) or `A+B` (at random), `maxframe N`, `worker N`, \
`interface IF` or `source pgN`, `tx-interface IF`, `node NODE`, `pcap FILE`, `buffer-flags ...`, or `data { ... }`: \
headers such as `IP4: MAC -> MAC`, `UDP: 10.0.0.1 - 10.0.0.9 -> 10.1.0.1` (`+` instead of `-`: at random), \
`UDP: 1234 -> 5678`, `ICMP echo_request`, `request: MAC/IP -> MAC/IP`, then `incrementing N` or `hex 0x...`.";

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[
    ArgType::new("pg-name", "pg and a number", check::<PgName>),
    ArgType::live("pg-interface", "a packet-generator interface", check::<PgInterface>, complete_interfaces),
    ArgType::new("pg-size", SIZES, check::<SizeArg>),
    ArgType::live("pg-stream", "a stream", check::<StreamName>, complete_streams),
];

fn pg(control: &Control) -> Result<Rc<Pg>, Expected> {
    control.get::<Pg>().map_err(|e| Expected::new(e.to_string()))
}

/// `pg7`.
struct PgName(u32);

impl FromArg for PgName {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let id = text.strip_prefix("pg").unwrap_or(text).parse().ok();
        id.map(PgName).ok_or_else(|| Expected::new("pg and a number, such as pg0"))
    }
}

struct PgInterface(SwIfIndex);

impl FromArg for PgInterface {
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected> {
        let interfaces = control.get::<Interfaces>().map_err(|e| Expected::new(e.to_string()))?;
        let index =
            interfaces.by_name(text).filter(|i| pg(control).is_ok_and(|pg| pg.interfaces().contains(i)));
        let names = complete_interfaces(control, "");
        index.map(PgInterface).ok_or_else(|| {
            let near = nearest(text, names.iter().map(String::as_str)).map(str::to_owned);
            Expected::new("the name of a packet-generator interface").nearest(near)
        })
    }
}

struct SizeArg(Size);

impl FromArg for SizeArg {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        read_size(text).map(SizeArg).ok_or_else(|| Expected::new(SIZES))
    }
}

struct StreamName(String);

impl FromArg for StreamName {
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected> {
        let names = pg(control)?.stream_names();
        if names.iter().any(|n| n == text) {
            return Ok(StreamName(text.to_owned()));
        }
        let near = nearest(text, names.iter().map(String::as_str)).map(str::to_owned);
        Err(Expected::new("the name of a stream").nearest(near))
    }
}

fn complete_interfaces(control: &Control, _prefix: &str) -> Vec<String> {
    let (Ok(pg), Ok(interfaces)) = (control.get::<Pg>(), control.get::<Interfaces>()) else {
        return Vec::new();
    };
    pg.interfaces().into_iter().filter_map(|i| interfaces.name(i).ok()).collect()
}

fn complete_streams(control: &Control, _prefix: &str) -> Vec<String> {
    control.get::<Pg>().map(|pg| pg.stream_names()).unwrap_or_default()
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let PgName(id) = args.get("name")?;
    let mode = [Mode::Ip4, Mode::Ip6].into_iter().find(|m| args.has(&m.to_string()));
    let gso_size = args.opt::<u16>("gso-size")?;
    let gso = args.has("gso-enabled") || gso_size.is_some();
    let create = CreateInterface {
        id,
        mac: args.opt::<MacAddress>("mac")?,
        gso_size: gso.then(|| gso_size.unwrap_or(1460)),
        coalesce: args.has("coalesce-enabled"),
        checksum_offload: args.has("csum-offload-enabled"),
        mode: mode.unwrap_or_default(),
    };
    let pg = control.get::<Pg>()?;
    let index = pg.create_interface(&create)?;
    pg.interfaces.set_fed(index);
    Ok(Output::none())
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    let PgInterface(index) = args.get("interface")?;
    control.get::<Pg>()?.delete_interface(index)?;
    Ok(Output::none())
}

fn new(control: &Control, args: &Args) -> Result<Output, CliError> {
    let pg = control.get::<Pg>()?;
    let spec = pg.parse_stream(args.text("spec").unwrap_or_default())?;
    pg.add_stream(spec)?;
    Ok(Output::none())
}

fn each(
    control: &Control,
    args: &Args,
    act: impl Fn(&Pg, &str) -> Result<(), crate::PgError>,
) -> Result<Output, CliError> {
    let pg = control.get::<Pg>()?;
    match args.opt::<StreamName>("stream")? {
        Some(StreamName(name)) => act(&pg, &name)?,
        None => pg.stream_names().iter().try_for_each(|name| act(&pg, name))?,
    }
    Ok(Output::none())
}

fn enable(control: &Control, args: &Args) -> Result<Output, CliError> {
    each(control, args, Pg::enable)
}

fn disable(control: &Control, args: &Args) -> Result<Output, CliError> {
    each(control, args, Pg::disable)
}

fn delete_stream(control: &Control, args: &Args) -> Result<Output, CliError> {
    each(control, args, Pg::delete_stream)
}

fn configure(control: &Control, args: &Args) -> Result<Output, CliError> {
    let change = Change {
        limit: args.opt("limit")?,
        rate: args.opt("rate")?,
        maxframe: args.opt::<u32>("maxframe")?.map(|n| n as usize),
        size: args.opt::<SizeArg>("size")?.map(|SizeArg(size)| size),
    };
    each(control, args, |pg, name| pg.configure(name, change))
}

fn mac_filter(control: &Control, args: &Args) -> Result<Output, CliError> {
    let PgInterface(index) = args.get("interface")?;
    control.get::<Pg>()?.filter_macs(index, args.has("on"))?;
    Ok(Output::none())
}

fn capture(control: &Control, args: &Args) -> Result<Output, CliError> {
    let pg = control.get::<Pg>()?;
    let PgInterface(index) = args.get("interface")?;
    if args.has("disable") {
        pg.end_capture(index)?;
    } else {
        pg.capture(index, &args.get::<PathBuf>("file")?, args.opt("count")?)?;
    }
    Ok(Output::none())
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let detail = if args.has("verbose") { Detail::Verbose } else { Detail::Brief };
    Ok(Output::view(control.get::<Pg>()?.show(detail)))
}
