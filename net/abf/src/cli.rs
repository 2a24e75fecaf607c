//! Commands: `abf policy`, `abf attach`, and what shows them.

use std::fmt;

use serde::Serialize;
use shoal_fib::{Family, Fib, Path, PathState, TableArg, Via, ViaArgs};
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, FromArg, Output, check};
use shoal_rule::Rule;

use crate::{Abf, AbfError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        concat!(
            "abf policy {add | del} id <id:u32> [ip4 | ip6] ",
            shoal_rule::rule_syntax!(),
            " ",
            shoal_fib::via_syntax!()
        ),
        "Add paths to a policy or make one, or take paths or all of it away",
        policy,
    )
    .examples(&[
        "abf policy add id 1 src 10.0.0.0/8 proto tcp dport 80-90 via 192.0.2.2 local0",
        "abf policy add id 2 dst 2001:db8::/32 dscp ef via 2001:db8:1::2 weight 2 via 2001:db8:1::3",
        "abf policy add id 3 ip6 tcp-flags syn,!ack via drop",
        "abf policy del id 1",
    ])
    .doc(
        "Packets that match the rule take these paths, on interfaces the policy is attached to. What the rule leaves \
         out is not asked. Its family is that of its prefixes or of the next hop, or the one that is named. `add` with \
         the number of a policy adds paths to it; its rule need not be repeated. Paths are those of `ip route`.",
    ),
    Command::new(
        "abf attach {ip4 | ip6} [del] policy <policy:abf-policy> [priority <priority:u32>] <interface>",
        "Let received packets be matched by a policy, or no longer",
        attach,
    )
    .doc("Policies of a lower priority are asked first; the first that matches decides."),
    Command::new("show abf policy [<policy:abf-policy>]", "Show policies, their paths and what they matched", show_policy)
        .examples(&["show abf policy"]),
    Command::new("show abf attach [<interface>]", "Show where policies are attached", show_attach)
        .examples(&["show abf attach", "show abf attach local0"]),
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] =
    &[ArgType::live("abf-policy", "number of a policy", check::<PolicyArg>, policy_ids)];

/// A policy's number.
struct PolicyArg(u32);

impl FromArg for PolicyArg {
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected> {
        let abf = control.get::<Abf>().map_err(|e| Expected::new(e.to_string()))?;
        let Ok(id) = text.parse() else { return Err(Expected::new("the number of a policy")) };
        match abf.rule(id) {
            Ok(_) => Ok(PolicyArg(id)),
            Err(AbfError::NoPolicy { nearest, .. }) => {
                Err(Expected::new("the number of a policy").nearest(nearest.map(|n| n.to_string())))
            }
            Err(e) => Err(Expected::new(e.to_string())),
        }
    }
}

fn policy_ids(control: &Control, _: &str) -> Vec<String> {
    let Ok(abf) = control.get::<Abf>() else { return Vec::new() };
    abf.policies().iter().map(|p| p.id.to_string()).collect()
}

/// The rule that was given, or that of the policy when none was.
fn rule_of(abf: &Abf, id: u32, args: &Args) -> Result<Rule, CliError> {
    let named = match (args.has("ip4"), args.has("ip6")) {
        (true, _) => Some(Family::Ip4),
        (_, true) => Some(Family::Ip6),
        _ => None,
    };
    if named.is_none()
        && !Rule::is_in(args)
        && let Ok(rule) = abf.rule(id)
    {
        return Ok(rule);
    }
    let family = match named.or(Rule::family_in(args)?) {
        Some(family) => family,
        None => ViaArgs::family(args)?.unwrap_or(Family::Ip4),
    };
    Rule::of_args(args, family)
}

fn policy(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (abf, fib) = (control.get::<Abf>()?, control.get::<Fib>()?);
    let id = args.get::<u32>("id")?;
    let explain = |e: AbfError| match e {
        AbfError::Fib(e) => ViaArgs::explain(e),
        AbfError::NoPolicy { nearest, .. } => {
            CliError::argument("id", e.to_string()).nearest(nearest.map(|n| n.to_string()))
        }
        AbfError::NoPath { .. } => CliError::argument("via", e.to_string()),
        _ => CliError::argument("id", e.to_string()),
    };
    if args.has("del") {
        let family = abf.rule(id).map_err(explain)?.family;
        let paths = ViaArgs { fib: &fib, family, table: TableArg(0) }.paths(args)?;
        abf.remove(id, &paths).map_err(explain)?;
        return Ok(Output::none());
    }
    let rule = rule_of(&abf, id, args)?;
    let paths = ViaArgs { fib: &fib, family: rule.family, table: TableArg(0) }.paths(args)?;
    if paths.is_empty() {
        return Err(CliError::argument("id", "a policy needs at least one `via'"));
    }
    abf.add(id, rule, &paths).map_err(explain)?;
    Ok(Output::none())
}

fn attach(control: &Control, args: &Args) -> Result<Output, CliError> {
    let abf = control.get::<Abf>()?;
    let family = if args.has("ip6") { Family::Ip6 } else { Family::Ip4 };
    let (PolicyArg(id), InterfaceArg(interface)) = (args.get("policy")?, args.get("interface")?);
    let done = if args.has("del") {
        abf.detach(family, interface, id)
    } else {
        abf.attach(family, interface, id, args.or("priority", 0)?)
    };
    done.map_err(|e| CliError::argument("policy", e.to_string()))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct PathRow {
    via: String,
    weight: u8,
    preference: u8,
}

#[derive(Serialize)]
struct PolicyRow {
    policy: u32,
    rule: String,
    packets: u64,
    bytes: u64,
    adjacency: u32,
    state: &'static str,
    paths: Vec<PathRow>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Policies(Vec<PolicyRow>);

fn describe(path: &Path, family: Family, interfaces: &Interfaces, fib: &Fib) -> PathRow {
    let name = |i| interfaces.name(i).unwrap_or_default();
    let table = |family, index| fib.id_of(family, index).unwrap_or_default();
    let via = match path.via {
        Via::NextHop { interface, next_hop } => format!("{next_hop} {}", name(interface)),
        Via::Attached { interface, .. } | Via::Broadcast { interface } => name(interface),
        Via::Dvr { interface } => format!("bridged by {}", name(interface)),
        Via::InterfaceRx { interface } => format!("received by {}", name(interface)),
        Via::Recursive { next_hop, fib } => {
            format!("{next_hop} in table {}", table(Family::of(next_hop), fib))
        }
        Via::Lookup(fib) => format!("lookup in table {}", table(family, fib)),
        Via::SourceLookup(fib) => format!("source lookup in table {}", table(family, fib)),
        Via::PathMtu { peer, mtu, .. } => format!("to {peer} up to {mtu} bytes"),
        Via::Node(node) => node.into(),
        Via::Local { .. } => "local".into(),
        Via::Punt => "punt".into(),
        Via::NoRoute => "no route".into(),
        Via::Drop => "drop".into(),
        Via::Unreachable => "unreachable".into(),
        Via::Prohibit => "prohibit".into(),
    };
    PathRow { via, weight: path.weight, preference: path.preference }
}

fn show_policy(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (abf, fib, interfaces) = (control.get::<Abf>()?, control.get::<Fib>()?, control.get::<Interfaces>()?);
    let only = args.opt::<PolicyArg>("policy")?.map(|p| p.0);
    let row = |info: crate::PolicyInfo| PolicyRow {
        policy: info.id,
        rule: info.rule.to_string(),
        packets: info.packets,
        bytes: info.bytes,
        adjacency: info.adj,
        state: match info.state {
            PathState::Resolved => "resolved",
            PathState::Unresolved => "unresolved",
            PathState::Loop => "looped",
        },
        paths: info.paths.iter().map(|p| describe(p, info.rule.family, &interfaces, &fib)).collect(),
    };
    let all = abf.policies().into_iter().filter(|p| only.is_none_or(|only| only == p.id));
    Ok(Output::view(Policies(all.map(row).collect())))
}

impl fmt::Display for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for PolicyRow { policy, rule, packets, bytes, adjacency, state, paths } in &self.0 {
            writeln!(f, "abf:[{policy}]: policy:{policy} rule:[{rule}]")?;
            writeln!(f, "  matched {packets} packets, {bytes} bytes; dpo-idx {adjacency}, {state}")?;
            for PathRow { via, weight, preference } in paths {
                writeln!(f, "  via {via} weight {weight} preference {preference}")?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct AttachRow {
    interface: String,
    family: &'static str,
    policy: u32,
    priority: u32,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Attachments(Vec<AttachRow>);

fn show_attach(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (abf, interfaces) = (control.get::<Abf>()?, control.get::<Interfaces>()?);
    let only = args.opt::<InterfaceArg>("interface")?.map(|i| i.0);
    let row = |a: crate::AttachInfo| AttachRow {
        interface: interfaces.name(a.interface).unwrap_or_default(),
        family: a.family.name(),
        policy: a.policy,
        priority: a.priority,
    };
    let all = abf.attachments().into_iter().filter(|a| only.is_none_or(|only| only == a.interface));
    Ok(Output::view(Attachments(all.map(row).collect())))
}

impl fmt::Display for Attachments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = ("", "");
        for AttachRow { interface, family, policy, priority } in &self.0 {
            if (interface.as_str(), *family) != last {
                writeln!(f, "{interface} {family}:")?;
                last = (interface, family);
            }
            writeln!(f, "  abf-interface-attach: policy:{policy} priority:{priority}")?;
        }
        Ok(())
    }
}
