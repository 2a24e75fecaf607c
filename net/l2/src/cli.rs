//! Commands: `set interface l2 xconnect`, `set interface l3`, `set interface l2 tag-rewrite`, `set interface l2 pbb-tag-rewrite`,
//! `set interface l2 efp-filter`, `show interface vtr`.

use std::fmt;

use serde::Serialize;
use shoal_ethernet::{TagKind, Vid};
use shoal_interface::{InterfaceArg, Interfaces, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::MacAddress;

use crate::{L2, Mode, Output as Out, Patches, PbbOp, PbbRewrite, ServiceId, TagOp, TagRewrite};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set interface l2 xconnect <interface> <peer:interface>",
        "Send all frames of an interface out of another one",
        xconnect,
    )
    .doc("One command is one direction: the way back is another one. `set interface l3` ends it."),
    Command::new("set interface l3 <interface>", "Route the packets of an interface, do not switch its frames", l3)
        .examples(&["set interface l3 local0"]),
    Command::new(
        "set interface l2 tag-rewrite <interface> {disable | pop <count:u8> | push {dot1q | dot1ad} <tag:u16> \
         [<inner:u16>] | translate <how:word> {dot1q | dot1ad} <tag:u16> [<inner:u16>]}",
        "Take VLAN tags off frames of an interface in layer 2, put some on, or both",
        rewrite,
    )
    .doc(
        "For frames that come in; the same is done the other way round to those that go out. `translate 1-2` takes one tag \
         off and puts two on. The priority of a tag that is taken off is lost.",
    ),
    Command::new(
        "set interface l2 pbb-tag-rewrite <interface> {disable | pop | push | translate_pbb_stag <outer_tag:u16>} \
         {[dmac <dmac:mac>] & [smac <smac:mac>] & [s_id <s_id:u32>] & [b_vlanid <b_vlanid:u16>]}",
        "Put the header of a provider's bridge (802.1ah) on frames of an interface in layer 2, or take it off",
        pbb_rewrite,
    )
    .doc(
        "For frames that come in; the same is done the other way round to those that go out. `push` and `translate_pbb_stag` need \
         `dmac`, `smac` and `s_id`. Frames that lose a header must have the service and the VLAN that are named, 0 unless they are. \
         `translate_pbb_stag` takes the header off and puts a service VLAN tag on the customer's frame.",
    ),
    Command::new(
        "set interface l2 efp-filter <interface> [disable]",
        "Drop frames on their way out whose tags are not the interface's own",
        efp_filter,
    ),
    Command::new(
        "test l2patch {rx <rx:interface> & tx <tx:interface> & [del]}",
        "Send what an interface receives out of another one, past everything: for tests of drivers",
        patch,
    ),
    Command::new("show l2patch", "Show these", show_patch).examples(&["show l2patch"]),
    Command::new("show interface vtr <interface>", "Show what an interface does to VLAN tags", show_vtr)
        .examples(&["show interface vtr local0"]),
];

fn xconnect(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (InterfaceArg(rx), InterfaceArg(tx)) = (args.get("interface")?, args.get("peer")?);
    control.get::<L2>()?.set_mode(rx, Mode::Xconnect(tx))?;
    Ok(Output::none())
}

fn l3(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let l2 = control.get::<L2>()?;
    if l2.mode(interface) != Mode::L3 {
        l2.set_mode(interface, Mode::L3)?;
    }
    Ok(Output::none())
}

fn id(args: &Args, name: &'static str) -> Result<Option<Vid>, CliError> {
    let Some(number) = args.opt::<u16>(name)? else { return Ok(None) };
    let error = || CliError::argument(name, "a VLAN's number is 0 to 4095").nearest(Some("4095".into()));
    Vid::new(number).map(Some).ok_or_else(error)
}

/// The operation that a line asks for.
fn rewrite_of(args: &Args) -> Result<TagRewrite, CliError> {
    let kind = if args.has("dot1ad") { TagKind::Dot1ad } else { TagKind::Dot1q };
    let (tag, inner) = (id(args, "tag")?, id(args, "inner")?);
    let ids = [tag, inner].map(|id| id.or(Vid::new(0)));
    let (Some(outer), Some(second)) = (ids[0], ids[1]) else { return Ok(TagRewrite::none()) };
    let push = usize::from(tag.is_some()) + usize::from(inner.is_some());
    let wrong = |name, text: &str, near: &str| {
        Err(CliError::argument(name, format!("`{text}' is not possible")).nearest(Some(near.to_owned())))
    };
    let counts = if args.has("disable") {
        (0, 0)
    } else if let Some(count) = args.opt::<u8>("count")? {
        (usize::from(count), 0)
    } else if let Some(how) = args.text("how") {
        let Some((pop, said)) = how.split_once('-') else { return wrong("how", how, "1-1") };
        match (pop, said.parse::<usize>()) {
            ("1", Ok(n)) if n == push => (1, push),
            ("2", Ok(n)) if n == push => (2, push),
            ("1" | "2", Ok(1 | 2)) => {
                return Err(CliError::argument("how", "it needs as many tags as it puts on"));
            }
            _ => return wrong("how", how, "1-1"),
        }
    } else {
        (0, push)
    };
    match TagOp::of_counts(counts.0, counts.1) {
        Some(op) => Ok(TagRewrite { op, kind, ids: [outer, second] }),
        None => wrong("count", &counts.0.to_string(), "2"),
    }
}

fn rewrite(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    control.get::<L2>()?.set_tags(interface, rewrite_of(args)?)?;
    Ok(Output::none())
}

/// The operation on a provider's header that a line asks for.
fn pbb_of(args: &Args) -> Result<PbbRewrite, CliError> {
    let outer = id(args, "outer_tag")?;
    let op = match outer {
        Some(stag) => PbbOp::Translate(stag),
        None if args.has("push") => PbbOp::Push,
        None if args.has("pop") => PbbOp::Pop,
        None => return Ok(PbbRewrite::none()),
    };
    let (dst, src) = (args.opt::<MacAddress>("dmac")?, args.opt::<MacAddress>("smac")?);
    let service = args.opt::<u32>("s_id")?;
    let missing = [("dmac", dst.is_none()), ("smac", src.is_none()), ("s_id", service.is_none())];
    if op != PbbOp::Pop
        && let Some((name, _)) = missing.into_iter().find(|(_, missing)| *missing)
    {
        return Err(CliError::argument(
            name,
            "expecting dmac <address> smac <address> s_id <nn> [b_vlanid <nn>]",
        ));
    }
    let none = PbbRewrite::none();
    let too_high = || {
        let highest = ServiceId::MAX.to_string();
        CliError::argument("s_id", format!("a service's number is 0 to {highest}")).nearest(Some(highest))
    };
    Ok(PbbRewrite {
        op,
        dst: dst.unwrap_or(none.dst),
        src: src.unwrap_or(none.src),
        vlan: id(args, "b_vlanid")?.unwrap_or(none.vlan),
        service: ServiceId::new(service.unwrap_or(0)).ok_or_else(too_high)?,
    })
}

fn pbb_rewrite(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    control.get::<L2>()?.set_pbb(interface, pbb_of(args)?)?;
    Ok(Output::none())
}

fn efp_filter(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let l2 = control.get::<L2>()?;
    l2.check(interface)?;
    let output = l2.output(interface);
    let wanted =
        if args.has("disable") { output.without(Out::EfpFilter) } else { output.with(Out::EfpFilter) };
    l2.set_output(interface, wanted)?;
    Ok(Output::none())
}

fn patch(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (InterfaceArg(rx), InterfaceArg(tx)) = (args.get("rx")?, args.get("tx")?);
    control.get::<Patches>()?.set(rx, (!args.has("del")).then_some(tx))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Patched(Vec<(String, String)>);

impl fmt::Display for Patched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no l2patch entries\n");
        }
        self.0.iter().try_for_each(|(rx, tx)| writeln!(f, "{rx:>26} -> {tx}"))
    }
}

fn show_patch(control: &Control, _: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let name = |index| interfaces.name(index).unwrap_or_else(|_| "DELETED".into());
    let all = control.get::<Patches>()?.list();
    Ok(Output::view(Patched(all.into_iter().map(|(rx, tx)| (name(rx), name(tx))).collect())))
}

#[derive(Serialize)]
struct Vtr {
    interface: String,
    rewrite: String,
    pbb: Option<String>,
}

impl fmt::Display for Vtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:  VTR {}", self.interface, self.rewrite)?;
        self.pbb.iter().try_for_each(|pbb| writeln!(f, "{}:  PBB {pbb}", self.interface))
    }
}

fn show_vtr(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(index) = args.get("interface")?;
    let interface = control.get::<Interfaces>()?.name(index)?;
    let l2 = control.get::<L2>()?;
    let (rewrite, pbb) = (l2.tags(index).to_string(), l2.pbb(index));
    let pbb = pbb.is_some().then(|| pbb.to_string());
    Ok(Output::view(Vtr { interface, rewrite, pbb }))
}

/// The commands that make an interface do to tags what it does.
pub fn lines_of_tags(l2: &L2, interface: SwIfIndex, name: &str) -> Vec<String> {
    let (tags, pbb) = (l2.tags(interface), l2.pbb(interface));
    let on = tags.op != TagOp::Disabled;
    let tags = on.then(|| format!("set interface l2 tag-rewrite {name} {}", tags.command()));
    let pbb = pbb.is_some().then(|| format!("set interface l2 pbb-tag-rewrite {name} {pbb}"));
    tags.into_iter().chain(pbb).collect()
}
