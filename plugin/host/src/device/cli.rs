//! Commands that plugins bring. What a module declares is constant; these are made when their plugin is loaded, and stay.

use std::fmt;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Handler, Output};

use super::Devices;
use crate::sys::MainThread;

/// Most commands of all plugins, and most drivers that have commands.
const MOST: usize = 32;

/// A command's function knows neither its plugin nor its words: there is one for each number.
macro_rules! numbered {
    ($function:ident: $($n:literal)*) => { [$($function::<$n>),*] };
}

static OPERATORS: [Handler; MOST] = numbered!(operator:
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
static ATTACH: [Handler; 4] = numbered!(attach: 0 1 2 3);
static DETACH: [Handler; 4] = numbered!(detach: 0 1 2 3);

fn keep(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// The commands of all plugins, and of all their drivers.
pub(crate) fn commands(devices: &Devices) -> Vec<&'static Command> {
    let mut all = Vec::new();
    if devices.commands().len() > MOST || devices.drivers().count() > ATTACH.len() {
        tracing::warn!("plugins bring more commands or drivers than there is room for: some have none");
    }
    for (operator, handler) in devices.commands().iter().zip(OPERATORS) {
        let words = if operator.words { " [<words:rest>]" } else { "" };
        let syntax = keep(format!("{}{words}", operator.path));
        all.push(Command::new(syntax, keep(operator.help.clone()), handler));
    }
    for ((driver, attach), detach) in devices.drivers().zip(ATTACH).zip(DETACH) {
        let syntax = keep(format!("{driver} attach <words:rest>"));
        let help = keep(format!("Open a device of {driver} and make an interface of it"));
        all.push(Command::new(syntax, help, attach));
        let syntax = keep(format!("{driver} detach <interface>"));
        let help = keep(format!("Delete an interface of {driver} and close its device"));
        all.push(Command::new(syntax, help, detach));
    }
    all.into_iter().map(|command| &*Box::leak(Box::new(command))).collect()
}

/// Lines that a plugin has printed.
#[derive(Serialize)]
struct Lines {
    lines: Vec<String>,
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

fn operator<const N: usize>(control: &Control, args: &Args) -> Result<Output, CliError> {
    let devices = control.get::<Devices>()?;
    let Some(operator) = devices.commands().get(N) else { unreachable!("a command that was declared") };
    let said = operator
        .run(MainThread::of(control), args.text("words").unwrap_or_default())
        .map_err(CliError::failed)?;
    Ok(Output::view(Lines { lines: said.lines().map(str::to_owned).collect() }))
}

fn driver<const N: usize>(devices: &Devices) -> String {
    devices.drivers().nth(N).unwrap_or_default().to_owned()
}

fn attach<const N: usize>(control: &Control, args: &Args) -> Result<Output, CliError> {
    let devices = control.get::<Devices>()?;
    let index = devices.attach(&driver::<N>(&devices), args.text("words").unwrap_or_default().trim())?;
    Ok(Output::text(format!("{}\n", control.get::<Interfaces>()?.name(index)?)))
}

fn detach<const N: usize>(control: &Control, args: &Args) -> Result<Output, CliError> {
    let devices = control.get::<Devices>()?;
    let InterfaceArg(index) = args.get("interface")?;
    devices.detach(&driver::<N>(&devices), index)?;
    Ok(Output::none())
}
