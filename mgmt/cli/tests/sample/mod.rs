//! A few commands in the shape of real ones, and a router state with three interfaces.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests
#![allow(dead_code)] // each test file uses its part

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use shoal_cli::Cli;
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, Later, Output, Sink, nearest};

/// Interfaces by name.
pub struct Interfaces(pub RefCell<Vec<String>>);

fn names(control: &Control, _: &str) -> Vec<String> {
    control.get::<Interfaces>().map(|i| i.0.borrow().clone()).unwrap_or_default()
}

fn known(control: &Control, text: &str) -> Result<(), Expected> {
    let names = names(control, "");
    if names.iter().any(|n| n == text) {
        return Ok(());
    }
    let near = nearest(text, names.iter().map(String::as_str)).map(str::to_owned);
    Err(Expected::new("an interface").nearest(near))
}

fn prefix(_: &Control, text: &str) -> Result<(), Expected> {
    let ok = text.split_once('/').is_some_and(|(a, l)| {
        a.parse::<std::net::Ipv4Addr>().is_ok() && l.parse::<u8>().is_ok_and(|l| l <= 32)
    });
    if ok { Ok(()) } else { Err("an IPv4 prefix such as 192.0.2.0/24".into()) }
}

pub static TYPES: &[ArgType] = &[
    ArgType::live("interface", "interface name", known, names),
    ArgType::new("ip4-prefix", "IPv4 prefix", prefix),
];

/// Says what it was called with: `name=text` for each item.
fn echo(_: &Control, args: &Args) -> Result<Output, CliError> {
    let items: Vec<_> = args.items().iter().map(|i| format!("{}={}", i.name, args.text_of(i))).collect();
    Ok(Output::text(items.join(" ")))
}

#[derive(Serialize)]
struct Version {
    version: String,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "shoal v{}", self.version)
    }
}

fn version(_: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Version { version: "1.2".into() }))
}

fn silent(_: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::none())
}

fn small(_: &Control, args: &Args) -> Result<Output, CliError> {
    let n: u8 = args.get("n")?;
    if n == 13 { Err(CliError::failed("thirteen is taken")) } else { Ok(Output::text(format!("{n}"))) }
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let name: String = args.get("name")?;
    control.get::<Interfaces>()?.0.borrow_mut().push(name.clone());
    Ok(Output::text(name))
}

fn big(_: &Control, args: &Args) -> Result<Output, CliError> {
    let n: usize = args.get("n")?;
    Ok(Output::text("0123456789abcde\n".repeat(n)))
}

/// Rows that `test counted` made.
pub static MADE: AtomicUsize = AtomicUsize::new(0);

#[derive(Serialize)]
struct Row {
    row: usize,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "row {:011}", self.row)
    }
}

/// Rows of 16 bytes.
fn rows(_: &Control, args: &Args) -> Result<Output, CliError> {
    let all = (0..args.get::<usize>("n")?).map(|row| Row { row });
    Ok(Output::rows("rows:\n", all))
}

/// The same, which are counted.
fn counted(_: &Control, args: &Args) -> Result<Output, CliError> {
    let all = (0..args.get::<usize>("n")?).map(|row| Row { row });
    Ok(Output::rows(
        "rows:\n",
        all.inspect(|_| {
            MADE.fetch_add(1, Ordering::Relaxed);
        }),
    ))
}

/// Gives way once between lines and stops when the client has gone.
fn count(_: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        for i in 0..args.get::<u32>("n")? {
            sink.line(i)?;
            futures_lite::future::yield_now().await;
        }
        Ok(Output::text("done"))
    })
}

fn hold(_: &Control, _: &Args) -> Result<Output, CliError> {
    std::thread::sleep(std::time::Duration::from_millis(600));
    Ok(Output::text("held"))
}

fn forever(_: Rc<Control>, _: Args, sink: Sink) -> Later {
    Box::pin(async move {
        sink.line("waiting")?;
        sink.gone().await;
        Ok(Output::text("stopped"))
    })
}

pub static COMMANDS: &[Command] = &[
    Command::new("show version", "Show the version", version).examples(&["sh ver"]),
    Command::new("show interface [<interface>] ... [address] [features] [verbose]", "Show interfaces", echo)
        .examples(&["show interface", "show int addr"]),
    Command::new("show interface rx-placement", "Show queues", silent),
    Command::new("show ip fib [table <table:u32>] [<ip4-prefix>] [detail]", "Show routes", echo),
    Command::new("show ip neighbors", "Show neighbours", silent),
    Command::new("show ip6 fib", "Show IPv6 routes", silent),
    Command::new("show errors", "Show error counters", silent),
    Command::new("set interface state <interface> {up | down}", "Set the state", echo),
    Command::new(
        "set interface ip address [del] <interface> {<ip4-prefix> | all}",
        "Add or delete an address",
        echo,
    ),
    Command::new("set interface ip table <interface> <n:u32>", "Set the table", echo),
    Command::new(
        "create host-interface name <host-if:word> [hw-addr <mac:word>] [num-rx-queues <n:u32>]",
        "Use a host's interface",
        echo,
    ),
    Command::new("create loopback name <name:word>", "Make an interface", create),
    Command::new(
        "create vxlan tunnel {src <src:ip4-address> & dst <dst:ip4-address> & vni <vni:u32> & [del]}",
        "Make a tunnel",
        echo,
    ),
    Command::new(
        "trace add <node:word> <count:u32> [filter <filter:rest-or-quoted>] [verbose]",
        "Trace",
        echo,
    ),
    Command::new("packet-generator new <stream:block>", "Make a stream", echo),
    Command::new(
        "ip route {add | del} <ip4-prefix> {via {<hop:ip4-address> [<interface>] | drop} [weight <w:u8>]} ...",
        "Change routes",
        echo,
    ),
    Command::new(
        "set acl {permit | deny} src <p:ip4-prefix> [, {permit | deny} src <p:ip4-prefix>] ...",
        "Acl",
        echo,
    ),
    Command::new("test small <n:u32>", "Take a small number", small),
    Command::new("test big <n:u32>", "Print n lines of 16 bytes", big),
    Command::new("test rows <n:u32>", "Print n rows of 16 bytes", rows),
    Command::new("test counted <n:u32>", "Print n rows of 16 bytes and count them", counted),
    Command::later("test count <n:u32>", "Count slowly", count),
    Command::new("test hold", "Hold up the thread", hold),
    Command::later("test forever", "Wait for the client to leave", forever),
];

pub fn cli() -> Cli {
    Cli::new(COMMANDS, TYPES).unwrap()
}

pub fn control() -> Rc<Control> {
    let control = Rc::new(Control::new());
    control.put(Interfaces(RefCell::new(vec!["local0".into(), "tap0".into(), "tap10".into()])));
    control
}
