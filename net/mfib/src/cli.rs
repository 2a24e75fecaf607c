//! Commands: `ip mroute`, `show ip mfib`, `show ip6 mfib`.

use std::net::IpAddr;

use shoal_adj::Family;
use shoal_fib::{Fib, FibIndex, TableArg};
use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::control::Change;
use crate::show::{MfibListing, SummaryView};
use crate::show_interfaces::{Flags, InterfaceListing};
use crate::{EntryFlags, ItfFlags, Member, Mfib, MfibError, Prefix, Source};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "ip mroute {add | del} [table <table>] <first:word> [<second:word>] [table <table>] \
         [Signal] [Drop] [Connected] [Accept-all-itf] \
         [via {local | <interface>} [Accept] [Forward] [Negate-Signal]] ...",
        "Say more of a multicast route, or take it back",
        mroute,
    )
    .examples(&[
        "ip mroute add 232.1.1.1 via local0 Accept",
        "ip mroute add 192.0.2.1 232.1.1.1 via local0 Accept via local Forward",
        "ip mroute add table 0 239.1.0.0/16 Accept-all-itf via local0 Forward",
        "ip mroute add 2001:db8::1 ff3e::1 via local0 Accept",
        "ip mroute del 232.1.1.1",
    ])
    .doc(
        "A group, a prefix of groups, or a source and a group. Packets are taken from interfaces that \
         `Accept` and sent to all that `Forward`, but never back where they came from. `via local Forward` delivers them \
         to this router, too. `add` adds to the flags set before; `del` takes back what is named, or everything. The \
         entry for a source and a group goes before that for the group, and the longer prefix before the shorter one. \
         Groups of the link (224.0.0.0/24, ff02::/16) are never forwarded.",
    ),
    Command::new(
        "show ip mfib [table <table>] [<group:ip4-address>] [summary]",
        "Show IPv4 multicast tables",
        show4,
    )
    .examples(&["show ip mfib", "show ip mfib table 0", "show ip mfib summary"]),
    Command::new(
        "show ip6 mfib [table <table>] [<group:ip6-address>] [summary]",
        "Show IPv6 multicast tables",
        show6,
    )
    .examples(&["show ip6 mfib", "show ip6 mfib table 0", "show ip6 mfib summary"]),
    Command::new("show mfib interface", "Show interfaces of all multicast routes", show_interfaces)
        .examples(&["show mfib interface"]),
    Command::new("show mfib route flags", "Show the flags of multicast routes", show_route_flags)
        .examples(&["show mfib route flags"]),
    Command::new("show mfib itf flags", "Show the flags of their interfaces", show_itf_flags)
        .examples(&["show mfib itf flags"]),
];

fn show_interfaces(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::listing(InterfaceListing::new(control)?))
}

fn show_route_flags(_: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Flags::of_entries()))
}

fn show_itf_flags(_: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Flags::of_interfaces()))
}

fn address(args: &Args, name: &'static str) -> Result<(IpAddr, Option<u8>), CliError> {
    let text = args.text(name).unwrap_or_default();
    let wrong = |what: String| CliError::argument(name, what);
    let (addr, len) = match text.split_once('/') {
        Some((addr, len)) => {
            let number = len.parse::<u8>();
            (addr, Some(number.map_err(|_| wrong(format!("bad prefix length `{len}'")))?))
        }
        None => (text, None),
    };
    let expected = "expected an address or prefix of groups such as 232.1.1.1, 239.0.0.0/8 or ff3e::1";
    Ok((addr.parse().map_err(|_| wrong(format!("bad address `{addr}', {expected}")))?, len))
}

fn prefix(args: &Args) -> Result<Prefix, CliError> {
    let (first, len) = address(args, "first")?;
    if !args.has("second") {
        let len = len.unwrap_or(Family::of(first).max_len());
        return Prefix::group(first, len).map_err(|e| CliError::argument("first", e.to_string()));
    }
    let (second, group_len) = address(args, "second")?;
    let most = Family::of(second).max_len();
    if group_len.is_some_and(|len| len != most) {
        let text = args.text("second").unwrap_or_default().to_owned();
        return Err(CliError::argument("second", MfibError::SourceAndPrefix(text).to_string()));
    }
    Prefix::source_group(first, second).map_err(|e| match e {
        MfibError::NotASource(_) => CliError::argument("first", e.to_string()),
        _ => CliError::argument("second", e.to_string()),
    })
}

fn mroute(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (mfib, fib) = (control.get::<Mfib>()?, control.get::<Fib>()?);
    let prefix = prefix(args)?;
    let table = args.opt::<TableArg>("table")?;
    let table = table.map_or(Ok(FibIndex::DEFAULT), |t| t.of(&fib, prefix.family(), "table"))?;
    let mut change = Change::default();
    for (flag, word) in EntryFlags::NAMES {
        if args.has(word) {
            change.flags = change.flags.with(flag);
        }
    }
    for group in args.groups("via") {
        let member = match group.opt::<InterfaceArg>("interface")? {
            Some(InterfaceArg(interface)) => Member::Interface(interface),
            None => Member::Local,
        };
        let said = ItfFlags::NAMES.into_iter().filter(|(_, word)| group.has(word));
        change.members.push((member, said.fold(ItfFlags::default(), |all, (flag, _)| all.with(flag))));
    }
    let done = if args.has("add") {
        mfib.add(table, prefix, Source::Cli, &change)
    } else {
        mfib.remove(table, prefix, Source::Cli, &change)
    };
    done.map_err(|e| match &e {
        MfibError::NoEntry { nearest, .. } => {
            let nearest = nearest.map(|n| n.to_string());
            CliError::argument("first", e.to_string()).nearest(nearest)
        }
        MfibError::NoFlags | MfibError::LocalAccepts | MfibError::LinkGroup(_) | MfibError::NoPath { .. } => {
            CliError::argument("via", e.to_string())
        }
        _ => CliError::failed(e.to_string()),
    })?;
    Ok(Output::none())
}

fn show4(control: &Control, args: &Args) -> Result<Output, CliError> {
    show(control, args, Family::Ip4)
}

fn show6(control: &Control, args: &Args) -> Result<Output, CliError> {
    show(control, args, Family::Ip6)
}

fn show(control: &Control, args: &Args, family: Family) -> Result<Output, CliError> {
    let fib = control.get::<Fib>()?;
    let only = args.opt::<TableArg>("table")?.map(|t| t.of(&fib, family, "table")).transpose()?;
    let mut tables = fib.list_tables(family);
    tables.retain(|t| only.is_none_or(|only| only == t.index));
    if args.has("summary") {
        return Ok(Output::view(SummaryView::new(control, family, &tables)?));
    }
    Ok(Output::listing(MfibListing::new(control, family, &tables, args.opt("group")?)?))
}
