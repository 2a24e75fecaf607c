//! `show logging`, `clear logging`, `set logging`.

use std::fmt::{self, Write as _};

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, Output, nearest};

use super::{Level, Line, LogHandle, stamp};

/// The commands.
pub static COMMANDS: &[Command] = &[
    Command::new("show logging", "Show the last messages of the log", show)
        .examples(&["show logging", "sh log"]),
    Command::new("show logging configuration", "Show what the log keeps", configuration)
        .examples(&["show logging configuration"]),
    Command::new("clear logging", "Forget the messages of the log", clear).examples(&["clear logging"]),
    Command::new(
        "set logging class <class:word> [level <level:log-level>] [syslog-level <syslog-level:log-level>] \
         [rate-limit <rate-limit:u64>] [reset]",
        "Set what the log keeps of one class of messages",
        set_class,
    )
    .examples(&["set logging class interface level debug", "set logging class cli rate-limit 10"])
    .doc("`reset` gives the class the settings of the start-up file, before the other settings of the command apply."),
    Command::new(
        "test log <level:log-level> <class:word> <subclass:word> <text:rest>",
        "Write a message to the log",
        test,
    )
    .examples(&["test log notice fib entry this is a test"])
    .doc("To see where messages of a level and class go. They stand in the log as `class/subclass`."),
    Command::new("set logging size <size:u32>", "Set how many messages the log keeps", set_size)
        .examples(&["set logging size 1000"]),
];

/// The argument types.
pub static ARG_TYPES: &[ArgType] =
    &[ArgType::new("log-level", "level of messages", |_, text| level(text).map(drop)).complete(levels)];

fn levels(_: &Control, _: &str) -> Vec<String> {
    Level::NAMES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn level(text: &str) -> Result<Level, Expected> {
    let names = || Level::NAMES.iter().map(|(name, _)| *name);
    let all = || names().collect::<Vec<_>>().join(", ");
    let near = || nearest(text, names()).map(str::to_owned);
    Level::named(text).ok_or_else(|| Expected::new(format!("one of {}", all())).nearest(near()))
}

#[derive(Serialize)]
struct Message {
    time: String,
    level: &'static str,
    class: String,
    text: String,
    #[serde(skip)]
    line: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Messages(Vec<Message>);

impl From<Line> for Message {
    fn from(line: Line) -> Self {
        let text = line.to_string();
        Message {
            time: stamp(line.time),
            level: line.level.name(),
            class: line.class,
            text: line.text,
            line: text,
        }
    }
}

impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|message| f.write_str(&message.line))
    }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let lines = control.get::<LogHandle>()?.0.lines();
    Ok(Output::view(Messages(lines.into_iter().map(Message::from).collect())))
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    control.get::<LogHandle>()?.0.clear();
    Ok(Output::none())
}

fn configuration(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (size, [log, syslog], classes) = control.get::<LogHandle>()?.0.wanted();
    let mut text = format!("size {size}, level {}, syslog level {}\n", log.name(), syslog.name());
    if !classes.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<20} {:<10} {:<13} {:<10}", "Class", "Level", "Syslog level", "Rate limit");
    }
    for (name, class) in classes {
        let limit = class.limit.map_or("none".into(), |n| n.to_string());
        let (own, own_syslog) = (class.level.unwrap_or(log).name(), class.syslog.unwrap_or(syslog).name());
        let _ = writeln!(text, "{name:<20} {own:<10} {own_syslog:<13} {limit:<10}");
    }
    Ok(Output::text(text))
}

fn set_class(control: &Control, args: &Args) -> Result<Output, CliError> {
    let name: String = args.get("class")?;
    let of = |argument| args.text(argument).and_then(Level::named);
    let limit = args.opt::<u64>("rate-limit")?;
    if args.has("reset") {
        control.get::<LogHandle>()?.0.reset_class(&name);
    }
    control.get::<LogHandle>()?.0.set_class(&name, |class| {
        class.level = of("level").or(class.level);
        class.syslog = of("syslog-level").or(class.syslog);
        class.limit = limit.or(class.limit);
    });
    Ok(Output::none())
}

fn test(control: &Control, args: &Args) -> Result<Output, CliError> {
    let level = args.text("level").and_then(Level::named).unwrap_or(Level::Notice);
    let class = format!("{}/{}", args.get::<String>("class")?, args.get::<String>("subclass")?);
    control.get::<LogHandle>()?.0.write(level, &class, args.text("text").unwrap_or_default().to_owned());
    Ok(Output::none())
}

fn set_size(control: &Control, args: &Args) -> Result<Output, CliError> {
    let size: u32 = args.get("size")?;
    control.get::<LogHandle>()?.0.set_size(size as usize);
    Ok(Output::none())
}
