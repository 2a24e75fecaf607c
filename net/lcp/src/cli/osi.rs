//! Commands for OSI protocols that pass between interfaces and their images.

use std::fmt;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Output, nearest};

use crate::Lcp;

/// Names of network layer protocols, and the first byte of their packets (ISO/IEC TR 9577).
const NAMES: &[(&str, u8)] = &[
    ("null", 0x00),
    ("q_933", 0x08),
    ("snap", 0x80),
    ("clnp", 0x81),
    ("esis", 0x82),
    ("isis", 0x83),
    ("idrp", 0x85),
    ("x25_esis", 0x8a),
    ("iso10030", 0x8c),
    ("iso11577", 0x8d),
    ("ip6", 0x8e),
    ("compressed", 0xb0),
    ("sndcf", 0xc1),
    ("ip4", 0xcc),
    ("ppp", 0xcf),
];

fn number(text: &str) -> Option<u8> {
    if let Some((_, number)) = NAMES.iter().find(|(name, _)| *name == text) {
        return Some(*number);
    }
    match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `lcp osi-proto`.
pub(super) fn enable(control: &Control, args: &Args) -> Result<Output, CliError> {
    let text: String = args.get("protocol")?;
    let Some(protocol) = number(&text) else {
        let wrong = format!("`{text}' is neither the number nor the name of an OSI protocol");
        let near = nearest(&text, NAMES.iter().map(|(name, _)| *name)).map(str::to_owned);
        return Err(CliError::argument("protocol", wrong).nearest(near));
    };
    let lcp = control.get::<Lcp>()?;
    if args.has("disable") {
        lcp.disable_osi(protocol);
        return Ok(Output::none());
    }
    lcp.enable_osi(protocol).map_err(|e| CliError::argument("protocol", e.to_string()))?;
    Ok(Output::none())
}

/// `show lcp osi-proto`.
#[derive(Serialize)]
struct OsiView(Vec<u8>);

impl fmt::Display for OsiView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|protocol| writeln!(f, "0x{protocol:02x}"))
    }
}

pub(super) fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(OsiView(control.get::<Lcp>()?.osi_protocols())))
}
