//! The text of the running configuration.

use std::ops::Deref;

use shoal_infra::budget;
use shoal_module::cli::{Pace, Sink};
use shoal_module::{Control, ModuleList, Pieces, Running};

/// Memory is asked for in pieces of this size.
const STEP: usize = 1 << 20;

/// The text of a configuration, counted as the tables' memory while it is there.
#[derive(Debug, Default)]
pub struct Text {
    text: String,
    taken: usize,
}

impl Text {
    fn push(&mut self, more: &str) -> Result<(), String> {
        while self.text.len() + more.len() > self.taken {
            budget::take(STEP).map_err(|e| e.to_string())?;
            self.taken += STEP;
        }
        self.text.try_reserve(more.len()).map_err(|e| e.to_string())?;
        self.text.push_str(more);
        Ok(())
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        budget::give_back(self.taken);
    }
}

/// What all modules of a router are configured to be, as commands. It gives way to others between pieces; what is changed
/// meanwhile may be in it or not.
///
/// # Errors
/// There is no list of modules, a module lacks what it reads its part from, there is no memory, or the client has left;
/// in words.
pub async fn gather(control: &Control, sink: Option<&Sink>) -> Result<Text, String> {
    let (pace, mut text) = (Pace::default(), Text::default());
    for piece in pieces(control, &pace).await? {
        text.push(&piece)?;
        pace.give_way().await;
        if sink.is_some_and(Sink::is_gone) {
            return Err("interrupted".into());
        }
    }
    Ok(text)
}

/// The same text piece by piece: whole lines, made when they are asked for.
///
/// # Errors
/// There is no list of modules, or a module lacks what it reads its part from; in words.
pub async fn pieces(control: &Control, pace: &Pace) -> Result<Pieces, String> {
    let modules = control.get::<ModuleList>().map_err(|e| e.to_string())?;
    let mut running = Running::default();
    for module in &modules.0 {
        (module.running)(control, &mut running);
        if let Some(missing) = running.missing().first() {
            return Err(format!("the configuration of {} is not known: there is no {missing}", module.name));
        }
        pace.give_way().await;
        while running.read_some().is_continue() {
            pace.give_way().await;
        }
    }
    Ok(running.pieces())
}
