//! A command line with one command, served on `./cli.sock`: what a daemon does, and nothing else.
//!
//! Run `cargo run -p shoal-cli --example serve`, then `shoalctl -s ./cli.sock`.

use std::error::Error;
use std::rc::Rc;

use async_executor::LocalExecutor;
use shoal_cli::Cli;
use shoal_cli::server::{Settings, Task, listen};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

static COMMANDS: &[Command] = &[Command::new("show answer [to <question:rest>]", "Show the answer", answer)];

fn answer(_: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::text("42"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let cli = Rc::new(Cli::new(COMMANDS, [])?);
    let control = Rc::new(Control::new());
    let listener = listen(Settings::new("./cli.sock"))?;
    let executor = Rc::new(LocalExecutor::new());
    let spawner = Rc::clone(&executor);
    let spawn = move |task: Task| spawner.spawn(task).detach();
    futures_lite::future::block_on(executor.run(listener.serve(cli, control, spawn)));
    Ok(())
}
