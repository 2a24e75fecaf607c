//! Commands: `ping`, `traceroute`.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Later, Output, Sink};

use crate::echo::{Target, most_data};
use crate::ping::{Detail, INTERVALS, Ping};
use crate::traceroute::Traceroute;

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::later(
        "ping [{ipv4 | ipv6}] <address:ip-address> [source <interface>] [size <size:u32>] [interval <interval:f64>] \
         [repeat <repeat:u32>] [table-id <table:u32>] [burst <burst:u32>] [verbose]",
        "Send ICMP or ICMPv6 echo requests to a host",
        ping,
    )
    .doc(
        "Prints a line for each reply and, at the end or when interrupted, how many came back. `size` is the data \
         behind the 16 bytes of ICMP header and time stamp (100), `interval` is in seconds (1), `repeat` is how \
         often (5), `burst` how many at a time (1). A link-local address needs `source`, which is its link.",
    )
    .examples(&[
        "ping 10.0.0.2",
        "ping 10.0.0.2 source loop0 repeat 3 interval 0.1 size 1400",
        "ping 2001:db8::2 repeat 3",
        "ping fe80::2 source loop0",
    ]),
    Command::later(
        "traceroute [{ipv4 | ipv6}] <address:ip-address> [source <interface>] [max-hops <hops:u8>] [max-ttl <hops:u8>] \
         [repeat <probes:u8>] [probes <probes:u8>] [interval <interval:f64>] [size <size:u32>] \
         [table-id <table:u32>] [icmp]",
        "Show the routers on the way to a host",
        traceroute,
    )
    .doc(
        "Sends ICMP echo requests with TTL (hop limit) 1, 2, 3 and so on, `repeat` (3) of each, and prints who answered and \
         how fast. `max-ttl` is another word for `max-hops` (30), `probes` for `repeat`; `interval` is how long an \
         answer may take, in seconds (1).",
    )
    .examples(&["traceroute 192.0.2.1", "traceroute 192.0.2.1 max-ttl 5 probes 1", "traceroute 2001:db8:9::1"]),
];

/// Most requests at a time: a frame.
const MOST_BURST: u32 = 256;

/// A value that must lie in a range; the nearest one that does is offered.
fn within<T: PartialOrd + Copy + std::fmt::Display>(
    name: &str,
    value: T,
    range: &std::ops::RangeInclusive<T>,
) -> Result<T, CliError> {
    if range.contains(&value) {
        return Ok(value);
    }
    let nearest = if value < *range.start() { range.start() } else { range.end() };
    let message = format!("{name} must be between {} and {}", range.start(), range.end());
    Err(CliError::argument(name, message).nearest(Some(nearest.to_string())))
}

fn target(args: &Args, size: u32) -> Result<Target, CliError> {
    let address: IpAddr = args.get("address")?;
    for (word, family, other) in
        [("ipv4", address.is_ipv4(), "an IPv6"), ("ipv6", address.is_ipv6(), "an IPv4")]
    {
        if args.has(word) && !family {
            let message = format!("{address} is {other} address, not one of {word}");
            return Err(CliError::argument("address", message));
        }
    }
    let size = within("size", args.or("size", size)?, &(0..=most_data(address) as u32))?;
    Ok(Target {
        address,
        source: args.opt::<InterfaceArg>("interface")?.map(|i| i.0),
        table: args.or("table", 0u32)?,
        size: size as usize,
    })
}

fn interval(args: &Args) -> Result<Duration, CliError> {
    Ok(Duration::from_secs_f64(within("interval", args.or("interval", 1.0)?, &INTERVALS)?))
}

fn read_ping(args: &Args) -> Result<Ping, CliError> {
    Ok(Ping {
        target: target(args, 100)?,
        repeat: args.or("repeat", 5u32)?,
        burst: within("burst", args.or("burst", 1u32)?, &(1..=MOST_BURST))?,
        interval: interval(args)?,
        detail: if args.has("verbose") { Detail::Verbose } else { Detail::Normal },
    })
}

fn ping(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        read_ping(&args)?.run(control, sink).await?;
        Ok(Output::none())
    })
}

fn read_traceroute(args: &Args) -> Result<Traceroute, CliError> {
    Ok(Traceroute {
        target: target(args, 32)?,
        max_hops: within("hops", args.or("hops", 30u8)?, &(1..=u8::MAX))?,
        probes: within("probes", args.or("probes", 3u8)?, &(1..=16))?,
        patience: interval(args)?,
    })
}

fn traceroute(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        read_traceroute(&args)?.run(control, sink).await?;
        Ok(Output::none())
    })
}
