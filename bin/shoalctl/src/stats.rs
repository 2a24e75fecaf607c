//! `shoalctl stats`: counters out of the segment, without asking the router.

mod print;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use regex::RegexSet;
use serde_json::{Value as Json, json};
use shoal_stats_client::{Client, Counter, Error as ReadError};

use crate::options::{Action, CounterSelection, Stats};
use crate::show;

/// The counters cannot be shown.
#[derive(Debug)]
pub enum Error {
    /// None of these sockets gives a segment.
    NoSegment(Vec<ReadError>),
    /// Reading failed later.
    Read(ReadError),
    /// A pattern is no regular expression, in words.
    Pattern(String),
    /// No name fits any of the patterns.
    NoName(Vec<String>),
    /// There is no such time.
    Interval(f64),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSegment(tried) => {
                write!(f, "cannot read the counters")?;
                tried.iter().try_for_each(|error| write!(f, "\n  {error}"))?;
                write!(f, "\nName the router's socket with `stats -s SOCKET`.")
            }
            Self::Read(error) => write!(f, "{error}"),
            Self::Pattern(why) => write!(f, "{why}"),
            Self::NoName(patterns) => {
                write!(f, "no counter's name has `{}'; `stats ls` lists them", patterns.join("' or `"))
            }
            Self::Interval(seconds) => {
                write!(f, "--interval {seconds}: needs seconds from 0.01 to 86400")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Does what was asked for.
pub fn run(options: &Stats, json: bool) -> Result<(), Error> {
    match &options.action {
        Action::Ls { patterns } => {
            let pattern = compile(patterns)?;
            list(&mut connect(options.socket.as_deref())?, &pattern, json)
        }
        Action::Get(what) => {
            let pattern = compile(&what.patterns)?;
            let counters = read(&mut connect(options.socket.as_deref())?, &pattern)?;
            if counters.is_empty() && !what.patterns.is_empty() {
                return Err(Error::NoName(what.patterns.clone()));
            }
            if json {
                show::print(&format!("{:#}\n", print::as_json(&counters, what)));
            } else {
                show::print(&print::as_text(&counters, what));
            }
            Ok(())
        }
        Action::Poll { what, interval, count } => {
            let pattern = compile(&what.patterns)?;
            let pause = Some(*interval).filter(|s| (0.01..=86_400.0).contains(s));
            let pause = Duration::from_secs_f64(pause.ok_or(Error::Interval(*interval))?);
            let mut client = connect(options.socket.as_deref())?;
            poll(&mut client, what, &pattern, pause, *count, json)
        }
    }
}

/// What a name must be like: it has one of some patterns, or there are none.
struct Pattern(RegexSet);

impl Pattern {
    fn fits(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.is_match(name)
    }
}

fn compile(patterns: &[String]) -> Result<Pattern, Error> {
    RegexSet::new(patterns).map(Pattern).map_err(|e| Error::Pattern(e.to_string()))
}

/// Connects to the first socket that gives a segment. One that the user names is the only one.
fn connect(named: Option<&Path>) -> Result<Client, Error> {
    let from_environment =
        || std::env::var_os("SHOAL_STATS_SOCK").filter(|s| !s.is_empty()).map(PathBuf::from);
    let paths = match named.map(Path::to_owned).or_else(from_environment) {
        Some(path) => vec![path],
        None => vec!["/run/shoal/stats.sock".into(), "./stats.sock".into()],
    };
    let mut tried = Vec::new();
    for path in paths {
        match Client::connect(path) {
            Ok(client) => return Ok(client),
            Err(error) => tried.push(error),
        }
    }
    Err(Error::NoSegment(tried))
}

fn read(client: &mut Client, pattern: &Pattern) -> Result<Vec<Counter>, Error> {
    client.read(|name| pattern.fits(name)).map_err(Error::Read)
}

fn list(client: &mut Client, pattern: &Pattern, json: bool) -> Result<(), Error> {
    let mut names = client.list().map_err(Error::Read)?;
    names.retain(|entry| pattern.fits(&entry.name));
    if json {
        let entry = |n: &shoal_stats_client::Name| json!({"name": &*n.name, "type": n.kind.name()});
        show::print(&format!("{:#}\n", names.iter().map(entry).collect::<Json>()));
    } else {
        let lines = names.iter().flat_map(|entry| [&*entry.name, "\n"]);
        show::print(&lines.collect::<String>());
    }
    Ok(())
}

/// One round after the other, each after a line with the time; as JSON, each in one line.
fn poll(
    client: &mut Client,
    what: &CounterSelection,
    pattern: &Pattern,
    pause: Duration,
    count: Option<u64>,
    json: bool,
) -> Result<(), Error> {
    let (mut round, mut next, mut waiting) = (0, Instant::now(), false);
    while count.is_none_or(|count| round < count) {
        match client.read(|name| pattern.fits(name)) {
            Ok(counters) => {
                waiting = false;
                round += 1;
                let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
                show::print(&if json {
                    format!("{}\n", json!({"time": time, "counters": print::as_json(&counters, what)}))
                } else {
                    format!("--- {time:.3}\n{}", print::as_text(&counters, what))
                });
            }
            // A router that restarts is followed.
            Err(error @ (ReadError::Gone { .. } | ReadError::Handshake { .. } | ReadError::Busy)) => {
                if !waiting {
                    eprintln!("shoalctl: {error}; waiting for it");
                }
                waiting = true;
            }
            Err(error) => return Err(Error::Read(error)),
        }
        // From the start of one round to the start of the next, so that rounds do not drift.
        next = (next + pause).max(Instant::now());
        if count.is_none_or(|count| round < count) {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
    Ok(())
}
