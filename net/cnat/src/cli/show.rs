//! `show cnat ...`, as VPP writes it.

use std::fmt;

use serde::Serialize;
use shoal_adj::Family;
use shoal_fib::FlowFields;
use shoal_interface::Interfaces;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::{cnat, refused};
use crate::control::endpoint::Shown as ShownEndpoint;
use crate::policy::{List, PolicyKind};
use crate::sessions::{Record, TICKS};
use crate::show::{Proto, Shown};
use crate::{Cnat, Endpoint, NO_NAT, PathSpec, Slice, SnatSpec, Spec};

pub(super) const TRANSLATION: Command =
    Command::new("show cnat translation [<id:u32>]", "Show translations and their back ends", translation)
        .examples(&["show cnat translation"]);

pub(super) const SESSION: Command =
    Command::new("show cnat session [verbose <level:u8>]", "Show sessions", session)
        .examples(&["show cnat session", "show cnat session verbose 1"])
        .doc("With `verbose 1`: each of them.");

pub(super) const CLIENT: Command =
    Command::new("show cnat client", "Show addresses whose packets are led to translations", client)
        .examples(&["show cnat client"]);

pub(super) const SNAT_POLICY: Command =
    Command::new("show cnat snat-policy", "Show shared addresses and which connections get one", snat_policy)
        .examples(&["show cnat snat-policy"]);

#[derive(Serialize)]
struct BackendView {
    source: String,
    destination: String,
    no_nat: bool,
    /// Whether new connections may go there.
    ready: bool,
}

impl fmt::Display for BackendView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}->{}", self.source, self.destination)?;
        if self.no_nat {
            f.write_str(" no-nat")?;
        }
        writeln!(f, "\n  {}", if self.ready { "resolved" } else { "unresolved" })
    }
}

#[derive(Serialize)]
struct TranslationView {
    id: u32,
    vip: String,
    protocol: String,
    lb: String,
    flow_hash: u32,
    real: bool,
    packets: u64,
    bytes: u64,
    backends: Vec<BackendView>,
}

impl TranslationView {
    fn new(cnat: &Cnat, id: u32, spec: &Spec) -> Self {
        let shown = |endpoint| ShownEndpoint(endpoint, cnat.interfaces()).to_string();
        let backend = |path: &PathSpec| BackendView {
            source: shown(path.source),
            destination: shown(path.destination),
            no_nat: path.flags & NO_NAT != 0,
            ready: cnat.is_ready(path.destination.from),
        };
        let (packets, bytes) = cnat.counted(id);
        TranslationView {
            id,
            vip: shown(spec.vip),
            protocol: Proto(spec.protocol).to_string(),
            lb: spec.lb.to_string(),
            flow_hash: spec.fields.bits(),
            real: spec.is_real,
            packets,
            bytes,
            backends: spec.paths.iter().map(backend).collect(),
        }
    }
}

impl fmt::Display for TranslationView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TranslationView { id, vip, protocol, lb, flow_hash, real, backends, .. } = self;
        let default = if *flow_hash == FlowFields::DEFAULT.bits() { "(default)" } else { "" };
        let real = if *real { " real" } else { "" };
        writeln!(f, "[{id}] {vip} {protocol} lb:{lb} fhc:{flow_hash:#x}{default}{real}")?;
        backends.iter().try_for_each(|backend| backend.fmt(f))
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct All<T>(Vec<T>);

impl<T: fmt::Display> fmt::Display for All<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|one| one.fmt(f))
    }
}

fn translation(control: &Control, args: &Args) -> Result<Output, CliError> {
    let cnat = cnat(control)?;
    let all = cnat.translations();
    if let Some(id) = args.opt::<u32>("id")? {
        // VPP's words.
        let missing = || CliError::failed(format!("Invalid policy ID:{id}"));
        let spec = all.get(&id).ok_or_else(missing)?;
        return Ok(Output::view(TranslationView::new(&cnat, id, spec)));
    }
    Ok(Output::view(All(all.iter().map(|(id, spec)| TranslationView::new(&cnat, *id, spec)).collect())))
}

#[derive(Serialize)]
struct SessionView {
    session: String,
    index: u32,
    table: u32,
    /// Seconds since its last packet.
    age: u32,
    last_seen: u64,
    lifetime: u32,
}

impl SessionView {
    fn new(record: &Record, now: f64, lifetime: u32) -> Self {
        let age = record.age / TICKS as u32;
        SessionView {
            session: Shown(&record.session).to_string(),
            index: record.index,
            table: record.session.table,
            age,
            last_seen: (now as u64).saturating_sub(age.into()),
            lifetime,
        }
    }
}

impl fmt::Display for SessionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SessionView { session, index, table, last_seen, lifetime, .. } = self;
        writeln!(f, "{session}\n  index:{index} fib:{table}")?;
        writeln!(f, "    last_seen:{last_seen} lifetime:{lifetime} ref:1")
    }
}

/// VPP writes no zero before the point.
fn seconds(now: f64) -> String {
    let text = format!("{now:.6}");
    text.strip_prefix('0').map_or(text.clone(), str::to_owned)
}

fn session(control: &Control, args: &Args) -> Result<Output, CliError> {
    let cnat = cnat(control)?;
    let (now, limits) = (cnat.seconds(), cnat.limits());
    let count: usize = cnat.counts().map_err(refused)?.values().sum();
    let elements = match count {
        0 => "empty, uninitialized".to_owned(),
        count => format!("{count} active elements"),
    };
    let now_text = seconds(now);
    let mut head = format!("CNat Sessions: now:{now_text}\nHash table 'CNat Session DB'\n    {elements}\n");
    let wanted = args.or::<u8>("level", 0)? > 0;
    let mut next: Option<Slice> = if wanted { cnat.first_slice() } else { None };
    let slices = std::iter::from_fn(move || {
        let (records, after) = cnat.slice(next?).ok()?;
        next = after;
        Some(records)
    });
    let view =
        move |record: Record| SessionView::new(&record, now, limits.seconds(record.states.0.timeout()));
    if wanted {
        head.push('\n');
    }
    Ok(Output::rows(head, slices.flatten().map(view)))
}

#[derive(Serialize)]
struct ClientView {
    index: usize,
    address: String,
    translations: usize,
    shared: bool,
}

impl fmt::Display for ClientView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClientView { index, address, translations, shared } = self;
        let flags = if *shared { "30 exclusive return" } else { "10 exclusive" };
        let locks = translations + 2;
        writeln!(f, "[{index}] cnat-client:[{address}] tr:{translations} sess:0 locks:{locks} flags: {flags}")
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct ClientsView(Vec<ClientView>);

impl fmt::Display for ClientsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|client| client.fmt(f))?;
        writeln!(f, "{} clients", self.0.len())
    }
}

fn client(control: &Control, _: &Args) -> Result<Output, CliError> {
    let all = cnat(control)?.clients().into_iter().enumerate();
    let view = |(index, (address, translations, shared)): (usize, (std::net::IpAddr, usize, bool))| {
        ClientView { index, address: address.to_string(), translations, shared }
    };
    Ok(Output::view(ClientsView(all.map(view).collect())))
}

#[derive(Serialize)]
struct SharedView {
    table: u32,
    return_table: u32,
    is_default: bool,
    ip4: String,
    ip6: String,
}

impl SharedView {
    fn new(spec: &SnatSpec, interfaces: &Interfaces) -> Self {
        // VPP's words for an address that there is not.
        let of = |family| match spec.from(family) {
            Some(from) => ShownEndpoint(Endpoint { from, port: 0 }, interfaces).to_string(),
            None => "local0 (ip4);0".to_owned(),
        };
        SharedView {
            table: spec.table,
            return_table: spec.back_table,
            is_default: spec.flags & crate::flags::USE_AS_DEFAULT != 0,
            ip4: of(Family::Ip4),
            ip6: of(Family::Ip6),
        }
    }
}

#[derive(Serialize)]
struct PolicyView {
    addresses: Vec<SharedView>,
    policy: String,
    excluded: Vec<String>,
    interfaces: Vec<(&'static str, Vec<String>)>,
}

/// The title of a list of interfaces.
const fn title(list: List) -> &'static str {
    match list {
        List::IncludeV4 => "Included v4",
        List::IncludeV6 => "Included v6",
        List::Pod => "k8s pod",
        List::Host => "k8s host",
    }
}

impl fmt::Display for PolicyView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for SharedView { table, return_table, is_default, ip4, ip6 } in &self.addresses {
            f.write_str("Source NAT")?;
            if (*table, *return_table, *is_default) != (0, 0, true) {
                write!(f, " table {table} return-table {return_table}")?;
            }
            writeln!(f, "\n  ip4: {ip4}\n  ip6: {ip6}")?;
        }
        writeln!(f, "\nPolicy: {}", self.policy)?;
        writeln!(f, "\nExcluded prefixes:")?;
        self.excluded.iter().try_for_each(|prefix| writeln!(f, "  {prefix}"))?;
        for (title, names) in &self.interfaces {
            writeln!(f, "\n{title} interfaces:")?;
            names.iter().try_for_each(|name| writeln!(f, "  {name}"))?;
        }
        Ok(())
    }
}

fn snat_policy(control: &Control, _: &Args) -> Result<Output, CliError> {
    let cnat = cnat(control)?;
    let (lists, excluded) = (cnat.policy_interfaces(), cnat.excluded());
    let snats = cnat.snats();
    let is_set = cnat.policy() != PolicyKind::None || !lists.is_empty() || !excluded.is_empty();
    if snats.is_empty() && !is_set {
        return Err(refused(crate::CnatError::NoSnat));
    }
    let interfaces = cnat.interfaces();
    let names = |list: List| {
        let of = lists.iter().filter(|(_, on)| *on == list);
        (title(list), of.filter_map(|(interface, _)| interfaces.name(*interface).ok()).collect())
    };
    Ok(Output::view(PolicyView {
        addresses: snats.iter().map(|spec| SharedView::new(spec, interfaces)).collect(),
        policy: cnat.policy().to_string(),
        excluded: excluded.iter().map(ToString::to_string).collect(),
        interfaces: List::ALL.iter().map(|(list, _)| names(*list)).collect(),
    }))
}
