//! The log: every message goes to a ring that `show logging` prints, and from there to standard error, syslog and
//! a file, as the start-up file says.
//!
//! Messages come from `tracing`. A message's class, VPP's word, is the crate it comes from. VPP's levels are
//! finer than those of `tracing`: `emerg`, `alert`, `crit` and `err` are one, `notice` and `info` are one.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use shoal_config::{Logging, StartUp};
use shoal_module::Module;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

pub mod api;
pub mod cli;
mod json;
mod lines;
mod running;

/// The module: its commands.
pub static MODULE: Module = Module {
    name: "logging",
    description: "The log",
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// How grave a message is; the graver, the smaller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// As a threshold only: nothing passes.
    Disabled,
    /// Something failed.
    Error,
    /// Something is not as it should be.
    Warn,
    /// Worth knowing.
    Notice,
    /// For those who look for something.
    Debug,
}

impl Level {
    /// Every name there is, VPP's finer ones too.
    pub const NAMES: &'static [(&'static str, Level)] = &[
        ("emerg", Level::Error),
        ("alert", Level::Error),
        ("crit", Level::Error),
        ("err", Level::Error),
        ("error", Level::Error),
        ("warn", Level::Warn),
        ("notice", Level::Notice),
        ("info", Level::Notice),
        ("debug", Level::Debug),
        ("disabled", Level::Disabled),
    ];

    /// The level of a name.
    pub fn named(name: &str) -> Option<Level> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, level)| *level)
    }

    /// Its name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Level::Disabled => "disabled",
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Notice => "notice",
            Level::Debug => "debug",
        }
    }

    fn of(level: tracing::Level) -> Level {
        match level {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Notice,
            _ => Level::Debug,
        }
    }

    /// Syslog's severity in its facility for daemons.
    fn priority(self) -> u8 {
        let severity = match self {
            Level::Disabled | Level::Error => 3,
            Level::Warn => 4,
            Level::Notice => 5,
            Level::Debug => 7,
        };
        3 << 3 | severity
    }
}

/// One message.
#[derive(Clone, Debug)]
pub struct Line {
    /// When.
    pub time: SystemTime,
    /// How grave.
    pub level: Level,
    /// Where from.
    pub class: String,
    /// What.
    pub text: String,
}

/// What is wanted of one class of messages, where it differs from the rest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Class {
    /// What the log keeps.
    pub level: Option<Level>,
    /// What goes to syslog.
    pub syslog: Option<Level>,
    /// Messages a second.
    pub limit: Option<u64>,
}

/// How many messages of a class came in the current second.
#[derive(Default)]
struct Flow {
    second: Duration,
    count: u64,
    held: u64,
}

struct State {
    size: usize,
    lines: VecDeque<Line>,
    /// How many messages were kept once and are no longer.
    gone: u64,
    level: Level,
    syslog_level: Level,
    classes: BTreeMap<String, Class>,
    flows: BTreeMap<String, Flow>,
    stderr: bool,
    json: bool,
    syslog: Option<UnixDatagram>,
    file: Option<File>,
}

/// The log of this process.
pub struct Log {
    state: Mutex<State>,
    /// Size and classes as the start-up file gives them.
    first: (usize, BTreeMap<String, Class>),
    /// The least grave level that anybody wants: all others cost one comparison.
    most: AtomicU8,
}

/// The log on the shelf, for its commands.
pub struct LogHandle(pub Arc<Log>);

/// Where messages go, and which.
#[derive(Debug)]
pub struct LogSettings {
    kept: Logging,
    stderr: bool,
    syslog: bool,
    file: Option<PathBuf>,
}

impl LogSettings {
    /// What the start-up file says.
    pub fn of(startup: &StartUp) -> Self {
        let unix = &startup.unix;
        LogSettings {
            kept: startup.logging.clone(),
            // VPP logs to the terminal or to syslog; a router in the foreground whose terminal stays silent is of no
            // use.
            stderr: unix.nosyslog || unix.nodaemon,
            syslog: !unix.nosyslog && !unix.interactive,
            file: unix.log.clone(),
        }
    }
}

/// Makes the log and sends every message and panic to it.
pub fn install(settings: &LogSettings) -> Arc<Log> {
    let log = Arc::new(Log::new(&settings.kept, settings.stderr, settings.syslog));
    if let Some(path) = &settings.file {
        log.append_to(path);
    }
    let subscriber = tracing_subscriber::registry().with(ToLog(Arc::clone(&log)));
    // Fails only if there is one already, which only this function makes.
    let _ = tracing::subscriber::set_global_default(subscriber);
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        tracing::error!("thread {} panicked: {panic}", thread.name().unwrap_or("without a name"));
        eprintln!("shoal: {panic}");
        // A router with half of its threads is worse than one that restarts.
        std::process::abort();
    }));
    log
}

impl Log {
    fn new(logging: &Logging, stderr: bool, syslog: bool) -> Self {
        let level = |name: &Option<String>| name.as_deref().and_then(Level::named);
        let class = |(name, class): (&String, &shoal_config::LogClass)| {
            let limit = class.rate_limit;
            (name.clone(), Class { level: level(&class.level), syslog: level(&class.syslog_level), limit })
        };
        let state = State {
            size: logging.size,
            lines: VecDeque::new(),
            gone: 0,
            level: Level::named(&logging.level).unwrap_or(Level::Notice),
            syslog_level: Level::named(&logging.syslog_level).unwrap_or(Level::Warn),
            classes: logging.classes.iter().map(class).collect(),
            flows: BTreeMap::new(),
            stderr,
            json: logging.json,
            syslog: if syslog { syslog_socket() } else { None },
            file: None,
        };
        let first = (state.size, state.classes.clone());
        let log = Log { most: AtomicU8::new(0), first, state: Mutex::new(state) };
        log.change(|_| ());
        log
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_to(&self, path: &Path) {
        // Not for everybody: a log tells addresses, names and what operators do.
        // /var/log/shoal, or where VPP has its log.
        if let Some(folder) = path.parent() {
            // What is wrong with it, opening the file tells.
            let _ = std::fs::create_dir_all(folder);
        }
        match OpenOptions::new().create(true).append(true).mode(0o640).open(path) {
            Ok(file) => self.lock().file = Some(file),
            Err(error) => self.write(Level::Error, "logging", format!("{}: {error}", path.display())),
        }
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        how(&mut state);
        let classes = state.classes.values().flat_map(|c| [c.level, c.syslog]).flatten();
        let most = classes.chain([state.level, state.syslog_level]).max().unwrap_or(Level::Debug);
        self.most.store(most as u8, Ordering::Relaxed);
    }

    /// Changes what is wanted of a class.
    pub fn set_class(&self, name: &str, how: impl FnOnce(&mut Class)) {
        self.change(|state| how(state.classes.entry(name.to_owned()).or_default()));
    }

    /// What is wanted of a class is what was wanted at the start.
    pub fn reset_class(&self, name: &str) {
        let (_, first) = self.at_start();
        self.change(|state| match first.get(name) {
            Some(class) => drop(state.classes.insert(name.to_owned(), *class)),
            None => drop(state.classes.remove(name)),
        });
    }

    /// Keeps so many messages from now on.
    pub fn set_size(&self, size: usize) {
        let mut state = self.lock();
        state.size = size;
        state.trim();
    }

    /// What is kept, oldest first.
    pub fn lines(&self) -> Vec<Line> {
        self.lock().lines.iter().cloned().collect()
    }

    /// The message of a number, or the first one behind it that is still kept, and the number behind that. They are
    /// numbered from 0 as they come.
    pub fn line_from(&self, number: u64) -> Option<(Line, u64)> {
        let state = self.lock();
        let number = number.max(state.gone);
        let line = state.lines.get(usize::try_from(number - state.gone).ok()?)?;
        Some((line.clone(), number + 1))
    }

    /// Forgets what is kept.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.gone += state.lines.len() as u64;
        state.lines.clear();
    }

    /// How many messages are kept, the levels for all classes (log, syslog), and the classes that differ.
    pub fn wanted(&self) -> (usize, [Level; 2], BTreeMap<String, Class>) {
        let state = self.lock();
        (state.size, [state.level, state.syslog_level], state.classes.clone())
    }

    /// How many messages were kept at the start, and the classes that differed.
    fn at_start(&self) -> (usize, BTreeMap<String, Class>) {
        self.first.clone()
    }

    /// Takes a message.
    pub fn write(&self, level: Level, class: &str, text: String) {
        let time = SystemTime::now();
        let mut state = self.lock();
        let wanted = state.classes.get(class).copied().unwrap_or_default();
        let keep = level <= wanted.level.unwrap_or(state.level);
        let send = level <= wanted.syslog.unwrap_or(state.syslog_level);
        if !(keep || send) {
            return;
        }
        let Ok(held) = state.admit(class, wanted.limit, time) else { return };
        if held > 0 {
            let text = format!("{held} messages of this class were held back");
            state.put(Line { time, level: Level::Warn, class: class.to_owned(), text }, keep, send);
        }
        state.put(Line { time, level, class: class.to_owned(), text }, keep, send);
    }
}

impl State {
    /// Whether the class may say something now, and how often it was held back before; `Err` holds it back.
    fn admit(&mut self, class: &str, limit: Option<u64>, time: SystemTime) -> Result<u64, ()> {
        let Some(limit) = limit else { return Ok(0) };
        let flow = self.flows.entry(class.to_owned()).or_default();
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let second = Duration::from_secs(since.as_secs());
        let mut held = 0;
        if flow.second != second {
            held = std::mem::take(&mut flow.held);
            (flow.second, flow.count) = (second, 0);
        }
        flow.count += 1;
        if flow.count > limit {
            flow.held += 1;
            return Err(());
        }
        Ok(held)
    }

    fn put(&mut self, line: Line, keep: bool, send: bool) {
        let object = (self.json && keep && (self.stderr || self.file.is_some())).then(|| json::line(&line));
        // Where a message cannot be written, no other log is left.
        if keep && self.stderr {
            let _ = match &object {
                Some(object) => std::io::stderr().write_all(object.as_bytes()),
                None => {
                    writeln!(std::io::stderr(), "{:<8} {:<12} {}", line.level.name(), line.class, line.text)
                }
            };
        }
        if keep && let Some(file) = &mut self.file {
            let text = object.unwrap_or_else(|| line.to_string());
            let _ = file.write_all(text.as_bytes());
        }
        if send && let Some(syslog) = &self.syslog {
            let (priority, pid) = (line.level.priority(), std::process::id());
            let _ =
                syslog.send(format!("<{priority}>shoal[{pid}]: {}: {}", line.class, line.text).as_bytes());
        }
        if keep {
            self.lines.push_back(line);
            self.trim();
        }
    }

    fn trim(&mut self) {
        while self.lines.len() > self.size {
            self.lines.pop_front();
            self.gone += 1;
        }
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Line { time, level, class, text } = self;
        writeln!(f, "{:<28}{:<10} {:<14} {text}", stamp(*time), level.name(), class)
    }
}

/// VPP's form of a time: `2026/01/31 23:59:59:123`, in UTC.
pub fn stamp(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, rest) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years that begin in March end with the leap day (Howard Hinnant's civil_from_days).
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second, milli) = (rest / 3600, rest / 60 % 60, rest % 60, since.subsec_millis());
    format!("{year:04}/{month:02}/{day:02} {hour:02}:{minute:02}:{second:02}:{milli:03}")
}

fn syslog_socket() -> Option<UnixDatagram> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect("/dev/log").ok()?;
    // A stuck syslog must not stop the router.
    socket.set_nonblocking(true).ok()?;
    Some(socket)
}

/// Sends what `tracing` has to say to the log.
struct ToLog(Arc<Log>);

impl<S: Subscriber> Layer<S> for ToLog {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // Levels change while the router runs.
        tracing::subscriber::Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.is_event() && Level::of(*metadata.level()) as u8 <= self.0.most.load(Ordering::Relaxed)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let metadata = event.metadata();
        let text = text.message + &text.fields;
        self.0.write(Level::of(*metadata.level()), &class(metadata.target()), text);
    }
}

/// `shoal_af_packet::port` is of class `af-packet`.
fn class(target: &str) -> String {
    let target = target.split("::").next().unwrap_or(target);
    target.strip_prefix("shoal_").unwrap_or(target).replace('_', "-")
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Log {
        let logging = Logging {
            size: 3,
            level: "notice".into(),
            syslog_level: "warn".into(),
            unthrottle: Duration::from_secs(5),
            json: false,
            classes: BTreeMap::new(),
        };
        Log::new(&logging, false, false)
    }

    fn texts(log: &Log) -> Vec<String> {
        log.lines().into_iter().map(|l| l.text).collect()
    }

    #[test]
    fn the_ring_keeps_the_newest_and_only_what_is_grave_enough() {
        let log = log();
        for n in 0..5 {
            log.write(Level::Notice, "a", n.to_string());
            log.write(Level::Debug, "a", "too much detail".into());
        }
        assert_eq!(texts(&log), ["2", "3", "4"]);
        log.set_size(1);
        assert_eq!(texts(&log), ["4"]);
        log.clear();
        assert!(texts(&log).is_empty());
    }

    #[test]
    fn a_class_has_a_level_of_its_own() {
        let log = log();
        log.set_class("a", |class| class.level = Some(Level::Debug));
        log.set_class("b", |class| class.level = Some(Level::Disabled));
        assert_eq!(log.most.load(Ordering::Relaxed), Level::Debug as u8);
        log.write(Level::Debug, "a", "detail".into());
        log.write(Level::Error, "b", "failed".into());
        log.write(Level::Debug, "c", "detail".into());
        assert_eq!(texts(&log), ["detail"]);
    }

    #[test]
    fn a_noisy_class_is_held_back() {
        let log = log();
        log.set_size(100);
        log.set_class("a", |class| class.limit = Some(2));
        for n in 0..10 {
            log.write(Level::Error, "a", n.to_string());
        }
        // The second may change once in between.
        assert!(log.lines().len() <= 5, "{:?}", texts(&log));
    }

    #[test]
    fn times_have_vpps_form() {
        let at = |secs: u64| stamp(SystemTime::UNIX_EPOCH + Duration::from_millis(secs * 1000 + 7));
        assert_eq!(at(0), "1970/01/01 00:00:00:007");
        assert_eq!(at(951_782_399), "2000/02/28 23:59:59:007");
        assert_eq!(at(951_782_400), "2000/02/29 00:00:00:007");
        assert_eq!(at(1_798_761_599), "2026/12/31 23:59:59:007");
    }

    #[test]
    fn classes_are_crates() {
        assert_eq!(class("shoal_af_packet::port"), "af-packet");
        assert_eq!(class("cli"), "cli");
    }
}
