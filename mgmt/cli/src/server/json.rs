//! The protocol of `shoalctl`: one JSON object a line, both ways.
//!
//! ```text
//! > {"shoal":1}
//! < {"shoal":1,"version":"0.1.0","prompt":"shoal# "}
//! > {"id":1,"execute":"show version","json":true}
//! < {"id":1,"stream":"text of a slow command\n"}            any number of times
//! < {"id":1,"stream":"rows\n","listing":true}               the same of an answer as long as a table
//! < {"id":1,"piece":"[{\"prefix\":"}                         a piece of such an answer's JSON, any number of times
//! < {"id":1,"ok":true,"quit":false,"text":"..."}            or "json":... where it was asked for,
//!                                                           or "pieces":true if the pieces before are the JSON
//! < {"id":1,"progress":"routes.cli: 40000 of 90000 commands"}   for people who watch
//! < {"id":1,"ok":false,"quit":false,"text":"...","error":{"error":"...","at":[5,9],...}}
//! > {"id":4,"batch":"many\nlines\n","json":false}            one by one
//! < {"id":4,"line":2,"ok":true,"quit":false,"text":"..."}     of each that has something to say (all, with "json")
//! < {"id":4,"done":true,"ended":false}                       ended: by `quit'
//! > {"id":2,"complete":"sh in","cursor":5}
//! < {"id":2,"start":3,"candidates":[{"text":"interface","help":"...","hint":false}]}
//! > {"id":3,"help":"show"}
//! < {"id":3,"ok":true,"text":"..."}
//! > {"id":5,"session":true}                                 more than one command comes: what belongs to a session is kept
//! < {"id":5,"ok":true}
//! < {"notice":"text"}                                       to such a client, before the answer to its next request
//! > {"interrupt":true}                                      while a command runs; has no answer
//! ```
//!
//! A client skips what comes before the first `{`: the server greets telnet clients first.

use std::rc::Rc;
use std::task::{Context, Poll};

use serde::Deserialize;
use serde_json::{Value, json};
use shoal_module::cli::{Client, ClientGone, Form, Reader, Sink};

use super::ServerContext;
use super::link::{Interrupts, Link, MAX_LINE};
use crate::reply::Reply;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    id: Value,
    shoal: Option<u32>,
    execute: Option<String>,
    batch: Option<String>,
    json: bool,
    complete: Option<String>,
    cursor: Option<usize>,
    help: Option<String>,
    interrupt: bool,
    session: bool,
}

/// Serves one client until it leaves.
pub(super) async fn session(desk: &ServerContext, link: &Rc<Link>) {
    link.interrupts(Interrupts::Json);
    // A client that has gone needs no farewell.
    let _: Result<(), ClientGone> = run(desk, link).await;
}

async fn run(desk: &ServerContext, link: &Rc<Link>) -> Result<(), ClientGone> {
    loop {
        let line = match read_line(link).await {
            Line::Text(line) if line.trim().is_empty() => continue,
            Line::Text(line) => line,
            Line::End => return Ok(()),
            Line::TooLong => {
                let what = format!("input line longer than {MAX_LINE} bytes, closing the session");
                return send(link, &failure(&Value::Null, &what)).await;
            }
        };
        match serde_json::from_str::<Request>(&line) {
            Ok(request) => {
                if answer(desk, link, request).await? {
                    return Ok(());
                }
            }
            Err(error) => send(link, &failure(&Value::Null, &format!("not a request: {error}"))).await?,
        }
    }
}

/// Answers one request; true if the client wants to leave.
async fn answer(desk: &ServerContext, link: &Rc<Link>, request: Request) -> Result<bool, ClientGone> {
    let Request { id, .. } = request;
    while let Some(message) = link.session.message() {
        send(link, &json!({"notice": message})).await?;
    }
    if let Some(line) = request.execute {
        return execute(desk, link, &id, &line, request.json).await;
    }
    if let Some(lines) = request.batch {
        return batch(desk, link, &id, &lines, request.json).await;
    }
    let reply = if let Some(line) = request.complete {
        let found = desk.cli.complete(&desk.control, &line, request.cursor.unwrap_or(line.len()));
        json!({"id": id, "start": found.start, "candidates": found.candidates})
    } else if let Some(line) = request.help {
        let reply = desk.cli.execute(&desk.control, &format!("{} ?", first_line(&line))).await;
        json!({"id": id, "ok": reply.is_ok(), "text": reply.text()})
    } else if request.shoal.is_some() {
        json!({"shoal": 1, "version": env!("CARGO_PKG_VERSION"), "prompt": desk.settings.prompt})
    } else if request.session {
        link.session.stays.set(true);
        json!({"id": id, "ok": true})
    } else if request.interrupt {
        return Ok(false);
    } else {
        failure(&id, "a request has one of: execute, batch, complete, help, session, interrupt")
    };
    send(link, &reply).await?;
    Ok(false)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}

async fn execute(
    desk: &ServerContext,
    link: &Rc<Link>,
    id: &Value,
    line: &str,
    as_json: bool,
) -> Result<bool, ClientGone> {
    link.busy(true);
    let form = if as_json { Form::Json } else { Form::Text };
    let sink = Sink::new(Rc::new(Stream { link: Rc::clone(link), id: id.clone(), form }));
    let reply = desk.cli.execute_with(&desk.control, line, &sink).await;
    link.busy(false);
    send(link, &answer_of(id, &reply, as_json)).await?;
    Ok(reply.wants_to_quit())
}

/// What a command answered.
fn answer_of(id: &Value, reply: &Reply, as_json: bool) -> Value {
    let mut answer = json!({"id": id, "ok": reply.is_ok(), "quit": reply.wants_to_quit()});
    if let Some(fields) = answer.as_object_mut() {
        match reply.complaint() {
            Some(complaint) => {
                fields.insert("text".into(), reply.text().into());
                fields.insert("error".into(), complaint.to_json());
            }
            None if as_json && reply.was_listed() => {
                fields.insert("pieces".into(), true.into());
            }
            None if as_json => {
                fields.insert("json".into(), reply.json());
            }
            None => {
                fields.insert("text".into(), reply.text().into());
            }
        }
    }
    answer
}

/// Runs many commands for one request: a client that sends a million of them would wait a million times.
async fn batch(
    desk: &ServerContext,
    link: &Rc<Link>,
    id: &Value,
    lines: &str,
    as_json: bool,
) -> Result<bool, ClientGone> {
    link.busy(true);
    let form = if as_json { Form::Json } else { Form::Text };
    let sink = Sink::new(Rc::new(Stream { link: Rc::clone(link), id: id.clone(), form }));
    let mut quit = false;
    let said = async |line: usize, reply: &Reply| {
        quit |= reply.wants_to_quit();
        if reply.is_silent() && !as_json && !reply.wants_to_quit() {
            return Ok(());
        }
        let mut answer = answer_of(id, reply, as_json);
        if let Some(fields) = answer.as_object_mut() {
            fields.insert("line".into(), line.into());
        }
        send(link, &answer).await
    };
    let ended = desk.cli.batch(&desk.control, lines, &sink, said).await;
    link.busy(false);
    send(link, &json!({"id": id, "done": true, "ended": ended?})).await?;
    Ok(quit)
}

pub(super) fn failure(id: &Value, message: &str) -> Value {
    json!({"id": id, "ok": false, "text": format!("{message}\n"), "error": {"error": message}})
}

async fn send(link: &Link, value: &Value) -> Result<(), ClientGone> {
    link.send(format!("{value}\n").as_bytes()).await
}

enum Line {
    Text(String),
    TooLong,
    End,
}

async fn read_line(link: &Link) -> Line {
    let mut line = Vec::new();
    while link.input().await {
        let whole = link.take_line(&mut line);
        if line.len() > MAX_LINE {
            return Line::TooLong;
        }
        if whole {
            return Line::Text(String::from_utf8_lossy(&line).into_owned());
        }
    }
    Line::End
}

/// Prints what slow commands say while they run.
struct Stream {
    link: Rc<Link>,
    id: Value,
    form: Form,
}

impl Stream {
    fn send(&self, message: &Value) -> Result<(), ClientGone> {
        if self.is_gone() {
            return Err(ClientGone);
        }
        self.link.push(format!("{message}\n").as_bytes())
    }
}

impl Reader for Stream {
    fn write(&self, text: &str) -> Result<(), ClientGone> {
        self.send(&json!({"id": self.id, "stream": text}))
    }

    fn form(&self) -> Option<Form> {
        Some(self.form)
    }

    fn piece(&self, piece: &str) -> Result<(), ClientGone> {
        self.send(&match self.form {
            Form::Text | Form::Pretty => json!({"id": self.id, "stream": piece, "listing": true}),
            Form::Json => json!({"id": self.id, "piece": piece}),
        })
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.link.poll_room(cx)
    }

    fn progress(&self, text: &str) {
        // A client that does not read does not watch either.
        let _: Result<(), ClientGone> =
            self.link.push(format!("{}\n", json!({"id": self.id, "progress": text})).as_bytes());
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
