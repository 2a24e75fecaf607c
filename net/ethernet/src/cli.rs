//! Commands of sub-interfaces: create and delete.

use std::rc::Rc;

use shoal_interface::{Exact, Inner, InterfaceArg, Interfaces, Match, SwIfIndex, TagKind, Vid};
use shoal_module::Control;
use shoal_module::cli::{
    ArgType, Args, CliError, Command, Expected, FromArg, Later, Output, Pace, Sink, check,
};

use crate::{Ethernet, SubError};

/// Commands of this crate.
pub(crate) static COMMANDS: &[Command] = &[CREATE, DELETE];

/// Argument types of this crate.
pub(crate) static ARG_TYPES: &[ArgType] = &[
    ArgType::new("sub-interface-ids", "a sub-interface's number or a range, such as 100-199", check::<Ids>),
    ArgType::live("vlan", "a VLAN's number, 1 to 4095, or any", check::<Vlan>, |_, _| vec!["any".into()]),
    ArgType::live("sub-interface", "a sub-interface's name", check::<InterfaceArg>, names),
];

const CREATE: Command = Command::new(
    "create sub-interfaces <interface> <ids:sub-interface-ids> \
     [{dot1q <dot1q:vlan> | dot1ad <dot1ad:vlan> | default | untagged}] [inner-dot1q <inner:vlan>] [exact-match]",
    "Create interfaces for some of the frames of another; tells their names",
    create,
)
.long(are_many, create_many)
.examples(&[
    "create sub-interfaces loop0 100",
    "create sub-interfaces loop0 100-199",
    "create sub-interfaces loop0 7 dot1q 700 exact-match",
    "create sub-interfaces loop0 8 dot1ad 10 inner-dot1q 20 exact-match",
    "create sub-interfaces loop0 9 dot1q 11 inner-dot1q any",
    "create sub-interfaces loop0 1000 default",
    "create sub-interfaces loop0 1001 untagged",
])
.doc(
    "A number or a range alone is `dot1q NUMBER exact-match` of each; those that exist are left as they are. Only \
     sub-interfaces with exact-match, and untagged ones, can be routed. Without exact-match frames with further tags \
     are taken too, for layer 2. `default` takes tagged frames that no other takes.",
);

const DELETE: Command =
    Command::new("delete sub-interface <sub:sub-interface>", "Delete a sub-interface", delete);

/// Sub-interfaces that are made without a pause.
const FEW: u32 = 8;

/// `100` or `100-199`.
#[derive(Clone, Copy)]
struct Ids(u32, u32);

impl FromArg for Ids {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Ids(first, last)),
            _ => Err(Expected::new("ID or ID MIN-MAX, such as 100 or 100-199")),
        }
    }
}

/// A tag's VLAN, or any.
#[derive(Clone, Copy)]
enum Vlan {
    Any,
    One(Vid),
}

impl FromArg for Vlan {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let number = || text.parse::<u32>().map_err(|_| Expected::new("a VLAN's number, 1 to 4095, or any"));
        match text {
            "any" => Ok(Vlan::Any),
            _ => match number()? {
                n @ 0..=4095 => Ok(Vlan::One(Vid::new(n as u16).unwrap_or(Vid::NONE))),
                _ => Err(Expected::new("a VLAN's number, 1 to 4095, or any").nearest(Some("4095".into()))),
            },
        }
    }
}

fn names(control: &Control, _: &str) -> Vec<String> {
    let Ok(interfaces) = control.get::<Interfaces>() else { return Vec::new() };
    let subs = interfaces.indices().into_iter().filter(|index| interfaces.sub(*index).is_some());
    subs.filter_map(|index| interfaces.name(index).ok()).collect()
}

/// Which frames a command names; `None`: those of the VLAN that has the sub-interface's number.
fn takes(args: &Args) -> Result<Option<Match>, CliError> {
    let exact = if args.has("exact-match") { Exact::Yes } else { Exact::No };
    let inner = args.opt::<Vlan>("inner")?;
    let of = [(TagKind::Dot1q, "dot1q"), (TagKind::Dot1ad, "dot1ad")];
    for (kind, name) in of {
        let Some(outer) = args.opt::<Vlan>(name)? else { continue };
        let Vlan::One(outer) = outer else {
            return Err(CliError::argument(
                name,
                "`any' is not implemented for the outer tag: name a VLAN, 1 to 4095, or create one with `default'",
            ));
        };
        let inner = match inner {
            None => Inner::None,
            Some(Vlan::Any) => Inner::Any,
            Some(Vlan::One(id)) => Inner::Id(id),
        };
        return Ok(Some(Match::Tags { kind, outer, inner, exact }));
    }
    if inner.is_some() {
        return Err(CliError::argument(
            "inner",
            "an inner tag needs an outer one: name it with dot1q or dot1ad",
        ));
    }
    Ok(match () {
        () if args.has("default") => Some(Match::Default),
        () if args.has("untagged") => Some(Match::Untagged),
        () if exact == Exact::Yes => {
            return Err(CliError::argument(
                "exact-match",
                "it is about tags: name them with dot1q or dot1ad",
            ));
        }
        () => None,
    })
}

/// Whether so many are asked for that making them would keep others waiting.
fn are_many(args: &Args) -> bool {
    args.get::<Ids>("ids").is_ok_and(|Ids(first, last)| last - first >= FEW)
}

fn create_many(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let pace = Pace::default();
        let InterfaceArg(port) = args.get("interface")?;
        let Ids(first, last) = args.get("ids")?;
        let mut names = String::new();
        let mut from = first;
        // All faults are reported before the first one is made.
        while from <= last {
            let to = from.saturating_add(FEW - 1).min(last);
            names.push_str(&create_range(&control, &args, port, (from, to, last))?);
            pace.give_way().await;
            if sink.is_gone() {
                return Err(CliError::failed(format!("interrupted: those up to {to} are there")));
            }
            from = to + 1;
        }
        Ok(Output::text(names))
    })
}

/// Those of a range that are not there yet; `most` is the last of all.
fn create_range(
    control: &Control,
    args: &Args,
    port: SwIfIndex,
    (first, last, most): (u32, u32, u32),
) -> Result<String, CliError> {
    let (ethernet, interfaces) = (control.get::<Ethernet>()?, control.get::<Interfaces>()?);
    if takes(args)?.is_some() {
        return Err(CliError::argument("ids", "a range says which VLANs: tags cannot be named besides"));
    }
    let vid = |number| Vid::new(number as u16).filter(|_| number < 4096).ok_or(SubError::NoSuchVlan(number));
    vid(most)?;
    let mut names = String::new();
    for number in first..=last {
        let takes = Match::exact_dot1q(vid(number)?);
        if interfaces.sub_of(port, number).is_none() {
            let index = ethernet.create_sub(port, number, takes)?;
            names.push_str(&interfaces.name(index)?);
            names.push('\n');
        }
    }
    Ok(names)
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (ethernet, interfaces) = (control.get::<Ethernet>()?, control.get::<Interfaces>()?);
    let InterfaceArg(port) = args.get("interface")?;
    let Ids(first, last) = args.get("ids")?;
    match takes(args)? {
        Some(takes) if first == last => {
            let index = ethernet.create_sub(port, first, takes)?;
            Ok(Output::text(format!("{}\n", interfaces.name(index)?)))
        }
        _ => Ok(Output::text(create_range(control, args, port, (first, last, last))?)),
    }
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Ethernet>()?.delete_sub(args.get::<InterfaceArg>("sub")?.0)?;
    Ok(Output::none())
}
