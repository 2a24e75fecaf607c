//! Commands: `pipe create`, `pipe delete`, `show pipe`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::control::MOST;
use crate::{PipeError, Pipes};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "pipe create [instance <instance:u32>]",
        "Create a pipe: what goes out of one end comes in by the other; tells its name",
        create,
    )
    .doc("The ends of `pipe0` are the interfaces `pipe0.0` and `pipe0.1`. Without a number the first that is free is taken.")
    .examples(&["pipe create instance 7"]),
    Command::new("pipe delete <interface>", "Delete a pipe and its ends", delete),
    Command::new("show pipe", "Show pipes and their ends", show).examples(&["show pipe"]),
];

fn refused(error: PipeError) -> CliError {
    let (text, nearest) = (error.to_string(), matches!(error, PipeError::Number(_)));
    match error {
        PipeError::Exists(_) | PipeError::Number(_) => {
            CliError::argument("instance", text).nearest(nearest.then(|| (MOST - 1).to_string()))
        }
        PipeError::NotPipe(_) | PipeError::Interface(_) => CliError::argument("interface", text),
    }
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let pipe = control.get::<Pipes>()?.create(args.opt("instance")?).map_err(refused)?;
    Ok(Output::text(format!("{}\n", control.get::<Interfaces>()?.name(pipe.index)?)))
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    control.get::<Pipes>()?.delete(interface).map_err(refused)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Row {
    instance: u32,
    name: String,
    sw_if_index: u32,
    ends: [(String, u32); 2],
}

#[derive(Serialize)]
#[serde(transparent)]
struct View(Vec<Row>);

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (pipes, interfaces) = (control.get::<Pipes>()?, control.get::<Interfaces>()?);
    let name = |index| interfaces.name(index).unwrap_or_default();
    let row = |pipe: crate::Pipe| Row {
        instance: pipe.instance,
        name: name(pipe.index),
        sw_if_index: pipe.index.0,
        ends: pipe.ends.map(|end| (name(end), end.0)),
    };
    Ok(Output::view(View(pipes.list().into_iter().map(row).collect())))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { instance, name, sw_if_index, ends: [(a, a_index), (b, b_index)] } in &self.0 {
            writeln!(f, "[{instance}] {name} sw_if_index {sw_if_index}: {a} ({a_index}), {b} ({b_index})")?;
        }
        Ok(())
    }
}
