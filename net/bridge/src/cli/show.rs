//! `show bridge-domain`, `show mode`.

use std::fmt;

use serde::Serialize;
use shoal_interface::cli::column::{centre, line, number, whole};
use shoal_interface::{InterfaceArg, Interfaces, SwIfIndex};
use shoal_l2::{Input, L2, Mode, Role};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::loops::{self, Loops};
use super::{DomainArg, refused};
use crate::{Bridges, Switch};

pub(super) const DOMAIN: Command = Command::new(
    "show bridge-domain [<domain:bridge-domain> [detail | int | arp | bd-tag]]",
    "Show bridge domains, their members, and the stations that are known by address",
    domain,
)
.examples(&["show bridge-domain"]);

pub(super) const MODE: Command =
    Command::new("show mode [<interface>] ...", "Show whether interfaces are routed or switched", mode)
        .examples(&["show mode", "show mode local0"]);

#[derive(Serialize)]
struct Member {
    interface: String,
    sw_if_index: u32,
    isn: u8,
    shg: u8,
    bvi: bool,
    uu_fwd: bool,
    tag_rewrite: String,
}

#[derive(Serialize)]
struct Binding {
    address: String,
    mac: String,
}

#[derive(Serialize)]
struct Domain {
    bd_id: u32,
    index: u16,
    bsn: u8,
    mac_age: u8,
    learn: bool,
    forward: bool,
    uu_flood: bool,
    flood: bool,
    arp_term: bool,
    arp_ufwd: bool,
    learned: u32,
    learn_limit: u32,
    bvi: Option<String>,
    uu_fwd: Option<String>,
    features: Vec<&'static str>,
    members: Vec<Member>,
    stations: Vec<Binding>,
    tag: String,
    loops: Option<Loops>,
}

#[derive(Clone, Copy)]
struct Parts {
    features: bool,
    members: bool,
    stations: bool,
    tag: bool,
    loops: bool,
}

#[derive(Serialize)]
struct View {
    domains: Vec<Domain>,
    #[serde(skip)]
    parts: Parts,
}

fn read(bridges: &Bridges, l2: &L2, interfaces: &Interfaces, bd_id: u32) -> Result<Domain, CliError> {
    let settings = bridges.settings(bd_id).map_err(refused)?;
    let (index, bsn) = bridges.counts(bd_id).map_err(refused)?;
    let [bvi, unknown] = bridges.special(bd_id).map_err(refused)?;
    let name = |index: SwIfIndex| interfaces.name(index).unwrap_or_else(|_| "DELETED".into());
    let count = bridges.table().count(index);
    let tags = |interface| l2.tags(interface).to_string();
    let members = bridges.members(bd_id).map_err(refused)?.into_iter().map(|member| Member {
        interface: name(member.interface),
        sw_if_index: member.interface.0,
        isn: member.sequence,
        shg: member.port.group,
        bvi: member.port.role == Role::Bvi,
        uu_fwd: false,
        tag_rewrite: tags(member.interface),
    });
    let uu = unknown.map(|interface| Member {
        interface: name(interface),
        sw_if_index: interface.0,
        isn: 0,
        shg: 0,
        bvi: false,
        uu_fwd: true,
        tag_rewrite: "None".into(),
    });
    let features = bridges.features(bd_id).map_err(refused)?;
    let binding = |(address, mac): (std::net::IpAddr, shoal_wire::MacAddress)| Binding {
        address: address.to_string(),
        mac: mac.to_string(),
    };
    Ok(Domain {
        bd_id,
        index,
        bsn,
        mac_age: settings.mac_age,
        learn: settings.has(Switch::Learn),
        forward: settings.has(Switch::Forward),
        uu_flood: settings.has(Switch::UnknownFlood),
        flood: settings.has(Switch::Flood),
        arp_term: settings.has(Switch::ArpTerm),
        arp_ufwd: settings.has(Switch::ArpForward),
        learned: count.learned,
        learn_limit: count.limit,
        bvi: bvi.map(name),
        uu_fwd: unknown.map(name),
        features: Input::ALL.iter().filter(|f| features.has(**f)).map(|f| f.node()).collect(),
        members: members.chain(uu).collect(),
        stations: bridges.bindings(bd_id).map_err(refused)?.into_iter().map(binding).collect(),
        tag: settings.tag,
        loops: loops::read(bridges, interfaces, bd_id).map_err(refused)?,
    })
}

fn domain(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bridges, l2) = (control.get::<Bridges>()?, control.get::<L2>()?);
    let interfaces = control.get::<Interfaces>()?;
    let only = args.opt::<DomainArg>("domain")?.map(|DomainArg(number)| number);
    if only == Some(0) {
        return Err(CliError::argument("domain", "No operations on the default bridge domain are supported"));
    }
    let numbers = only.map_or_else(|| bridges.numbers(), |only| vec![only]);
    let domains: Result<Vec<Domain>, CliError> =
        numbers.into_iter().map(|number| read(&bridges, &l2, &interfaces, number)).collect();
    let detail = args.has("detail");
    let parts = Parts {
        features: detail,
        members: detail || args.has("int"),
        stations: detail || args.has("arp"),
        tag: detail || args.has("bd-tag"),
        loops: detail,
    };
    Ok(Output::view(View { domains: domains?, parts }))
}

/// Cells with a blank between them, as VPP's format has them.
fn cells(cells: &[String]) -> String {
    line(&[cells.join(" ")])
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

impl Domain {
    fn row(&self) -> String {
        let age = if self.mac_age == 0 { "off".to_owned() } else { self.mac_age.to_string() };
        let unknown = match (&self.uu_fwd, self.uu_flood) {
            (Some(name), _) => name.clone(),
            (None, true) => "flood".into(),
            (None, false) => "drop".into(),
        };
        cells(&[
            number(self.bd_id, 8),
            number(self.index, 7),
            number(self.bsn, 4),
            centre(age, 9),
            centre(on_off(self.learn), 9),
            centre(on_off(self.forward), 9),
            whole(unknown, 11),
            centre(on_off(self.flood), 9),
            centre(on_off(self.arp_term), 9),
            centre(on_off(self.arp_ufwd), 9),
            number(self.learned, 8),
            number(self.learn_limit, 8),
            whole(self.bvi.as_deref().unwrap_or("N/A"), 11),
        ])
    }
}

impl Member {
    fn row(&self) -> String {
        let what = match (self.bvi, self.uu_fwd) {
            (true, _) => "*",
            (_, true) => "uu",
            _ => "-",
        };
        line(&[
            whole(&self.interface, 30),
            number(self.sw_if_index, 7),
            number(self.isn, 5),
            number(self.shg, 5),
            centre(what, 5),
            centre(if self.uu_fwd { "-" } else { "*" }, 9),
            whole(&self.tag_rewrite, 30),
        ])
    }
}

fn head() -> String {
    cells(&[
        centre("BD-ID", 8),
        centre("Index", 7),
        centre("BSN", 4),
        centre("Age(min)", 9),
        centre("Learning", 9),
        centre("U-Forwrd", 9),
        centre("UU-Flood", 11),
        centre("Flooding", 9),
        centre("ARP-Term", 9),
        centre("arp-ufwd", 9),
        centre("Learn-count", 8),
        centre("Learn-limit", 8),
        centre("BVI-Intf", 11),
    ])
}

fn member_head() -> String {
    line(&[
        centre("Interface", 30),
        centre("If-idx", 7),
        centre("ISN", 5),
        centre("SHG", 5),
        centre("BVI", 5),
        centre("TxFlood", 9),
        centre("VLAN-Tag-Rewrite", 30),
    ])
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.domains.is_empty() {
            return f.write_str("no bridge-domains in use\n");
        }
        f.write_str(&head())?;
        for domain in &self.domains {
            f.write_str(&domain.row())?;
            if self.parts.features {
                writeln!(f, "{}", domain.features.join(" "))?;
            }
            if self.parts.members && !domain.members.is_empty() {
                write!(f, "\n{}", member_head())?;
                domain.members.iter().try_for_each(|member| f.write_str(&member.row()))?;
            }
            let asked = self.parts.stations && (domain.arp_term || !domain.stations.is_empty());
            if asked {
                f.write_str("\n  IP4/IP6 to MAC table for ARP Termination\n")?;
                for Binding { address, mac } in &domain.stations {
                    f.write_str(&line(&[whole(address, 40), " => ".into(), whole(mac, 20)]))?;
                }
            }
            if self.parts.tag && !domain.tag.is_empty() {
                writeln!(f, "\n  BD-Tag: {}", domain.tag)?;
            }
            if let Some(loops) = domain.loops.as_ref().filter(|_| self.parts.loops) {
                write!(f, "\n{loops}")?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct ModeRow {
    interface: String,
    mode: &'static str,
    peer: Option<String>,
    bd_id: Option<u32>,
    shg: u8,
    bvi: bool,
}

impl fmt::Display for ModeRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModeRow { interface, mode, peer, bd_id, shg, bvi } = self;
        match (peer, bd_id) {
            (Some(peer), _) => writeln!(f, "l2 {mode} {interface} {peer}"),
            (_, Some(bd_id)) => {
                let bvi = if *bvi { " bvi" } else { "" };
                writeln!(f, "l2 {mode} {interface} bd_id {bd_id}{bvi} shg {shg}")
            }
            _ => writeln!(f, "{mode} {interface}"),
        }
    }
}

fn mode(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bridges, l2) = (control.get::<Bridges>()?, control.get::<L2>()?);
    let interfaces = control.get::<Interfaces>()?;
    let named: Vec<InterfaceArg> = args.all("interface")?;
    let all: Vec<SwIfIndex> =
        if named.is_empty() { interfaces.indices() } else { named.iter().map(|arg| arg.0).collect() };
    let row = move |index: SwIfIndex| {
        let name = |index| interfaces.name(index).unwrap_or_else(|_| "DELETED".into());
        let plain =
            ModeRow { interface: name(index), mode: "l3", peer: None, bd_id: None, shg: 0, bvi: false };
        match l2.mode(index) {
            Mode::L3 => plain,
            Mode::Xconnect(peer) => ModeRow { mode: "xconnect", peer: Some(name(peer)), ..plain },
            Mode::Bridge(port) => ModeRow {
                mode: "bridge",
                bd_id: Some(bridges.number_of(port.domain).unwrap_or(0)),
                shg: port.group,
                bvi: port.role == Role::Bvi,
                ..plain
            },
        }
    };
    Ok(Output::rows("", all.into_iter().map(row)))
}
