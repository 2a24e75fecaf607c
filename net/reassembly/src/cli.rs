//! Commands: `set interface reassembly`, `set ip local-reassembly`, limits, and what is held.

use std::fmt;

use serde::Serialize;
use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Families, Kind, Look, Reassembly, ReassemblyError, Settings, Side, Version, WaitFor};

/// The operator's user name for shallow virtual reassembly.
pub(crate) const SV_USER: &str = "cli";

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set interface reassembly <interface> {on | off | ip4 | ip6}",
        "Put fragments that an interface receives together",
        set_interface,
    )
    .examples(&["set interface reassembly local0 on", "set interface reassembly local0 off"])
    .doc(
        "`on` is for both families, `ip4` and `ip6` for that one only. Off at first: a router forwards fragments as \
         they are. The interface's packets take the ordinary path instead of the superpath while it is on.",
    ),
    Command::new(
        "set ip local-reassembly {on | off | ip4 | ip6}",
        "Put fragments that are for this router together",
        set_local,
    )
    .examples(&["set ip local-reassembly on"])
    .doc("On at first, for both families."),
    Command::new(
        "set ip4-full-reassembly [timeout <timeout:u32>] [max-reassemblies <max-reassemblies:u32>] \
         [max-fragments <max-fragments:u32>] [expire-walk-interval <expire-walk-interval:u32>]",
        "Set limits and times of full IPv4 reassembly",
        |control, args| set(control, args, Version::Ip4, Kind::Full),
    )
    .examples(&["set ip4-full-reassembly timeout 60000 max-reassemblies 1024", "set ip4-full-reassembly max-fragments 128"])
    .doc(LIMITS),
    Command::new(
        "set ip6-full-reassembly [timeout <timeout:u32>] [max-reassemblies <max-reassemblies:u32>] \
         [max-fragments <max-fragments:u32>] [expire-walk-interval <expire-walk-interval:u32>]",
        "Set limits and times of full IPv6 reassembly",
        |control, args| set(control, args, Version::Ip6, Kind::Full),
    )
    .examples(&["set ip6-full-reassembly timeout 60000"])
    .doc(LIMITS),
    Command::new(
        "set interface sv-reassembly <interface> {on | off | ip4 | ip6} [output]",
        "Tell fragments what the first one of their datagram says",
        set_sv,
    )
    .examples(&["set interface sv-reassembly local0 off", "set interface sv-reassembly local0 off output"])
    .doc(
        "Shallow virtual reassembly of what an interface receives or, with `output`, of what goes out by it. Features \
         that need it (address translation, access lists) switch it on for themselves; it stays on as long as anybody \
         needs it.",
    ),
    Command::new(
        "set ip4-sv-reassembly [timeout <timeout:u32>] [max-reassemblies <max-reassemblies:u32>] \
         [max-fragments <max-fragments:u32>] [expire-walk-interval <expire-walk-interval:u32>]",
        "Set limits and times of shallow virtual IPv4 reassembly",
        |control, args| set(control, args, Version::Ip4, Kind::ShallowVirtual),
    )
    .examples(&["set ip4-sv-reassembly timeout 5000"])
    .doc(LIMITS),
    Command::new(
        "set ip6-sv-reassembly [timeout <timeout:u32>] [max-reassemblies <max-reassemblies:u32>] \
         [max-fragments <max-fragments:u32>] [expire-walk-interval <expire-walk-interval:u32>]",
        "Set limits and times of shallow virtual IPv6 reassembly",
        |control, args| set(control, args, Version::Ip6, Kind::ShallowVirtual),
    )
    .examples(&["set ip6-sv-reassembly timeout 5000"])
    .doc(LIMITS),
    Command::new(
        "set ip reassembly extended [ip4 | ip6] {on | off}",
        "Let fragments wait for the last one of their datagram, too",
        set_extended,
    )
    .examples(&["set ip reassembly extended ip4 on", "set ip reassembly extended off"])
    .doc(
        "Shallow virtual reassembly lets fragments go on once the first one came. Extended, they wait for the last one as \
         well, which says how long the datagram is. Without a family it is both.",
    ),
    Command::new("show ip4-sv-reassembly [details]", "Show shallow virtual IPv4 reassembly", |control, args| {
        show(control, args, Version::Ip4, Kind::ShallowVirtual)
    })
    .examples(&["show ip4-sv-reassembly"]),
    Command::new("show ip6-sv-reassembly [details]", "Show shallow virtual IPv6 reassembly", |control, args| {
        show(control, args, Version::Ip6, Kind::ShallowVirtual)
    })
    .examples(&["show ip6-sv-reassembly"]),
    Command::new("show ip4-full-reassembly [details]", "Show full IPv4 reassembly", |control, args| {
        show(control, args, Version::Ip4, Kind::Full)
    })
    .examples(&["show ip4-full-reassembly", "show ip4-full-reassembly details"]),
    Command::new("show ip6-full-reassembly [details]", "Show full IPv6 reassembly", |control, args| {
        show(control, args, Version::Ip6, Kind::Full)
    })
    .examples(&["show ip6-full-reassembly", "show ip6-full-reassembly details"]),
];

const LIMITS: &str = "Times are in milliseconds, reassemblies are counted on each thread. What is not named stays. When \
     there are too many datagrams, or their fragments hold too many buffers, the oldest gives way.";

/// Which families the words name.
fn families(args: &Args) -> Families {
    let both = args.has("on");
    Families { ip4: both || args.has("ip4"), ip6: both || args.has("ip6") }
}

fn set_interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let done = control.get::<Reassembly>()?.set_interface(interface, families(args));
    done.map_err(|e| CliError::argument("interface", e.to_string()))?;
    Ok(Output::none())
}

fn set_sv(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (reassembly, InterfaceArg(interface)) = (control.get::<Reassembly>()?, args.get("interface")?);
    let side = if args.has("output") { Side::Output } else { Side::Input };
    let Families { ip4, ip6 } = families(args);
    for (version, on) in [(Version::Ip4, ip4), (Version::Ip6, ip6)] {
        let done = reassembly.use_sv((interface, version, side), SV_USER, on);
        done.map_err(|e| CliError::argument("interface", e.to_string()))?;
    }
    Ok(Output::none())
}

fn set_extended(control: &Control, args: &Args) -> Result<Output, CliError> {
    let reassembly = control.get::<Reassembly>()?;
    let until = if args.has("on") { WaitFor::Last } else { WaitFor::First };
    for (version, other) in [(Version::Ip4, "ip6"), (Version::Ip6, "ip4")] {
        if !args.has(other) {
            reassembly.set_waits(version, until);
        }
    }
    Ok(Output::none())
}

fn set_local(control: &Control, args: &Args) -> Result<Output, CliError> {
    let done = control.get::<Reassembly>()?.set_local(control, families(args));
    done.map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::none())
}

fn set(control: &Control, args: &Args, version: Version, kind: Kind) -> Result<Output, CliError> {
    let reassembly = control.get::<Reassembly>()?;
    let mut settings = reassembly.settings(version, kind);
    let Settings { timeout_ms, max_reassemblies, max_fragments, expire_walk_interval_ms } = &mut settings;
    let all = [
        ("timeout", timeout_ms),
        ("max-reassemblies", max_reassemblies),
        ("max-fragments", max_fragments),
        ("expire-walk-interval", expire_walk_interval_ms),
    ];
    for (name, value) in all {
        if let Some(new) = args.opt(name)? {
            *value = new;
        }
    }
    reassembly.set(version, kind, settings).map_err(|e| match &e {
        ReassemblyError::Range { what, .. } => {
            CliError::argument(*what, e.to_string()).nearest(e.nearest().map(|n| n.to_string()))
        }
        _ => CliError::failed(e.to_string()),
    })?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Shown {
    #[serde(skip)]
    title: &'static str,
    #[serde(skip)]
    kind: Kind,
    reassemblies: usize,
    max_reassemblies: u32,
    max_fragments: u32,
    timeout_ms: u32,
    expire_walk_interval_ms: u32,
    buffers: u32,
    max_buffers: u32,
    /// Of full reassembly: whether fragments for this router are put together.
    #[serde(skip_serializing_if = "Option::is_none")]
    local: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    datagrams: Option<Vec<Row>>,
}

#[derive(Serialize)]
struct Row {
    thread: usize,
    key: String,
    fragments: u32,
    bytes: u32,
    length: Option<u32>,
    age_ms: u64,
    given_up: bool,
}

fn show(control: &Control, args: &Args, version: Version, kind: Kind) -> Result<Output, CliError> {
    let (reassembly, details) = (control.get::<Reassembly>()?, args.has("details"));
    let look = reassembly.look(version, kind, details).map_err(|e| CliError::failed(e.to_string()))?;
    let Look { reassemblies, settings, buffers, most_buffers, datagrams } = look;
    let Settings { timeout_ms, max_reassemblies, max_fragments, expire_walk_interval_ms } = settings;
    let local = reassembly.local();
    let row = |d: crate::Datagram| Row {
        thread: d.thread,
        key: d.key,
        fragments: d.fragments,
        bytes: d.bytes,
        length: d.len,
        age_ms: d.age_ms,
        given_up: d.given_up,
    };
    Ok(Output::view(Shown {
        title: if version == Version::Ip4 { "IP4" } else { "IP6" },
        kind,
        reassemblies,
        max_reassemblies,
        max_fragments,
        timeout_ms,
        expire_walk_interval_ms,
        buffers,
        max_buffers: most_buffers,
        local: (kind == Kind::Full).then_some(if version == Version::Ip4 { local.ip4 } else { local.ip6 }),
        datagrams: details.then(|| datagrams.into_iter().map(row).collect()),
    }))
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { thread, key, fragments, bytes, length, age_ms, given_up } = self;
        let length = length.map_or("?".into(), |n| n.to_string());
        let given_up = if *given_up { ", given up" } else { "" };
        writeln!(f, "thread {thread}: {key}")?;
        writeln!(f, "  fragments: {fragments}, bytes: {bytes} of {length}, age: {age_ms}ms{given_up}")
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.datagrams.iter().flatten() {
            row.fmt(f)?;
        }
        let Shown { title, reassemblies, max_reassemblies, max_fragments, timeout_ms, buffers, .. } = self;
        let kind = if self.kind == Kind::Full { "full" } else { "shallow virtual" };
        writeln!(f, "---------------------")?;
        writeln!(f, "Number of {title} reassemblies: {reassemblies}")?;
        writeln!(
            f,
            "Maximum configured concurrent {kind} {title} reassemblies per worker-thread: {max_reassemblies}"
        )?;
        writeln!(f, "Maximum configured amount of fragments per {kind} {title} reassembly: {max_fragments}")?;
        writeln!(f, "Maximum configured {kind} {title} reassembly timeout: {timeout_ms}ms")?;
        let interval = self.expire_walk_interval_ms;
        writeln!(f, "Maximum configured {kind} {title} reassembly expire walk interval: {interval}ms")?;
        writeln!(f, "Buffers held by fragments of all kinds: {buffers} of at most {}", self.max_buffers)?;
        if let Some(local) = self.local {
            let local = if local { "on" } else { "off" };
            writeln!(f, "Reassembly of fragments for this router: {local}")?;
        }
        Ok(())
    }
}
