//! Messages as JSON, and back. Addresses, prefixes and MAC addresses are text; named numbers are their names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value as Json, json};

use super::description::{Count, Description, Field, Kind};

/// JSON that is no message, or a message that is cut off.
#[derive(Debug, PartialEq, Eq)]
pub struct CodecError(pub String);

impl std::fmt::Display for CodecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

type Result<T> = std::result::Result<T, CodecError>;

fn wrong<T>(text: impl Into<String>) -> Result<T> {
    Err(CodecError(text.into()))
}

/// Types within types: deeper than any message of a router that is not out to do harm.
const DEEPEST: usize = 16;
/// Elements of one field.
const MOST: u64 = 1 << 24;

/// Writes fields from a JSON object. What it does not name is the default, or zeros.
pub fn encode(all: &Description, fields: &[Field], object: &Json, to: &mut Vec<u8>) -> Result<()> {
    encode_fields(all, fields, object, to, DEEPEST)
}

/// Reads fields into a JSON object.
pub fn decode(all: &Description, fields: &[Field], input: &mut &[u8]) -> Result<Json> {
    decode_fields(all, fields, input, DEEPEST).map(Json::Object)
}

fn encode_fields(
    all: &Description,
    fields: &[Field],
    object: &Json,
    to: &mut Vec<u8>,
    depth: usize,
) -> Result<()> {
    let empty = Map::new();
    let given = match object {
        Json::Null => &empty,
        Json::Object(given) => given,
        other => return wrong(format!("{other} is no object of fields")),
    };
    if let Some(unknown) = given.keys().find(|key| !fields.iter().any(|f| f.name == **key)) {
        let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
        return wrong(format!("there is no field '{unknown}'; there are: {}", names.join(", ")));
    }
    for field in fields {
        let counts = fields.iter().find(|f| f.count == Count::By(field.name.clone()));
        let value = match counts {
            Some(list) => {
                given.get(&list.name).and_then(Json::as_array).map_or(json!(0), |all| json!(all.len()))
            }
            None => given.get(&field.name).or(field.default.as_ref()).cloned().unwrap_or_default(),
        };
        let named = |CodecError(why)| CodecError(format!("{}: {why}", field.name));
        encode_field(all, field, &value, to, depth).map_err(named)?;
    }
    Ok(())
}

fn encode_field(
    all: &Description,
    field: &Field,
    value: &Json,
    to: &mut Vec<u8>,
    depth: usize,
) -> Result<()> {
    match (&field.count, field.of.as_str()) {
        (Count::Open, _) => {
            let text = value.as_str().unwrap_or_default();
            to.extend((text.len() as u32).to_be_bytes());
            to.extend(text.as_bytes());
            Ok(())
        }
        (Count::Fixed(n), "string") => {
            let text = value.as_str().unwrap_or_default().as_bytes();
            if text.len() >= *n {
                return wrong(format!("{} bytes of text, {} at most", text.len(), n - 1));
            }
            let end = to.len() + n;
            to.extend(text);
            to.resize(end, 0);
            Ok(())
        }
        (Count::One, of) => encode_one(all, of, value, to, depth),
        (Count::Fixed(n), of) => {
            let items = list(value)?;
            if items.len() > *n {
                return wrong(format!("{} elements, {n} at most", items.len()));
            }
            (0..*n).try_for_each(|at| encode_one(all, of, items.get(at).unwrap_or(&Json::Null), to, depth))
        }
        (Count::By(_), of) => list(value)?.iter().try_for_each(|item| encode_one(all, of, item, to, depth)),
    }
}

/// A list; bytes may be given as hexadecimal text.
fn list(value: &Json) -> Result<Vec<Json>> {
    match value {
        Json::Null => Ok(Vec::new()),
        Json::Array(items) => Ok(items.clone()),
        Json::String(text) => {
            let digits: Vec<char> = text.chars().filter(|c| *c != ':').collect();
            let byte = |pair: &[char]| {
                u8::from_str_radix(&pair.iter().collect::<String>(), 16).ok().map(|b| json!(b))
            };
            let bytes: Option<Vec<Json>> = digits.chunks(2).map(byte).collect();
            bytes.ok_or_else(|| CodecError(format!("'{text}' is neither a list nor hexadecimal")))
        }
        other => wrong(format!("{other} is no list")),
    }
}

fn encode_one(all: &Description, of: &str, value: &Json, to: &mut Vec<u8>, depth: usize) -> Result<()> {
    if depth == 0 {
        return wrong("types within types are too deep");
    }
    if encode_text(of, value, to)? {
        return Ok(());
    }
    match all.kind(of) {
        None => number(of, value, to),
        Some(Kind::Alias(base, None)) => encode_one(all, base, value, to, depth - 1),
        Some(Kind::Alias(base, Some(n))) => {
            let field =
                Field { name: String::new(), of: base.clone(), count: Count::Fixed(*n), default: None };
            encode_field(all, &field, value, to, depth - 1)
        }
        Some(Kind::Numbers(width, entries)) => match value {
            Json::String(text) => {
                let mut bits = 0;
                for word in text.split('|').map(str::trim).filter(|word| !word.is_empty()) {
                    let Some((_, value)) = entries.iter().find(|(name, _)| name == word) else {
                        let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
                        return wrong(format!("'{word}' is none of: {}", names.join(", ")));
                    };
                    bits |= value;
                }
                number(width, &json!(bits), to)
            }
            other => number(width, other, to),
        },
        Some(Kind::Struct(fields)) => encode_fields(all, fields, value, to, depth - 1),
        Some(Kind::Union(fields)) => {
            let size = fields.iter().map(|f| zeros(all, f, depth - 1)).max().unwrap_or(0);
            let start = to.len();
            let chosen = value.as_object().and_then(|o| o.iter().next());
            if let Some((name, inner)) = chosen {
                let Some(field) = fields.iter().find(|f| f.name == *name) else {
                    return wrong(format!("there is no '{name}'"));
                };
                encode_field(all, field, inner, to, depth - 1)?;
            }
            to.resize((start + size).max(to.len()), 0);
            Ok(())
        }
    }
}

/// How many bytes a field takes when it has no value.
fn zeros(all: &Description, field: &Field, depth: usize) -> usize {
    let mut bytes = Vec::new();
    // What cannot be written takes none.
    let _: Result<()> = encode_field(all, field, &Json::Null, &mut bytes, depth);
    bytes.len()
}

/// Writes addresses and what is made of them, if they are given as text.
fn encode_text(of: &str, value: &Json, to: &mut Vec<u8>) -> Result<bool> {
    let Json::String(text) = value else { return Ok(false) };
    let bad = |what: &str| CodecError(format!("'{text}' is no {what}"));
    let union = |address: IpAddr, to: &mut Vec<u8>| match address {
        IpAddr::V4(a) => {
            to.extend(a.octets());
            to.extend([0; 12]);
        }
        IpAddr::V6(a) => to.extend(a.octets()),
    };
    match of {
        "vl_api_ip4_address_t" => {
            to.extend(text.parse::<Ipv4Addr>().map_err(|_| bad("IPv4 address"))?.octets());
        }
        "vl_api_ip6_address_t" => {
            to.extend(text.parse::<Ipv6Addr>().map_err(|_| bad("IPv6 address"))?.octets());
        }
        "vl_api_address_union_t" => union(text.parse().map_err(|_| bad("address"))?, to),
        "vl_api_address_t" => {
            let address: IpAddr = text.parse().map_err(|_| bad("address"))?;
            to.push(u8::from(address.is_ipv6()));
            union(address, to);
        }
        "vl_api_mac_address_t" => {
            let bytes: Vec<&str> = text.split([':', '-']).collect();
            let byte = |text: &&str| u8::from_str_radix(text, 16).ok();
            let bytes: Option<Vec<u8>> = bytes.iter().map(byte).collect();
            to.extend(bytes.filter(|b| b.len() == 6).ok_or_else(|| bad("MAC address"))?);
        }
        "vl_api_prefix_t" | "vl_api_address_with_prefix_t" => {
            let (address, len) = prefix(text)?;
            to.push(u8::from(address.is_ipv6()));
            union(address, to);
            to.push(len);
        }
        "vl_api_ip4_prefix_t" | "vl_api_ip4_address_with_prefix_t" => match prefix(text)? {
            (IpAddr::V4(address), len) => {
                to.extend(address.octets());
                to.push(len);
            }
            _ => return Err(bad("IPv4 prefix")),
        },
        "vl_api_ip6_prefix_t" | "vl_api_ip6_address_with_prefix_t" => match prefix(text)? {
            (IpAddr::V6(address), len) => {
                to.extend(address.octets());
                to.push(len);
            }
            _ => return Err(bad("IPv6 prefix")),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

fn prefix(text: &str) -> Result<(IpAddr, u8)> {
    let (address, len) = text.split_once('/').unwrap_or((text, ""));
    let address: IpAddr = address.parse().map_err(|_| CodecError(format!("'{text}' is no prefix")))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let len = if len.is_empty() { Ok(most) } else { len.parse() };
    len.ok()
        .filter(|n| *n <= most)
        .map(|n| (address, n))
        .ok_or_else(|| CodecError(format!("'{text}' is no prefix")))
}

fn number(of: &str, value: &Json, to: &mut Vec<u8>) -> Result<()> {
    if of == "f64" {
        to.extend(value.as_f64().unwrap_or_default().to_ne_bytes());
        return Ok(());
    }
    let truth = |text: &str| matches!(text, "true" | "True");
    let n: i128 = match value {
        Json::Null => 0,
        Json::Bool(b) => i128::from(*b),
        Json::String(text) if of == "bool" => i128::from(truth(text)),
        Json::String(text) => {
            let hex = text.strip_prefix("0x").map(|digits| i128::from_str_radix(digits, 16));
            hex.unwrap_or_else(|| text.parse()).map_err(|_| CodecError(format!("'{text}' is no number")))?
        }
        other => match (other.as_i64(), other.as_u64()) {
            (Some(n), _) => n.into(),
            (None, Some(n)) => n.into(),
            (None, None) => return wrong(format!("{other} is no whole number")),
        },
    };
    let (bytes, signed) = match of {
        "u8" | "bool" => (1, false),
        "u16" => (2, false),
        "u32" => (4, false),
        "u64" => (8, false),
        "i8" => (1, true),
        "i16" => (2, true),
        "i32" => (4, true),
        "i64" => (8, true),
        other => return wrong(format!("the router does not describe the type '{other}'")),
    };
    let bits = bytes * 8;
    let (least, most) =
        if signed { (-(1i128 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    if n < least || n > most {
        return wrong(format!("{n} is not between {least} and {most}"));
    }
    to.extend(n.to_be_bytes().iter().skip(16 - bytes));
    Ok(())
}

fn decode_fields(
    all: &Description,
    fields: &[Field],
    input: &mut &[u8],
    depth: usize,
) -> Result<Map<String, Json>> {
    let mut object = Map::new();
    for field in fields {
        let value = decode_field(all, field, input, &object, depth)?;
        object.insert(field.name.clone(), value);
    }
    Ok(object)
}

fn take<'a>(input: &mut &'a [u8], n: usize) -> Result<&'a [u8]> {
    let Some((taken, rest)) = input.split_at_checked(n) else { return wrong("the message is cut off") };
    *input = rest;
    Ok(taken)
}

fn decode_field(
    all: &Description,
    field: &Field,
    input: &mut &[u8],
    before: &Map<String, Json>,
    depth: usize,
) -> Result<Json> {
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        json!(String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()))
    };
    let count = match &field.count {
        Count::One => return decode_one(all, &field.of, input, depth),
        Count::Open => {
            let n = unsigned(take(input, 4)?);
            return Ok(text(take(input, n as usize)?));
        }
        Count::Fixed(n) if field.of == "string" => return Ok(text(take(input, *n)?)),
        Count::Fixed(n) => *n as u64,
        Count::By(name) => before.get(name).and_then(Json::as_u64).unwrap_or(0),
    };
    if count > MOST {
        return wrong(format!("{}: {count} elements, {MOST} at most", field.name));
    }
    let items: Result<Vec<Json>> = (0..count).map(|_| decode_one(all, &field.of, input, depth)).collect();
    items.map(Json::Array)
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

fn address(bytes: &[u8], is_ip6: bool) -> IpAddr {
    match bytes.first_chunk::<16>() {
        Some(all) if is_ip6 => Ipv6Addr::from(*all).into(),
        _ => Ipv4Addr::from(bytes.first_chunk::<4>().copied().unwrap_or_default()).into(),
    }
}

fn decode_text(of: &str, input: &mut &[u8]) -> Result<Option<Json>> {
    Ok(Some(match of {
        "vl_api_ip4_address_t" => json!(address(take(input, 4)?, false)),
        "vl_api_ip6_address_t" => json!(address(take(input, 16)?, true)),
        "vl_api_address_union_t" => {
            let bytes = take(input, 16)?;
            // The family stands elsewhere, or nowhere: an IPv4 address has zeros behind it.
            json!(address(bytes, bytes.iter().skip(4).any(|b| *b != 0)))
        }
        "vl_api_address_t" => {
            let is_ip6 = take(input, 1)? == [1];
            json!(address(take(input, 16)?, is_ip6))
        }
        "vl_api_prefix_t" | "vl_api_address_with_prefix_t" => {
            let is_ip6 = take(input, 1)? == [1];
            let address = address(take(input, 16)?, is_ip6);
            json!(format!("{address}/{}", unsigned(take(input, 1)?)))
        }
        "vl_api_ip4_prefix_t" | "vl_api_ip4_address_with_prefix_t" => {
            let address = address(take(input, 4)?, false);
            json!(format!("{address}/{}", unsigned(take(input, 1)?)))
        }
        "vl_api_ip6_prefix_t" | "vl_api_ip6_address_with_prefix_t" => {
            let address = address(take(input, 16)?, true);
            json!(format!("{address}/{}", unsigned(take(input, 1)?)))
        }
        "vl_api_mac_address_t" => {
            let bytes: Vec<String> = take(input, 6)?.iter().map(|b| format!("{b:02x}")).collect();
            json!(bytes.join(":"))
        }
        _ => return Ok(None),
    }))
}

fn decode_one(all: &Description, of: &str, input: &mut &[u8], depth: usize) -> Result<Json> {
    if depth == 0 {
        return wrong("types within types are too deep");
    }
    if let Some(text) = decode_text(of, input)? {
        return Ok(text);
    }
    match all.kind(of) {
        None => decode_number(of, input),
        Some(Kind::Alias(base, None)) => decode_one(all, base, input, depth - 1),
        Some(Kind::Alias(base, Some(n))) => {
            let field =
                Field { name: String::new(), of: base.clone(), count: Count::Fixed(*n), default: None };
            decode_field(all, &field, input, &Map::new(), depth - 1)
        }
        Some(Kind::Numbers(width, entries)) => {
            let value = decode_number(width, input)?;
            Ok(value.as_u64().and_then(|n| names(entries, n)).map_or(value, Json::String))
        }
        Some(Kind::Struct(fields)) => decode_fields(all, fields, input, depth - 1).map(Json::Object),
        Some(Kind::Union(fields)) => {
            let size = fields.iter().map(|f| zeros(all, f, depth - 1)).max().unwrap_or(0);
            let bytes = take(input, size)?;
            let mut object = Map::new();
            for field in fields {
                let value = decode_field(all, field, &mut &*bytes, &object, depth - 1)?;
                object.insert(field.name.clone(), value);
            }
            Ok(Json::Object(object))
        }
    }
}

/// The name of a number, or the names of its bits.
fn names(entries: &[(String, u64)], n: u64) -> Option<String> {
    if let Some((name, _)) = entries.iter().find(|(_, value)| *value == n) {
        return Some(name.clone());
    }
    let bits: Vec<&(String, u64)> =
        entries.iter().filter(|(_, v)| v.is_power_of_two() && n & v == *v).collect();
    let covered = bits.iter().fold(0, |all, (_, v)| all | v);
    (covered == n && n != 0).then(|| bits.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("|"))
}

fn decode_number(of: &str, input: &mut &[u8]) -> Result<Json> {
    let bytes = match of {
        "u8" | "i8" | "bool" => 1,
        "u16" | "i16" => 2,
        "u32" | "i32" => 4,
        "u64" | "i64" | "f64" => 8,
        other => return wrong(format!("the router does not describe the type '{other}'")),
    };
    let taken = take(input, bytes)?;
    let n = unsigned(taken);
    Ok(match of {
        "bool" => json!(n != 0),
        "f64" => json!(f64::from_ne_bytes(taken.first_chunk().copied().unwrap_or_default())),
        "i8" => json!(n as i8),
        "i16" => json!(n as i16),
        "i32" => json!(n as i32),
        "i64" => json!(n as i64),
        _ => json!(n),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn description() -> Description {
        Description::new(&json!([{
            "types": [
                ["address", ["u8", "af"], ["vl_api_address_union_t", "un"]],
                ["prefix", ["vl_api_address_t", "address"], ["u8", "len"]],
                ["path", ["u32", "sw_if_index"], ["vl_api_address_union_t", "nh"], ["u8", "labels", 2]],
                ["route", ["vl_api_prefix_t", "prefix"], ["u8", "n_paths"], ["vl_api_path_t", "paths", 0, "n_paths"]],
                ["loop", ["vl_api_loop_t", "inner"]],
            ],
            "unions": [
                ["address_union", ["u8", "ip4", 4], ["u8", "ip6", 16]],
                ["either", ["u8", "small"], ["u32", "large"]],
            ],
            "enums": [["flags", ["UP", 1], ["LINK", 2], { "enumtype": "u32" }]],
            "aliases": { "index": { "type": "u32" }, "mac_address": { "type": "u8", "length": 6 } },
            "messages": [
                ["say", ["u16", "_vl_msg_id"], ["u32", "client_index"], ["u32", "context"],
                 ["vl_api_index_t", "of", { "default": 4_294_967_295u32 }], ["string", "name", 8],
                 ["vl_api_mac_address_t", "mac"], ["vl_api_flags_t", "flags"], ["vl_api_route_t", "route"],
                 { "crc": "0x1" }],
            ],
            "services": { "say": { "reply": "say_reply" } },
        }]))
    }

    fn fields() -> Vec<Field> {
        let own = |f: &&Field| !matches!(f.name.as_str(), "client_index" | "context");
        description().message("say").unwrap().fields.iter().filter(own).cloned().collect()
    }

    fn written(object: &Json) -> Result<Vec<u8>> {
        let mut to = Vec::new();
        encode(&description(), &fields(), object, &mut to).map(|()| to)
    }

    #[test]
    fn what_was_written_is_read() {
        let message = json!({
            "of": 7, "name": "pg0", "mac": "02:fe:00:00:00:01", "flags": "UP|LINK",
            "route": { "prefix": "2001:db8::/32", "n_paths": 2, "paths": [
                { "sw_if_index": 1, "nh": "10.0.0.1", "labels": [1, 2] },
                { "sw_if_index": 2, "nh": "2001:db8::1", "labels": [0, 0] },
            ] },
        });
        let bytes = written(&message).unwrap();
        assert_eq!(decode(&description(), &fields(), &mut &bytes[..]).unwrap(), message);
        for n in 0..bytes.len() {
            let cut = decode(&description(), &fields(), &mut bytes.get(..n).unwrap());
            assert!(cut.is_err(), "{n} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn what_is_left_out_is_the_default_or_nothing() {
        let bytes = written(&json!({})).unwrap();
        assert_eq!(bytes.get(..4).unwrap(), [0xff; 4]);
        assert!(bytes.iter().skip(4).all(|b| *b == 0));
        // The number of elements is that of the list, whatever the count field holds.
        let one = json!({ "route": { "n_paths": 9, "paths": [{}] } });
        let read = decode(&description(), &fields(), &mut &written(&one).unwrap()[..]).unwrap();
        assert_eq!(read["route"]["n_paths"], 1);
    }

    #[test]
    fn mistakes_name_the_field() {
        let error = |object: Json| written(&object).unwrap_err().0;
        assert!(error(json!({ "nosuch": 1 })).contains("of, name, mac, flags, route"));
        assert_eq!(error(json!({ "name": "12345678" })), "name: 8 bytes of text, 7 at most");
        assert!(error(json!({ "flags": "DOWN" })).contains("UP, LINK"));
        assert!(error(json!({ "of": -1 })).starts_with("of: -1 is not between 0 and"));
        assert!(
            error(json!({ "route": { "prefix": "10.0.0.0/33" } })).contains("'10.0.0.0/33' is no prefix")
        );
    }

    #[test]
    fn a_type_within_itself_is_an_error() {
        let field = Field { name: "x".into(), of: "vl_api_loop_t".into(), count: Count::One, default: None };
        let fields = [field];
        assert!(encode(&description(), &fields, &json!({}), &mut Vec::new()).is_err());
        assert!(decode(&description(), &fields, &mut &[0u8; 100][..]).is_err());
    }

    #[test]
    fn a_count_that_lies_is_an_error() {
        let field =
            |name: &str, of: &str, count| Field { name: name.into(), of: of.into(), count, default: None };
        let fields = [field("n", "u32", Count::One), field("all", "u8", Count::By("n".into()))];
        assert!(decode(&description(), &fields, &mut &[0xff; 8][..]).is_err());
        let union = [field("e", "vl_api_either_t", Count::One)];
        let mut bytes = Vec::new();
        encode(&description(), &union, &json!({ "e": { "small": 5 } }), &mut bytes).unwrap();
        assert_eq!(bytes, [5, 0, 0, 0]);
    }
}
