//! Argument types: what `<interface>` accepts, how it completes, what its error says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Expected, FromArg, Toggle};
use crate::Control;

/// A type of argument, found by its name in syntax strings.
#[derive(Debug, Clone, Copy)]
pub struct ArgType {
    /// The name in `<name>` and `<x:name>`.
    pub name: &'static str,
    /// What it is, in a few words, for help and completion.
    pub help: &'static str,
    /// The texts that begin with a prefix; the CLI filters and sorts them again.
    pub complete: fn(&Control, prefix: &str) -> Vec<String>,
    /// Whether a text is acceptable.
    pub check: fn(&Control, text: &str) -> Result<(), Expected>,
    /// Names objects that come and go (interfaces, tables). They are not checked when a whole file of
    /// commands is checked before its first line runs, because the file may create them.
    pub live: bool,
}

impl ArgType {
    /// A type whose texts are valid or not whatever the router's state.
    pub const fn new(
        name: &'static str,
        help: &'static str,
        check: fn(&Control, &str) -> Result<(), Expected>,
    ) -> Self {
        Self { name, help, complete: nothing, check, live: false }
    }

    /// A type whose texts name objects that come and go.
    pub const fn live(
        name: &'static str,
        help: &'static str,
        check: fn(&Control, &str) -> Result<(), Expected>,
        complete: fn(&Control, &str) -> Vec<String>,
    ) -> Self {
        Self { name, help, complete, check, live: true }
    }

    /// The same type with completion.
    pub const fn complete(mut self, complete: fn(&Control, &str) -> Vec<String>) -> Self {
        self.complete = complete;
        self
    }
}

/// Whether a text becomes a `T`: the check of most types, `ArgType::new("u8", "...", check::<u8>)`.
pub fn check<T: FromArg>(control: &Control, text: &str) -> Result<(), Expected> {
    T::from_arg(text, control).map(drop)
}

fn nothing(_: &Control, _: &str) -> Vec<String> {
    Vec::new()
}

fn on_off(_: &Control, _: &str) -> Vec<String> {
    vec!["on".into(), "off".into()]
}

fn hex(_: &Control, text: &str) -> Result<(), Expected> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let ok = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    if ok { Ok(()) } else { Err("hexadecimal digits".into()) }
}

fn word(_: &Control, text: &str) -> Result<(), Expected> {
    if text.is_empty() { Err("a word".into()) } else { Ok(()) }
}

/// The types that every router has. (`rest`, `rest-or-quoted` and `block` are part of the syntax itself.)
pub static BUILT_IN: &[ArgType] = &[
    ArgType::new("u8", "number, 0 to 255", check::<u8>),
    ArgType::new("u16", "number, 0 to 65535", check::<u16>),
    ArgType::new("u32", "number, 0 to 4294967295", check::<u32>),
    ArgType::new("u64", "number", check::<u64>),
    ArgType::new("i32", "number, may be negative", check::<i32>),
    ArgType::new("i64", "number, may be negative", check::<i64>),
    ArgType::new("f64", "number with decimals", check::<f64>),
    ArgType::new("word", "word", word),
    ArgType::new("path", "file name", word),
    ArgType::new("hex", "hexadecimal digits", hex),
    ArgType::new("on-off", "on or off", check::<Toggle>).complete(on_off),
    ArgType::new("ip4-address", "IPv4 address", check::<Ipv4Addr>),
    ArgType::new("ip6-address", "IPv6 address", check::<Ipv6Addr>),
    ArgType::new("ip-address", "IPv4 or IPv6 address", check::<IpAddr>),
];
