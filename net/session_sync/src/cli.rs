//! Commands: `session-sync ...`, `show session-sync`.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use serde::Serialize;
use shoal_adj::Family;
use shoal_bfd::{Hop, SessionKey};
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_nat_state::sync::{Misfit, Role};
use shoal_redundancy::Group;

use crate::running::role_words;
use crate::{Key, Peer, RoleSource, SessionSync, SyncError, Timers};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "session-sync peer <peer:ip-address> local <local:ip-address> [port <port:u32>] {key <key:word> | no-authentication}",
        "Share NAT sessions with another router",
        set_peer,
    )
    .examples(&[
        "session-sync peer 192.0.2.2 local 192.0.2.1 key 000102030405060708090a0b0c0d0e0f",
        "session-sync peer 2001:db8::2 local 2001:db8::1 port 8791 no-authentication",
    ])
    .doc(
        "Both routers name each other, with the same port (UDP 8790 by default) and the same key of 32 to 128 hexadecimal digits. \
         `no-authentication` is for a link that only the two routers are on: anything that can send from the other router's address can \
         make and end sessions. Sessions of nat44-ed and nat64 are shared.",
    ),
    Command::new("session-sync peer del", "Share NAT sessions no more", del_peer)
        .examples(&["session-sync peer del"]),
    Command::new(
        "session-sync role {active | standby | vrrp <vrrp:interface> vr_id <vr-id:u8> [ipv6] | interface <interface> | \
         bfd local-addr <local:ip-address> peer-addr <remote:ip-address> [over <over:interface>]}",
        "Say which of two routers forwards, or what says it",
        set_role,
    )
    .examples(&[
        "session-sync role standby",
        "session-sync role interface local0",
        "session-sync role bfd local-addr 192.0.2.1 peer-addr 192.0.2.2",
        "session-sync role active",
    ])
    .doc(
        "The active router tells of its sessions; the standby takes them in and begins none itself. With `vrrp` a router is active \
         while it is the master of a virtual router, with `interface` while that interface is up, with `bfd` while the session to the \
         other router is not up: that is for the router which is to wait.",
    ),
    Command::new(
        "session-sync timers {hello <hello:u32> dead <dead:u32> refresh <refresh:u32> | default}",
        "Set how often the routers say hello, when one is dead, and how often sessions in use are told again",
        set_timers,
    )
    .examples(&["session-sync timers hello 50 dead 200 refresh 30", "session-sync timers default"])
    .doc(
        "Hello and dead are in milliseconds (200 and 1000), refresh is in seconds (60). A session whose timeout is shorter than \
         the time between refreshes may end on the standby while it is in use.",
    ),
    Command::new("session-sync resync", "Tell the other router of all sessions once more", resync),
    Command::new("show session-sync [refused]", "Show what two routers know of each other's sessions", show)
        .examples(&["show session-sync", "show session-sync refused"]),
];

fn sync(control: &Control) -> Result<Rc<SessionSync>, CliError> {
    Ok(control.get::<SessionSync>()?)
}

fn failed(error: SyncError) -> CliError {
    match error {
        SyncError::Range { value, least, most, .. } => {
            CliError::failed(error.to_string()).nearest(Some(value.clamp(least, most).to_string()))
        }
        other => CliError::failed(other.to_string()),
    }
}

fn set_peer(control: &Control, args: &Args) -> Result<Output, CliError> {
    let port: u32 = args.or("port", Peer::PORT.into())?;
    let port = u16::try_from(port).map_err(|_| CliError::argument("port", "a port is 1 to 65535"))?;
    let key = match args.opt::<String>("key")? {
        Some(text) => {
            let wrong = || CliError::argument("key", SyncError::Key.to_string());
            Some(Key::from_hex(&text).ok_or_else(wrong)?)
        }
        None => None,
    };
    let peer = Peer { address: args.get("peer")?, local: args.get("local")?, port, key };
    sync(control)?.set_peer(Some(peer)).map_err(failed)?;
    Ok(Output::none())
}

fn del_peer(control: &Control, _: &Args) -> Result<Output, CliError> {
    sync(control)?.set_peer(None).map_err(failed)?;
    Ok(Output::none())
}

fn set_role(control: &Control, args: &Args) -> Result<Output, CliError> {
    let source = if let Some(InterfaceArg(interface)) = args.opt("vrrp")? {
        let family = if args.has("ipv6") { Family::Ip6 } else { Family::Ip4 };
        RoleSource::Vrrp(Group { interface, number: args.get("vr-id")?, family })
    } else if let Some(local) = args.opt::<IpAddr>("local")? {
        let over = args.opt::<InterfaceArg>("over")?;
        let hop = over.map_or(Hop::Multi, |InterfaceArg(interface)| Hop::Single(interface));
        RoleSource::Bfd(SessionKey { hop, local, peer: args.get("remote")? })
    } else if let Some(InterfaceArg(interface)) = args.opt("interface")? {
        RoleSource::Interface(interface)
    } else if args.has("standby") {
        RoleSource::Standby
    } else {
        RoleSource::Active
    };
    sync(control)?.set_role(source).map_err(failed)?;
    Ok(Output::none())
}

fn set_timers(control: &Control, args: &Args) -> Result<Output, CliError> {
    let usual = Timers::default();
    let timers = Timers {
        hello: args.or("hello", usual.hello)?,
        dead: args.or("dead", usual.dead)?,
        refresh: args.or("refresh", usual.refresh)?,
    };
    sync(control)?.set_timers(timers).map_err(failed)?;
    Ok(Output::none())
}

fn resync(control: &Control, _: &Args) -> Result<Output, CliError> {
    sync(control)?.resync().map_err(failed)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct FeatureRow {
    name: &'static str,
    on: bool,
    entered: u64,
    renewed: u64,
    replaced: u64,
    ended: u64,
    swept: u64,
    refused: Vec<(&'static str, u64)>,
}

#[derive(Serialize)]
struct SyncView {
    peer: Option<String>,
    role: &'static str,
    follows: String,
    hello_ms: u32,
    dead_ms: u32,
    refresh: u32,
    up_seconds: Option<u64>,
    peer_is_active: bool,
    unacknowledged: usize,
    early: usize,
    round_trip_us: Option<u64>,
    features: Vec<FeatureRow>,
    counters: Vec<(&'static str, u64)>,
}

#[derive(Serialize)]
struct RefusedView(Vec<String>);

impl fmt::Display for RefusedView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "no session was refused");
        }
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let view = sync(control)?.view();
    if args.has("refused") {
        return Ok(Output::view(RefusedView(view.refused)));
    }
    let interfaces = control.get::<Interfaces>()?;
    let peer = view.peer.as_ref().map(|peer| {
        let how = if peer.key.is_some() { "authentic" } else { "not authenticated" };
        format!("{} from {}, port {}, {how}", peer.address, peer.local, peer.port)
    });
    let features = view.features.iter().map(|feature| {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &feature.counts;
        let refused = Misfit::NAMES.into_iter().zip(counts.refused.iter().map(count));
        FeatureRow {
            name: feature.name,
            on: feature.is_on,
            entered: count(&counts.entered),
            renewed: count(&counts.renewed),
            replaced: count(&counts.replaced),
            ended: count(&counts.left),
            swept: count(&counts.swept),
            refused: refused.filter(|(_, count)| *count > 0).collect(),
        }
    });
    let features = features.collect();
    Ok(Output::view(SyncView {
        peer,
        role: if view.role == Role::Standby { "standby" } else { "active" },
        follows: role_words(view.source, &interfaces).unwrap_or_else(|| "what is not there any more".into()),
        hello_ms: view.timers.hello,
        dead_ms: view.timers.dead,
        refresh: view.timers.refresh,
        up_seconds: view.up.map(|up| up.as_secs()),
        peer_is_active: view.peer_is_active,
        unacknowledged: view.unacknowledged,
        early: view.early,
        round_trip_us: view.round_trip.map(|time| time.as_micros() as u64),
        features,
        counters: view.counters,
    }))
}

impl fmt::Display for SyncView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(peer) = &self.peer else { return writeln!(f, "no other router is configured") };
        writeln!(f, "peer {peer}")?;
        match self.up_seconds {
            Some(seconds) => {
                let other = if self.peer_is_active { "active" } else { "standby" };
                writeln!(f, "  known for {seconds} s, {other}")?;
            }
            None => writeln!(f, "  not known")?,
        }
        writeln!(f, "role {} (role {})", self.role, self.follows)?;
        writeln!(f, "hello {} ms, dead {} ms, refresh {} s", self.hello_ms, self.dead_ms, self.refresh)?;
        write!(f, "not acknowledged {}, came early {}", self.unacknowledged, self.early)?;
        if let Some(time) = self.round_trip_us {
            write!(f, ", answers take {time} us")?;
        }
        writeln!(f)?;
        for row in &self.features {
            let on = if row.on { "" } else { " (off)" };
            let FeatureRow { name, entered, renewed, replaced, ended, swept, .. } = row;
            writeln!(
                f,
                "{name}{on}: {entered} entered, {renewed} renewed, {replaced} replaced, {ended} ended, {swept} swept"
            )?;
            for (why, count) in &row.refused {
                writeln!(f, "  refused, {why}: {count}")?;
            }
        }
        for (name, count) in self.counters.iter().filter(|(_, count)| *count > 0) {
            writeln!(f, "{name}: {count}")?;
        }
        Ok(())
    }
}
