//! The protocol of `vppctl`, telnet and people with `socat`.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_lite::future::or;
use shoal_module::cli::{Client, ClientGone, Form, Reader, Sink};

use super::ServerContext;
use super::edit::{Editor, Typed};
use super::link::{Interrupts, Link, MAX_LINE};
use super::telnet::{Decoder, Event};
use crate::complete::Completion;
use crate::lex;
use crate::sessions::Style;

/// How long a client has to say what it is before it gets a prompt.
pub const NEGOTIATION: Duration = Duration::from_millis(250);
/// How long a program has to send the lines that close its braces.
const BRACES: Duration = Duration::from_millis(500);

/// How a session on a terminal ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// The client has left.
    Left,
    /// The first thing it said, late, is a request in JSON: nothing of it was taken.
    SpeaksJson,
}

/// Serves one client until it leaves.
pub(super) async fn session(desk: &ServerContext, link: &Rc<Link>) -> SessionEnd {
    link.interrupts(Interrupts::Telnet);
    let mut terminal = Terminal {
        desk,
        link,
        decoder: Decoder::default(),
        editor: Editor::default(),
        line: Vec::new(),
        pending: String::new(),
        depth: 0,
        has_heard: false,
    };
    // A client that has gone needs no farewell.
    terminal.run().await.unwrap_or(SessionEnd::Left)
}

struct Terminal<'a> {
    desk: &'a ServerContext,
    link: &'a Rc<Link>,
    decoder: Decoder,
    editor: Editor,
    line: Vec<u8>,
    /// Lines whose braces are still open, and how many are.
    pending: String,
    depth: i64,
    /// Whether anything came.
    has_heard: bool,
}

impl Terminal<'_> {
    fn style(&self) -> Style {
        self.link.session.style.get()
    }

    fn is(&self, style: Style) {
        self.link.session.style.set(style);
    }

    async fn run(&mut self) -> Result<SessionEnd, ClientGone> {
        loop {
            if !self.more().await? {
                self.finish().await?;
                return Ok(SessionEnd::Left);
            }
            // A program that had no processor for a while: no command begins so.
            if !self.has_heard && self.link.peek() == Some(b'{') {
                return Ok(SessionEnd::SpeaksJson);
            }
            // Most of a line at once: programs send many, and long ones.
            let text = self.style() != Style::Screen && self.decoder.is_in_text();
            if !text || self.link.take_text(&mut self.line) == 0 {
                let Some(byte) = self.link.take() else { continue };
                self.has_heard = true;
                if self.decoded(byte).await?.is_break() {
                    return Ok(SessionEnd::Left);
                }
            } else {
                self.has_heard = true;
            }
            let length = self.line.len().max(self.editor.len()) + self.pending.len();
            if length > MAX_LINE {
                self.show(&format!("input line longer than {MAX_LINE} bytes, closing the session\n")).await?;
                return Ok(SessionEnd::Left);
            }
        }
    }

    /// Does what a byte means, by itself or with those before.
    async fn decoded(&mut self, byte: u8) -> Result<std::ops::ControlFlow<()>, ClientGone> {
        match self.decoder.feed(byte) {
            Event::Byte(byte) => return self.byte(byte).await,
            Event::TerminalType(name) => self.negotiated(&name)?,
            Event::Interrupt if self.style() == Style::Screen => {
                // Ctrl-C never ends a session.
                let _ = self.typed(3).await?;
            }
            Event::Interrupt | Event::Nothing => {}
        }
        Ok(std::ops::ControlFlow::Continue(()))
    }

    /// Waits for input; false when there will be none.
    async fn more(&mut self) -> Result<bool, ClientGone> {
        match self.style() {
            Style::Unknown => {
                if self.link.wait_input(NEGOTIATION).await {
                    return Ok(true);
                }
                if !self.link.ended() {
                    self.interactive(Style::Lines)?;
                }
            }
            Style::Program if !self.pending.is_empty() && !self.link.wait_input(BRACES).await => {
                // The braces stay open: let the parser say so, vppctl waits for its answer.
                self.run_pending().await?;
            }
            _ => {}
        }
        let session = &self.link.session;
        let has_input = async { Some(self.link.input().await) };
        let is_told = async {
            session.told().await;
            None
        };
        if let Some(has_input) = or(has_input, is_told).await {
            return Ok(has_input);
        }
        self.notices()?;
        // The caller asks again.
        Ok(true)
    }

    /// Shows what the router has to say to all, and again what is being typed.
    fn notices(&self) -> Result<(), ClientGone> {
        let mut text = String::new();
        while let Some(message) = self.link.session.message() {
            text.push_str("\r\n% ");
            text.push_str(&message.trim_end().replace('\n', "\r\n% "));
        }
        text.push_str("\r\n");
        text.push_str(&self.desk.settings.prompt);
        text.push_str(&self.editor.text());
        self.link.push(text.as_bytes())
    }

    /// Runs what is left at the end of the input.
    async fn finish(&mut self) -> Result<(), ClientGone> {
        if self.link.has_given_way() {
            return Ok(());
        }
        let rest = std::mem::take(&mut self.line);
        if self.style() != Style::Screen {
            self.pending.push_str(&String::from_utf8_lossy(&rest));
            if !self.pending.trim().is_empty() {
                self.run_pending().await?;
            }
        }
        Ok(())
    }

    fn negotiated(&mut self, name: &str) -> Result<(), ClientGone> {
        match (self.style(), name) {
            (Style::Unknown, "vppctl") => {
                self.is(Style::Program);
                Ok(())
            }
            (Style::Unknown, _) => self.interactive(Style::Screen),
            // Late, after the first prompt: a slow telnet.
            (Style::Lines, name) if self.line.is_empty() => {
                self.is(if name == "vppctl" { Style::Program } else { Style::Screen });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn interactive(&mut self, style: Style) -> Result<(), ClientGone> {
        self.is(style);
        self.link.session.stays.set(true);
        let banner = self.desk.settings.banner.replace('\n', "\r\n");
        self.link.push(banner.as_bytes())?;
        self.prompt()
    }

    fn prompt(&self) -> Result<(), ClientGone> {
        self.link.push(self.desk.settings.prompt.as_bytes())
    }

    async fn byte(&mut self, byte: u8) -> Result<std::ops::ControlFlow<()>, ClientGone> {
        use std::ops::ControlFlow::{Break, Continue};
        if self.style() == Style::Screen {
            return self.typed(byte).await;
        }
        match byte {
            b'\n' => {
                let line = std::mem::take(&mut self.line);
                let text = String::from_utf8_lossy(&line).into_owned();
                let quit = self.entered(&text).await?;
                return Ok(if quit { Break(()) } else { Continue(()) });
            }
            // Carriage returns, interrupts, NULs: not part of any line.
            0..32 if byte != b'\t' => {}
            _ => self.line.push(byte),
        }
        Ok(Continue(()))
    }

    /// A key on a terminal.
    async fn typed(&mut self, key: u8) -> Result<std::ops::ControlFlow<()>, ClientGone> {
        use std::ops::ControlFlow::{Break, Continue};
        let mut echo = Vec::new();
        let typed = self.editor.feed(key, &mut echo);
        self.link.push(&echo)?;
        match typed {
            Typed::Nothing => {}
            Typed::Line(line) => {
                if self.entered(&line).await? {
                    return Ok(Break(()));
                }
            }
            Typed::Cancel => {
                self.pending.clear();
                self.depth = 0;
                self.prompt()?;
            }
            Typed::Leave => return Ok(Break(())),
            Typed::Complete => self.complete()?,
        }
        Ok(Continue(()))
    }

    fn complete(&mut self) -> Result<(), ClientGone> {
        let text = self.editor.text();
        let found = self.desk.cli.complete(&self.desk.control, &text, text.len());
        let mut echo = Vec::new();
        match common_beginning(&found) {
            Some(insert) if Some(insert.as_str()) != text.get(found.start..) => {
                let line = format!("{}{insert}", text.get(..found.start).unwrap_or(""));
                self.editor.replace(line.into_bytes(), &mut echo);
            }
            _ => {
                echo.extend(b"\r\n");
                for c in &found.candidates {
                    echo.extend(format!("  {:<30} {}\r\n", c.text, c.help).as_bytes());
                }
                echo.extend(self.desk.settings.prompt.as_bytes());
                echo.extend(text.as_bytes());
            }
        }
        self.link.push(&echo)
    }

    /// Takes a whole line; true if the client wants to leave.
    async fn entered(&mut self, line: &str) -> Result<bool, ClientGone> {
        if self.link.is_tcp() && speaks_http(line) {
            tracing::warn!("a client of the command line's port speaks HTTP: hung up");
            return Ok(true);
        }
        if self.style() == Style::Unknown {
            self.is(Style::Lines);
        }
        let remark = self.pending.is_empty() && lex::is_comment(line);
        self.depth += if remark { 0 } else { lex::open_braces(line) };
        self.pending.push_str(line);
        if self.depth > 0 {
            self.pending.push('\n');
            return Ok(false);
        }
        self.run_pending().await
    }

    async fn run_pending(&mut self) -> Result<bool, ClientGone> {
        self.depth = 0;
        let input = std::mem::take(&mut self.pending);
        self.link.busy(true);
        let sink = Sink::new(Rc::new(Printer { link: Rc::clone(self.link), crlf: self.crlf() }));
        let reply = self.desk.cli.execute_with(&self.desk.control, &input, &sink).await;
        self.link.busy(false);
        self.show(&reply.text()).await?;
        if reply.wants_to_quit() {
            return Ok(true);
        }
        match self.style() {
            Style::Program => self.link.push(&[0])?,
            _ => self.prompt()?,
        }
        Ok(false)
    }

    fn crlf(&self) -> bool {
        self.style() != Style::Program
    }

    async fn show(&self, text: &str) -> Result<(), ClientGone> {
        if self.crlf() {
            self.link.send(text.replace('\n', "\r\n").as_bytes()).await
        } else {
            self.link.send(text.as_bytes()).await
        }
    }
}

/// Whether a line is the first one of an HTTP request. A page in somebody's browser can make one to a port of the
/// browser's own machine, with commands in its body.
fn speaks_http(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let method = words.next().is_some_and(|w| w.bytes().all(|b| b.is_ascii_uppercase()));
    method && words.last().is_some_and(|w| w.starts_with("HTTP/"))
}

/// What all candidates begin with; a blank follows if there is only one.
fn common_beginning(found: &Completion) -> Option<String> {
    let mut texts = found.candidates.iter().filter(|c| !c.hint).map(|c| c.text.as_str());
    let first = texts.next()?;
    let mut common = first.len();
    let mut only = true;
    for text in texts {
        only = false;
        common = common.min(first.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count());
    }
    while !first.is_char_boundary(common) {
        common -= 1;
    }
    let blank = if only { " " } else { "" };
    Some(format!("{}{blank}", first.get(..common).unwrap_or("")))
}

/// Prints what slow commands say while they run.
struct Printer {
    link: Rc<Link>,
    crlf: bool,
}

impl Reader for Printer {
    fn write(&self, text: &str) -> Result<(), ClientGone> {
        if self.is_gone() {
            return Err(ClientGone);
        }
        if self.crlf {
            self.link.push(text.replace('\n', "\r\n").as_bytes())
        } else {
            self.link.push(text.as_bytes())
        }
    }

    fn form(&self) -> Option<Form> {
        Some(Form::Text)
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.link.poll_room(cx)
    }

    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.link.poll_gone(cx)
    }

    fn is_gone(&self) -> bool {
        self.link.is_gone()
    }

    fn client(&self) -> Client {
        self.link.session.client()
    }
}

#[cfg(test)]
mod tests {
    use super::speaks_http;

    #[test]
    fn a_request_of_a_browser_is_known_and_commands_are_not_taken_for_one() {
        for line in ["GET / HTTP/1.1", "POST /show HTTP/1.0\r", "OPTIONS * HTTP/1.1", "PRI * HTTP/2.0"] {
            assert!(speaks_http(line), "{line}");
        }
        for line in ["", "show version", "comment HTTP/1.1", "GET", "set interface tag loop0 HTTP/1.1"] {
            assert!(!speaks_http(line), "{line}");
        }
    }
}
