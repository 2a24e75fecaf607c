//! Commands: `cnat translation`, `cnat purge`, `set cnat ...`, `show cnat ...`.

mod show;
mod spec;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_fib::PrefixArg;
use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(crate) use spec::text as spec_text;

use crate::policy::{List, PolicyKind};
use crate::{Cnat, CnatError, SnatSpec, flags};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new("cnat translation add <translation:rest>", "Send connections to back ends", add)
        .examples(&[
            "cnat translation add proto TCP vip 198.51.100.1 80 to ->10.0.0.5 8080 to ->10.0.0.6 8080",
            "cnat translation add proto UDP vip 2001:db8:99::1 53 to ->2001:db8:1::5 5353 lb maglev",
        ])
        .doc(
            "`proto {TCP | UDP} {vip | real} ADDRESS PORT {to [ADDRESS [PORT]]->ADDRESS PORT [no-nat]} ... [lb {default | maglev}] \
             [flow-hash N] [alloc-port] [no-return-session] [no-client]`. An ADDRESS may be an interface, followed by `v6` for its IPv6 \
             address. What stands before an arrow becomes the source. `real`: the address is this router's or its host's. The same \
             address, port and protocol again have other back ends from then on: connections that there are go on.",
        ),
    Command::new("cnat translation del <id:u32>", "Send connections to back ends no more", del)
        .doc("Connections that there are go on."),
    Command::new("cnat purge", "End all sessions", purge).examples(&["cnat purge"]),
    Command::new("set cnat feature <interface> [enable | disable]", "Translate packets of an interface", feature)
        .examples(&["set cnat feature local0 enable"]),
    Command::new(
        "set cnat snat-policy {none | if-pfx | k8s | dnat}",
        "Set which connections get a shared source address",
        policy,
    )
    .examples(&["set cnat snat-policy k8s"])
    .doc(
        "`if-pfx`: those that came by interfaces on the list `include-v4` or `include-v6`, to addresses that are not excluded. `k8s`: \
         those too, and connections to a service that neither came from a pod nor go to one here, or go back to the pod they came from; \
         none that go to an interface on the list `host`. `dnat`: all connections to a service.",
    ),
    Command::new(
        "set cnat snat-policy addr [<ip4:ip4-address>] [<ip6:ip6-address>] [<interface>] [table <table:u32>] \
         [return-table <return-table:u32>] [no-client] [no-default]",
        "Set the addresses that connections share",
        addresses,
    )
    .examples(&["set cnat snat-policy addr 192.0.2.1 2001:db8:2::1"])
    .doc(
        "Of an interface: its first addresses, whichever they are. Without any address connections share none. `no-default`: \
         for connections that come by this table only.",
    ),
    Command::new(
        "set cnat snat-policy if [del] [table {include-v4 | include-v6 | k8s | host}] <interface>",
        "Put an interface on a list of the policy",
        interface,
    )
    .examples(&["set cnat snat-policy if table include-v4 local0"]),
    Command::new(
        "set cnat snat-policy prefix [del] <prefix:ip-prefix>",
        "Exclude destinations: connections to them keep their source",
        prefix,
    )
    .examples(&["set cnat snat-policy prefix 10.0.0.0/8"]),
    show::TRANSLATION,
    show::SESSION,
    show::CLIENT,
    show::SNAT_POLICY,
];

fn cnat(control: &Control) -> Result<Rc<Cnat>, CliError> {
    Ok(control.get::<Cnat>()?)
}

fn refused(error: CnatError) -> CliError {
    CliError::failed(error.to_string())
}

fn add(control: &Control, args: &Args) -> Result<Output, CliError> {
    let cnat = cnat(control)?;
    let spec = spec::read(cnat.interfaces(), args.text("translation").unwrap_or_default())?;
    cnat.update(spec).map_err(refused)?;
    Ok(Output::none())
}

fn del(control: &Control, args: &Args) -> Result<Output, CliError> {
    cnat(control)?.del(args.get("id")?).map_err(refused)?;
    Ok(Output::none())
}

fn purge(control: &Control, _: &Args) -> Result<Output, CliError> {
    cnat(control)?.purge().map_err(refused)?;
    Ok(Output::none())
}

fn feature(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interface = args.get::<InterfaceArg>("interface")?.0;
    cnat(control)?.set_feature(interface, !args.has("disable")).map_err(refused)?;
    Ok(Output::none())
}

fn policy(control: &Control, args: &Args) -> Result<Output, CliError> {
    let found = PolicyKind::ALL.iter().find(|(_, word)| args.has(word));
    cnat(control)?.set_policy(found.map_or(PolicyKind::None, |(kind, _)| *kind)).map_err(refused)?;
    Ok(Output::none())
}

fn addresses(control: &Control, args: &Args) -> Result<Output, CliError> {
    let table = args.or("table", 0)?;
    let no_client = if args.has("no-client") { flags::NO_CLIENT } else { 0 };
    let default = if args.has("no-default") { 0 } else { flags::USE_AS_DEFAULT };
    let spec = SnatSpec {
        table,
        back_table: args.or("return-table", table)?,
        ip4: args.opt("ip4")?.unwrap_or(Ipv4Addr::UNSPECIFIED),
        ip6: args.opt("ip6")?.unwrap_or(Ipv6Addr::UNSPECIFIED),
        interface: args.opt::<InterfaceArg>("interface")?.map(|arg| arg.0),
        flags: no_client | default,
    };
    cnat(control)?.set_snat(spec).map_err(refused)?;
    Ok(Output::none())
}

fn interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interface = args.get::<InterfaceArg>("interface")?.0;
    let found = List::ALL.iter().find(|(_, word)| args.has(word));
    let list = found.map_or(List::IncludeV4, |(list, _)| *list);
    cnat(control)?.set_policy_interface(interface, list, !args.has("del")).map_err(refused)?;
    Ok(Output::none())
}

fn prefix(control: &Control, args: &Args) -> Result<Output, CliError> {
    let prefix = args.get::<PrefixArg>("prefix")?.0;
    cnat(control)?.set_excluded(prefix, !args.has("del")).map_err(refused)?;
    Ok(Output::none())
}
