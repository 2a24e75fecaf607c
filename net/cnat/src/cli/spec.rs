//! Translations as they are written, read and written again.

use std::fmt::Write;
use std::iter::Peekable;
use std::net::IpAddr;
use std::vec::IntoIter;

use shoal_adj::Family;
use shoal_fib::FlowFields;
use shoal_interface::Interfaces;
use shoal_module::cli::CliError;
use shoal_module::word;

use crate::show::Proto;
use crate::translation::{Flags, LbType};
use crate::{AddressSource, Endpoint, NO_NAT, PathSpec, Spec};

/// The words that are left.
type Words = Peekable<IntoIter<String>>;

const ARROW: &str = "->";

fn unknown(words: &mut Words) -> CliError {
    let rest: Vec<String> = words.collect();
    CliError::failed(format!("unknown input '{}'", rest.join(" ")))
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok(),
        None => text.parse().ok(),
    }
}

/// An address, or an interface with the family of its address. The words stay if they are neither.
fn address_source(interfaces: &Interfaces, words: &mut Words) -> Option<AddressSource> {
    let found = {
        let text = words.peek()?;
        match text.parse::<IpAddr>() {
            Ok(address) => AddressSource::Given(address),
            Err(_) => AddressSource::Interface(interfaces.by_name(text)?, Family::Ip4),
        }
    };
    words.next();
    Some(match found {
        AddressSource::Interface(interface, _) if words.next_if(|text| text == "v6").is_some() => {
            AddressSource::Interface(interface, Family::Ip6)
        }
        other => other,
    })
}

/// An address and, if one follows, a port.
fn endpoint(interfaces: &Interfaces, words: &mut Words) -> Option<Endpoint> {
    let from = address_source(interfaces, words)?;
    let port = words.peek().and_then(|text| text.parse().ok());
    if port.is_some() {
        words.next();
    }
    Some(Endpoint { from, port: port.unwrap_or(0) })
}

fn path(interfaces: &Interfaces, words: &mut Words) -> Result<PathSpec, CliError> {
    let first = match words.peek() {
        Some(text) if text == ARROW => None,
        _ => Some(endpoint(interfaces, words).ok_or_else(|| unknown(words))?),
    };
    let arrow = words.next_if(|text| text == ARROW).is_some();
    let (source, destination) = match (first, arrow) {
        (Some(destination), false) => (Endpoint::NONE, destination),
        (source, _) => {
            let destination = endpoint(interfaces, words).ok_or_else(|| unknown(words))?;
            (source.unwrap_or(Endpoint::NONE), destination)
        }
    };
    let flags = if words.next_if(|text| text == "no-nat").is_some() { NO_NAT } else { 0 };
    Ok(PathSpec { source, destination, flags })
}

/// Reads what stands behind `cnat translation add`.
pub(super) fn read(interfaces: &Interfaces, text: &str) -> Result<Spec, CliError> {
    let text = text.replace(ARROW, " -> ");
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let mut words: Words = words.into_iter().peekable();
    let mut spec = Spec {
        vip: Endpoint::NONE,
        // VPP's default.
        protocol: 6,
        is_real: false,
        flags: Flags::default(),
        lb: LbType::Default,
        fields: FlowFields::DEFAULT,
        paths: Vec::new(),
    };
    while let Some(text) = words.peek().cloned() {
        let flag = match text.as_str() {
            "alloc-port" => Flags::ALLOC_PORT,
            "no-return-session" => Flags::NO_RETURN_SESSION,
            "no-client" => Flags::NO_CLIENT,
            _ => 0,
        };
        if flag == 0 && !matches!(text.as_str(), "proto" | "vip" | "real" | "to" | "lb" | "flow-hash") {
            return Err(unknown(&mut words));
        }
        words.next();
        spec.flags.0 |= flag;
        match text.as_str() {
            "proto" => spec.protocol = protocol(&mut words)?,
            "vip" | "real" => {
                spec.is_real = text == "real";
                spec.vip = endpoint(interfaces, &mut words).ok_or_else(|| unknown(&mut words))?;
            }
            "to" => spec.paths.push(path(interfaces, &mut words)?),
            "lb" => spec.lb = lb(&mut words)?,
            "flow-hash" => spec.fields = fields(&mut words)?,
            _ => {}
        }
    }
    Ok(spec)
}

fn protocol(words: &mut Words) -> Result<u8, CliError> {
    let protocol = match words.peek().map(|text| text.to_ascii_uppercase()).as_deref() {
        Some("TCP") => 6,
        Some("UDP") => 17,
        Some(other) => other.parse().map_err(|_| {
            CliError::argument("translation", format!("no protocol '{other}', nearest TCP, UDP"))
        })?,
        None => return Err(unknown(words)),
    };
    words.next();
    Ok(protocol)
}

fn lb(words: &mut Words) -> Result<LbType, CliError> {
    let lb = match words.peek().map(String::as_str) {
        Some("default") => LbType::Default,
        Some("maglev") => LbType::Maglev,
        _ => return Err(unknown(words)),
    };
    words.next();
    Ok(lb)
}

fn fields(words: &mut Words) -> Result<FlowFields, CliError> {
    let Some(bits) = words.peek().and_then(|text| number(text)).filter(|bits| *bits <= 0xff) else {
        return Err(unknown(words));
    };
    words.next();
    Ok(FlowFields::from_bits(bits))
}

fn endpoint_text(endpoint: Endpoint, interfaces: &Interfaces) -> String {
    let Endpoint { from, port } = endpoint;
    let mut text = match from {
        AddressSource::Given(address) => address.to_string(),
        AddressSource::Interface(interface, family) => {
            let name = interfaces.name(interface).unwrap_or_default();
            let name = word(&name).into_owned();
            if family == Family::Ip6 { format!("{name} v6") } else { name }
        }
    };
    if port != 0 {
        let _ = write!(text, " {port}");
    }
    text
}

/// The command that makes a translation.
pub(crate) fn text(spec: &Spec, interfaces: &Interfaces) -> String {
    let Spec { vip, protocol, is_real, flags, lb, fields, paths } = spec;
    let kind = if *is_real { "real" } else { "vip" };
    let vip = endpoint_text(*vip, interfaces);
    let mut line = format!("cnat translation add proto {} {kind} {vip}", Proto(*protocol));
    if *lb == LbType::Maglev {
        line += " lb maglev";
    }
    if *fields != FlowFields::DEFAULT {
        let _ = write!(line, " flow-hash {:#x}", fields.bits());
    }
    for (flag, word) in [
        (Flags::ALLOC_PORT, " alloc-port"),
        (Flags::NO_RETURN_SESSION, " no-return-session"),
        (Flags::NO_CLIENT, " no-client"),
    ] {
        if flags.has(flag) {
            line += word;
        }
    }
    for path in paths {
        let source = match path.source {
            Endpoint::NONE => String::new(),
            source => endpoint_text(source, interfaces),
        };
        let _ = write!(line, " to {source}->{}", endpoint_text(path.destination, interfaces));
        if path.flags & NO_NAT != 0 {
            line += " no-nat";
        }
    }
    line
}
