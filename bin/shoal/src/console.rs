//! The CLI on standard input: `unix { interactive }`.
//!
//! Lines come from a thread of their own, so that a terminal (or a pipe) never holds the router up. The terminal
//! edits the line; history and completion are shoalctl's.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, IsTerminal, Write};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use shoal_cli::Cli;
use shoal_graph::process::channel;
use shoal_module::Control;
use shoal_module::cli::{Client, ClientGone, Form, Reader, Sink};

use crate::stop::Stop;

/// Lines that may wait.
const LINES: usize = 64;

/// The console, while it runs a command or not.
#[derive(Default)]
pub struct Console {
    running: Cell<bool>,
    interrupted: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Console {
    /// Ctrl-C: ends the command that runs; false if none does.
    pub fn interrupt(&self) -> bool {
        self.interrupted.set(self.running.get());
        self.waiting.take().into_iter().for_each(Waker::wake);
        self.running.get()
    }

    /// Runs lines until the input ends, or `quit`; then the router ends too.
    pub async fn run(self: Rc<Self>, cli: Rc<Cli>, control: Rc<Control>, stop: Rc<Stop>, prompt: String) {
        let prompt = if io::stdin().is_terminal() { prompt } else { String::new() };
        let (sender, lines) = channel(LINES);
        let reader = move || {
            for line in io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if sender.send_blocking(line).is_err() {
                    break;
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("console".into()).spawn(reader) {
            tracing::error!("no console: {error}");
            return;
        }
        let sink = Sink::new(Rc::clone(&self) as Rc<dyn Reader>);
        show(&prompt);
        while let Ok(line) = lines.recv().await {
            self.interrupted.set(false);
            self.running.set(true);
            let reply = cli.execute_with(&control, &line, &sink).await;
            self.running.set(false);
            show(&reply.text());
            if reply.wants_to_quit() {
                break;
            }
            show(&prompt);
        }
        stop.ask();
    }
}

/// A terminal that is gone needs no text.
fn show(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

impl Reader for Console {
    fn write(&self, text: &str) -> Result<(), ClientGone> {
        if self.is_gone() {
            return Err(ClientGone);
        }
        show(text);
        Ok(())
    }

    fn form(&self) -> Option<Form> {
        Some(Form::Text)
    }

    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_gone() {
            return Poll::Ready(());
        }
        self.waiting.borrow_mut().push(cx.waker().clone());
        Poll::Pending
    }

    fn is_gone(&self) -> bool {
        self.interrupted.get()
    }

    fn client(&self) -> Client {
        Client { session: None, user: "console".to_owned() }
    }
}
