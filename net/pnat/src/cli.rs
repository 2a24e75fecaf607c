//! Commands: `set pnat translation`, `show pnat`.

use std::fmt;
use std::net::Ipv4Addr;
use std::rc::Rc;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output, nearest};
use shoal_nat::Tuple;
use shoal_wire::IpProtocol;

use crate::{AttachedTo, Fields, Match, Place, Pnat, PnatError, Rewrite};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set pnat translation interface <interface:interface> match {[src <src:ip4-address>] & [dst <dst:ip4-address>] \
         & [proto <proto:word>] & [sport <sport:u16>] & [dport <dport:u16>]} rewrite {[src <new-src:ip4-address>] \
         & [dst <new-dst:ip4-address>] & [sport <new-sport:u16>] & [dport <new-dport:u16>] \
         & [copy byte at offset <from:u8> to <to:u8>] & [clear byte at offset <clear:u8>]} {in | out} [del]",
        "Give packets that match other addresses and ports, without state",
        translation,
    )
    .examples(&[
        "set pnat translation interface local0 match src 10.0.0.5 rewrite src 192.0.2.5 out",
        "set pnat translation interface local0 match dst 192.0.2.5 proto UDP dport 53 rewrite dst 10.0.0.5 dport 5353 in",
    ])
    .doc(
        "All rules of an interface and direction look at the same fields. Ports need `proto TCP` or `proto UDP`. Checksums follow. \
         The offsets of bytes are counted from the IP header.",
    ),
    Command::new("show pnat translations", "Show rules that replace addresses and ports", translations)
        .examples(&["show pnat translations"]),
    Command::new("show pnat interfaces", "Show where rules that replace addresses and ports are", interfaces)
        .examples(&["show pnat interfaces"]),
];

fn pnat(control: &Control) -> Result<Rc<Pnat>, CliError> {
    Ok(control.get::<Pnat>()?)
}

/// A protocol by its name or number.
fn protocol(text: &str) -> Result<u8, CliError> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let names: Vec<String> = (0..=u8::MAX).map(|number| IpProtocol(number).to_string()).collect();
    let found = names.iter().position(|name| name.eq_ignore_ascii_case(text));
    let near = || nearest(&text.to_uppercase(), names.iter().map(String::as_str)).map(str::to_owned);
    found
        .and_then(|number| u8::try_from(number).ok())
        .ok_or_else(|| CliError::argument("proto", format!("{text} is no protocol")).nearest(near()))
}

/// The fields of a tuple that are named, and their values.
fn tuple(args: &Args, names: [&str; 4]) -> Result<(Fields, Tuple), CliError> {
    let [src, dst, sport, dport] = names;
    let any = Ipv4Addr::UNSPECIFIED;
    let tuple = Tuple {
        src: args.or(src, any)?.to_bits(),
        dst: args.or(dst, any)?.to_bits(),
        sport: args.or(sport, 0)?,
        dport: args.or(dport, 0)?,
    };
    let fields = [(src, Fields::SRC), (dst, Fields::DST), (sport, Fields::SPORT), (dport, Fields::DPORT)];
    let named = fields.iter().filter(|(name, _)| args.text(name).is_some());
    Ok((named.fold(Fields::default(), |mask, (_, field)| mask.or(*field)), tuple))
}

fn translation(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (mut mask, from) = tuple(args, ["src", "dst", "sport", "dport"])?;
    let mut of = Match { tuple: from, ..Match::default() };
    if let Some(text) = args.text("proto") {
        of.protocol = protocol(text)?;
        mask = mask.or(Fields::PROTO);
    }
    of.mask = mask;
    let (mut mask, to) = tuple(args, ["new-src", "new-dst", "new-sport", "new-dport"])?;
    for (name, field) in [("from", Fields::COPY_BYTE), ("clear", Fields::CLEAR_BYTE)] {
        if args.text(name).is_some() {
            mask = mask.or(field);
        }
    }
    let rewrite = Rewrite {
        mask,
        tuple: to,
        from_offset: args.or("from", 0)?,
        to_offset: args.or("to", 0)?,
        clear_offset: args.or("clear", 0)?,
    };
    let InterfaceArg(interface) = args.get("interface")?;
    let at = (interface, if args.has("out") { Place::Output } else { Place::Input });
    let pnat = pnat(control)?;
    if args.has("del") {
        let index = pnat.exact(at, of, rewrite).ok_or_else(|| {
            CliError::argument(
                "interface",
                "there is no such rule there; `show pnat translations' lists them",
            )
        })?;
        pnat.detach(at, index).map_err(refused)?;
        // A client may have attached it elsewhere, too.
        if !pnat.attached().iter().any(|(_, one, ..)| *one == index) {
            pnat.del(index).map_err(refused)?;
        }
        return Ok(Output::none());
    }
    let index =
        pnat.add(of, rewrite).map_err(|e| CliError::failed(format!("Adding binding failed -1: {e}")))?;
    if let Err(error) = pnat.attach(at, index) {
        // Nothing is half done.
        pnat.del(index).map_err(refused)?;
        let number = if matches!(error, PnatError::OtherFields(..)) { -2 } else { -1 };
        return Err(CliError::failed(format!("Attaching binding to interface failed {number}: {error}")));
    }
    Ok(Output::none())
}

fn refused(error: PnatError) -> CliError {
    CliError::failed(error.to_string())
}

#[derive(Serialize)]
struct Translation {
    index: u32,
    r#match: String,
    rewrite: String,
}

impl fmt::Display for Translation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[{}] match: {} rewrite: {}", self.index, self.r#match, self.rewrite)
    }
}

fn translations(control: &Control, _: &Args) -> Result<Output, CliError> {
    let all = pnat(control)?.bindings(0).into_iter();
    Ok(Output::rows(
        "",
        all.map(|(index, of, rewrite)| Translation {
            index,
            r#match: of.to_string(),
            rewrite: rewrite.to_string(),
        }),
    ))
}

#[derive(Serialize)]
struct AttachedInterface {
    sw_if_index: u32,
    interface: String,
    input_mask: Option<String>,
    output_mask: Option<String>,
}

impl fmt::Display for AttachedInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sw_if_index: {}", self.sw_if_index)?;
        for (name, mask) in [("input", &self.input_mask), ("output", &self.output_mask)] {
            if let Some(mask) = mask {
                write!(f, " {name} mask: {mask}")?;
            }
        }
        writeln!(f)
    }
}

fn interfaces(control: &Control, _: &Args) -> Result<Output, CliError> {
    let names = control.get::<Interfaces>()?;
    let all = pnat(control)?.interfaces().into_iter();
    Ok(Output::rows(
        "",
        all.map(move |(interface, AttachedTo { input, output })| AttachedInterface {
            sw_if_index: interface.0,
            interface: names.name(interface).unwrap_or_default(),
            input_mask: input.map(|mask| mask.to_string()),
            output_mask: output.map(|mask| mask.to_string()),
        }),
    ))
}
