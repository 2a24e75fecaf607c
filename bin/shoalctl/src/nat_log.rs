//! `shoalctl nat-log`: which host had an outside port at a time, by the router's syslog messages.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use chrono::{DateTime, FixedOffset};
use regex::Regex;
use serde_json::{Value, json};

use crate::options::NatLog;

/// Why a log was not read.
#[derive(Debug)]
pub enum Error {
    /// What was asked for is none.
    Asked(String),
    /// A file cannot be read.
    File(PathBuf, io::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Asked(what) => f.write_str(what),
            Error::File(path, e) => write!(f, "{}: {e}", path.display()),
        }
    }
}

/// A time, as RFC 3339 writes it.
type Moment = DateTime<FixedOffset>;

/// The first time in a line, and the name of its message.
static HEAD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(\d{4}-\d\d-\d\dT\S+).*? (APMADD|APMDEL|SADD|SDEL|PBADD|PBDEL) \[(?:napmap|nsess|npblock) ([^\]]*)\]").ok()
});
/// A parameter of structured data.
static PARAMETER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(\w+)="([^"]*)""#).ok());

/// A message of the log.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    at: Moment,
    begins: bool,
    host: String,
    vrf: String,
    address: Ipv4Addr,
    /// First and last port.
    ports: (u16, u16),
    /// Of one session; `None`: of all protocols.
    protocol: Option<u8>,
}

fn read(line: &str) -> Option<Entry> {
    let found = HEAD.as_ref()?.captures(line)?;
    let (at, id, data) = (found.get(1)?.as_str(), found.get(2)?.as_str(), found.get(3)?.as_str());
    let of = |name: &str| {
        let mut all = PARAMETER.as_ref()?.captures_iter(data);
        let one = all.find(|one| one.get(1).is_some_and(|found| found.as_str() == name))?;
        Some(one.get(2)?.as_str().to_owned())
    };
    let port = |name: &str| of(name)?.parse::<u16>().ok();
    let ports = match port("XSPORT") {
        Some(port) => (port, port),
        None => (port("XPFIRST")?, port("XPLAST")?),
    };
    Some(Entry {
        at: DateTime::parse_from_rfc3339(at).ok()?,
        begins: id.ends_with("ADD"),
        host: match port("ISPORT") {
            Some(port) => format!("{} port {port}", of("ISADDR")?),
            None => of("ISADDR")?,
        },
        vrf: of("SVLAN").unwrap_or_else(|| "0".to_owned()),
        address: of("XSADDR")?.parse().ok()?,
        ports,
        protocol: of("PROTO").and_then(|proto| proto.parse().ok()),
    })
}

/// A host that had the port.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    host: String,
    vrf: String,
    ports: (u16, u16),
    protocol: Option<u8>,
    from: Moment,
    until: Option<Moment>,
}

/// What is asked for.
struct Asked {
    address: Ipv4Addr,
    port: u16,
    protocol: Option<u8>,
    at: Moment,
}

impl Asked {
    fn of(options: &NatLog) -> Result<Asked, Error> {
        let place = options.place.split_once(':');
        let place = place.and_then(|(address, port)| Some((address.parse().ok()?, port.parse().ok()?)));
        let (address, port) = place.ok_or_else(|| {
            Error::Asked(format!(
                "expected an address and a port, as 192.0.2.1:40000, not '{}'",
                options.place
            ))
        })?;
        let at = DateTime::parse_from_rfc3339(&options.at).map_err(|e| {
            Error::Asked(format!("expected a time, as 2026-11-27T21:15:00Z, not '{}': {e}", options.at))
        })?;
        let protocol = match options.protocol.as_deref() {
            None => None,
            Some("tcp") => Some(6),
            Some("udp") => Some(17),
            Some("icmp") => Some(1),
            Some(other) => {
                return Err(Error::Asked(format!("expected tcp, udp or icmp, not '{other}'")));
            }
        };
        Ok(Asked { address, port, protocol, at })
    }

    fn is_about(&self, entry: &Entry) -> bool {
        let (first, last) = entry.ports;
        entry.address == self.address
            && (first..=last).contains(&self.port)
            && entry.protocol.is_none_or(|of| self.protocol.is_none_or(|wanted| of == wanted))
    }

    /// Hosts that had the port then. Lines in the order of time, as a collector writes them; others are passed over.
    fn holders(
        &self,
        lines: impl Iterator<Item = io::Result<String>>,
        found: &mut Vec<Holder>,
    ) -> io::Result<()> {
        for line in lines {
            let Some(entry) = read(&line?).filter(|entry| self.is_about(entry)) else { continue };
            let Entry { at, begins, host, vrf, ports, protocol, .. } = entry;
            if begins && at <= self.at {
                found.push(Holder { host, vrf, ports, protocol, from: at, until: None });
            } else if !begins {
                let open = |holder: &&mut Holder| {
                    holder.until.is_none()
                        && (&holder.host, holder.ports, holder.protocol) == (&host, ports, protocol)
                };
                if let Some(holder) = found.iter_mut().rev().find(open) {
                    holder.until = Some(at);
                }
                // What ended before is of no use, and would only grow.
                found.retain(|holder| holder.until.is_none_or(|until| until >= self.at));
            }
        }
        Ok(())
    }
}

fn lines_of(path: &Path) -> Result<Box<dyn Iterator<Item = io::Result<String>>>, Error> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock().lines()));
    }
    let file = File::open(path).map_err(|e| Error::File(path.to_owned(), e))?;
    Ok(Box::new(BufReader::new(file).lines()))
}

fn name(protocol: Option<u8>) -> &'static str {
    match protocol {
        None => "all protocols",
        Some(6) => "tcp",
        Some(17) => "udp",
        Some(1) => "icmp",
        Some(_) => "another protocol",
    }
}

/// Prints which host had the port; false: no host had it.
///
/// # Errors
/// What is asked for is none, or a file cannot be read.
pub fn run(options: &NatLog, is_json: bool) -> Result<bool, Error> {
    let asked = Asked::of(options)?;
    let mut found = Vec::new();
    for path in &options.files {
        let lines = lines_of(path)?;
        asked.holders(lines, &mut found).map_err(|e| Error::File(path.clone(), e))?;
    }
    for holder in &found {
        let Holder { host, vrf, ports: (first, last), protocol, from, until } = holder;
        if is_json {
            let until = until.map_or(Value::Null, |until| json!(until.to_rfc3339()));
            let shown = json!({
                "host": host, "vrf": vrf, "first_port": first, "last_port": last, "protocol": protocol,
                "from": from.to_rfc3339(), "until": until,
            });
            println!("{shown}");
        } else {
            let until = until.map_or_else(|| "the end of the log".to_owned(), |until| until.to_rfc3339());
            println!(
                "{host} vrf {vrf}: ports {first} to {last}, {}, from {} to {until}",
                name(*protocol),
                from.to_rfc3339()
            );
        }
    }
    if found.is_empty() && !is_json {
        println!("{} at {}: no host had it, by these logs", options.place, options.at);
    }
    Ok(!found.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const LOG: &str = r#"<134>1 2026-11-27T10:00:00.5Z gw NAT - PBADD [npblock SVLAN="0" IATYP="IPv4" ISADDR="10.0.0.2" XATYP="IPv4" XSADDR="192.0.2.100" XPFIRST="2000" XPLAST="2251"]
<134>1 2026-11-27T10:00:01Z gw NAT - PBADD [npblock SVLAN="0" IATYP="IPv4" ISADDR="10.0.0.3" XATYP="IPv4" XSADDR="192.0.2.100" XPFIRST="2252" XPLAST="2503"]
another line
<134>1 2026-11-27T11:00:00Z gw NAT - PBDEL [npblock SVLAN="0" IATYP="IPv4" ISADDR="10.0.0.2" XATYP="IPv4" XSADDR="192.0.2.100" XPFIRST="2000" XPLAST="2251"]
2026-11-27T12:30:00+01:00 gw NAT - PBADD [npblock SVLAN="7" IATYP="IPv4" ISADDR="10.0.0.4" XATYP="IPv4" XSADDR="192.0.2.100" XPFIRST="2000" XPLAST="2251"]
<134>1 2026-11-27T12:00:00Z gw NAT - APMADD [napmap SSUBIX="1" SVLAN="0" IATYP="IPv4" ISADDR="10.0.0.9" ISPORT="80" XATYP="IPv4" XSADDR="192.0.2.101" XSPORT="8080" PROTO="6"]
"#;

    fn who(place: &str, at: &str, protocol: Option<&str>) -> Vec<(String, bool)> {
        let options = NatLog {
            place: place.to_owned(),
            at: at.to_owned(),
            protocol: protocol.map(str::to_owned),
            files: Vec::new(),
        };
        let mut found = Vec::new();
        Asked::of(&options)
            .unwrap()
            .holders(LOG.lines().map(|line| Ok(line.to_owned())), &mut found)
            .unwrap();
        found.into_iter().map(|holder| (holder.host, holder.until.is_some())).collect()
    }

    #[test]
    fn a_port_leads_to_the_host_that_had_it_then() {
        let of = |host: &str, ended| vec![(host.to_owned(), ended)];
        assert_eq!(who("192.0.2.100:2100", "2026-11-27T10:30:00Z", None), of("10.0.0.2", true));
        assert_eq!(who("192.0.2.100:2100", "2026-11-27T11:10:00Z", None), []);
        assert_eq!(who("192.0.2.100:2100", "2026-11-27T11:40:00Z", Some("udp")), of("10.0.0.4", false));
        assert_eq!(who("192.0.2.100:2300", "2026-11-27T13:00:00+01:00", None), of("10.0.0.3", false));
        assert_eq!(who("192.0.2.100:2300", "2026-11-27T10:00:00Z", None), []);
        assert_eq!(
            who("192.0.2.101:8080", "2026-11-28T00:00:00Z", Some("tcp")),
            of("10.0.0.9 port 80", false)
        );
        assert_eq!(who("192.0.2.101:8080", "2026-11-28T00:00:00Z", Some("udp")), []);
    }

    #[test]
    fn what_cannot_be_asked_says_what_can() {
        for (place, at, protocol, expected) in [
            ("192.0.2.1", "2026-11-27T10:00:00Z", None, "as 192.0.2.1:40000"),
            ("192.0.2.1:80", "yesterday", None, "as 2026-11-27T21:15:00Z"),
            ("192.0.2.1:80", "2026-11-27T10:00:00Z", Some("sctp"), "expected tcp, udp or icmp"),
        ] {
            let options = NatLog {
                place: place.to_owned(),
                at: at.to_owned(),
                protocol: protocol.map(str::to_owned),
                files: Vec::new(),
            };
            let refused = Asked::of(&options).err().unwrap().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
