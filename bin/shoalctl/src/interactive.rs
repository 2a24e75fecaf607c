//! A session at a terminal.

use std::sync::{Arc, Mutex, PoisonError};

use reedline::Signal;

use crate::client::{Client, Error};
use crate::editor::{RouterPrompt, editor};
use crate::interrupt::Interrupt;
use crate::pager::{self, Pager};
use crate::show;

/// Runs a session until the user leaves.
pub fn run(mut client: Client, json: bool) -> Result<bool, Error> {
    client.stay()?;
    let prompt = RouterPrompt(client.prompt.clone());
    let client = Arc::new(Mutex::new(client));
    let mut editor = editor(&client);
    loop {
        let line = match editor.read_line(&prompt) {
            Ok(Signal::Success(line)) => line,
            Ok(Signal::CtrlD) => return Ok(true),
            Ok(_) => continue,
            Err(error) => return Err(Error::Lost(std::io::Error::other(error.to_string()))),
        };
        if line.trim().is_empty() {
            continue;
        }
        let mut pager = Pager::default();
        let answer = {
            // Without Ctrl-C at hand a command still runs; it just cannot be interrupted.
            let interrupt = Interrupt::new().ok();
            let mut client = client.lock().unwrap_or_else(PoisonError::into_inner);
            client.execute(&line, json, &mut |said| pager.stream(said), interrupt.as_ref())?
        };
        let was_left = pager.finish();
        if was_left && !answer.quit {
            // Its reader has seen enough; that the rest was interrupted is no news.
            continue;
        }
        if answer.ok && answer.json.is_none() && !answer.in_pieces {
            pager::show(&answer.text, rows());
        } else {
            show::answer(&answer, "");
        }
        if answer.quit {
            return Ok(true);
        }
    }
}

/// The rows of the terminal.
fn rows() -> usize {
    let from_environment = || std::env::var("LINES").ok().and_then(|rows| rows.parse().ok());
    from_environment().filter(|rows| *rows > 0).unwrap_or(24)
}
