//! `shoalctl api`: any message of the binary API, with JSON in and JSON out.

mod codec;
mod connection;
mod description;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use shoal_message::Retval;

use crate::options::{Api, ApiAction};
use connection::{Connection, Error, ReceivedMessage};
use description::{Count, Field};

/// Does what the options ask for; false if the router refused.
pub fn run(options: &Api) -> Result<bool, Error> {
    let mut connection = Connection::open(&candidates(options.socket.clone()))?;
    match &options.action {
        ApiAction::List { pattern } => list(&connection, pattern.as_deref()),
        ApiAction::Describe { message } => describe(&connection, message),
        ApiAction::Call { message, fields } => call(&mut connection, message, &parse(fields.as_deref())?),
        ApiAction::Watch { message, fields } => watch(&mut connection, message, parse(fields.as_deref())?),
        ApiAction::Other(_) => Ok(true),
    }
}

fn candidates(named: Option<PathBuf>) -> Vec<PathBuf> {
    let from_environment = || std::env::var_os("SHOAL_API_SOCK").filter(|s| !s.is_empty()).map(PathBuf::from);
    match named.or_else(from_environment) {
        Some(path) => vec![path],
        None => vec!["/run/shoal/api.sock".into(), "./api.sock".into()],
    }
}

fn parse(fields: Option<&str>) -> Result<Json, Error> {
    let text = fields.unwrap_or("{}");
    serde_json::from_str(text).map_err(|e| Error::Message(format!("'{text}' is no JSON: {e}")))
}

/// Prints a line; false when the reader has gone.
fn print(line: &str) -> bool {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

fn list(connection: &Connection, pattern: Option<&str>) -> Result<bool, Error> {
    for (name, message) in connection.messages.messages() {
        if pattern.is_none_or(|p| name.contains(p)) && !print(&format!("{name:<50} {}", message.comment)) {
            break;
        }
    }
    Ok(true)
}

fn describe(connection: &Connection, name: &str) -> Result<bool, Error> {
    let message = connection.message(name)?;
    let mut text = format!("{name}_{}: {}\n", message.crc, message.comment);
    for field in &message.fields {
        let _ = writeln!(text, "  {}", shape(field));
    }
    if let Some(service) = &message.service {
        let more = if service.is_stream { "any number of " } else { "" };
        let _ = match &service.details {
            Some(details) => writeln!(text, "answered by any number of {details}, then {}", service.reply),
            None => writeln!(text, "answered by {more}{}", service.reply),
        };
        for event in &service.events {
            let _ = writeln!(text, "then, as it happens, {event}");
        }
    }
    print(text.trim_end());
    Ok(true)
}

fn shape(field: &Field) -> String {
    let of = field.of.strip_prefix("vl_api_").and_then(|n| n.strip_suffix("_t")).unwrap_or(&field.of);
    let count = match &field.count {
        Count::One => String::new(),
        Count::Fixed(n) => format!("[{n}]"),
        Count::By(name) => format!("[{name}]"),
        Count::Open => "[]".into(),
    };
    let default = field.default.as_ref().map_or_else(String::new, |value| format!(" = {value}"));
    format!("{} {of}{count}{default}", field.name)
}

/// One object on one line, its name first.
fn line(came: &ReceivedMessage) -> String {
    json!({ "message": came.name, "fields": came.fields }).to_string()
}

/// Whether an answer says that the request was done; tells on standard error if not.
fn is_good(came: &ReceivedMessage) -> bool {
    let retval = came.fields.get("retval").and_then(Json::as_i64).unwrap_or(0);
    // More is there to be asked for, with the cursor.
    if retval < 0 && retval != i64::from(Retval::EAGAIN.0) {
        eprintln!("shoalctl: {}: {}", came.name, Retval(retval as i32));
        return false;
    }
    true
}

fn call(connection: &mut Connection, name: &str, fields: &Json) -> Result<bool, Error> {
    let service = connection.message(name)?.service;
    let none = || Error::Message(format!("{name} is no request"));
    let service = service.filter(|s| s.reply != "null").ok_or_else(none)?;
    let context = connection.ask(name, fields)?;
    // The end of a dump is the answer to what was asked behind it.
    let end = if service.is_stream && service.details.is_none() {
        Some(connection.ask("control_ping", &json!({}))?)
    } else {
        None
    };
    loop {
        let came = connection.next()?;
        if came.context.is_some() && came.context == end {
            return Ok(true);
        }
        if came.context != Some(context) {
            continue;
        }
        if !print(&line(&came)) {
            return Ok(true);
        }
        if end.is_none() && came.name == service.reply {
            return Ok(is_good(&came));
        }
    }
}

fn watch(connection: &mut Connection, name: &str, mut fields: Json) -> Result<bool, Error> {
    let message = connection.message(name)?;
    let service = message.service.clone().filter(|s| !s.events.is_empty());
    let service = service.ok_or_else(|| Error::Message(format!("no events follow {name}")))?;
    let preset = [("enable_disable", json!(1)), ("enable", json!(1)), ("pid", json!(std::process::id()))];
    if let Some(object) = fields.as_object_mut() {
        for (field, value) in preset {
            if message.fields.iter().any(|f| f.name == field) {
                object.entry(field).or_insert(value);
            }
        }
    }
    let context = connection.ask(name, &fields)?;
    connection.wait_for_ever()?;
    loop {
        let came = connection.next()?;
        if came.context == Some(context) {
            if !is_good(&came) {
                return Ok(false);
            }
        } else if service.events.contains(&came.name) && !print(&line(&came)) {
            return Ok(true);
        }
    }
}
