//! One client: its requests in their order, each answered before the next is looked at.

use std::cell::Cell;
use std::rc::Rc;

use futures_lite::future::or;
use shoal_message::{Count, Input, Malformed, Message, Text};
use shoal_module::api::answers::frame;
use shoal_module::api::handler::{Outcome, Rows};
use shoal_module::api::{Answers, Call, ClientIndex};
use shoal_module::cli::Pace;

use crate::frames::Frames;
use crate::link::Link;
use crate::memclnt::{
    MessageTableEntry, SOCKCLNT_CREATE, SOCKCLNT_CREATE_REPLY, SOCKCLNT_DELETE, SOCKCLNT_DELETE_REPLY,
    SockclntCreate, SockclntCreateReply, SockclntDelete, SockclntDeleteReply,
};
use crate::server_context::{Dropped, ServerContext};

/// Serves a client until it leaves.
pub async fn serve(desk: Rc<ServerContext>, link: Rc<Link>) {
    let session = Session { desk: &desk, link: &link, client: Cell::new(None), pace: Pace::default() };
    let talk = async {
        session.run().await;
        link.drain().await;
    };
    or(talk, link.pump()).await;
    if let Some(client) = session.client.get() {
        desk.clients.remove(client);
    }
}

struct Session<'a> {
    desk: &'a ServerContext,
    link: &'a Rc<Link>,
    client: Cell<Option<ClientIndex>>,
    pace: Pace,
}

/// Whether more is read from the client.
#[derive(PartialEq, Eq)]
enum Next {
    Go,
    Stop,
}

impl Session<'_> {
    async fn run(&self) {
        let (mut frames, part) = (Frames::default(), self.desk.held.part(self.link));
        loop {
            if self.requests(&mut frames).await == Next::Stop {
                return;
            }
            frames.trim();
            part.set(frames.held());
            let read = self.link.read(&self.desk.chunk, |bytes| frames.push(bytes)).await;
            if !matches!(read, Ok(1..)) {
                break;
            }
            for _ in 0..part.set(frames.held()) {
                self.desk.dropped(Dropped::NoRoom);
            }
            if self.link.is_gone() {
                return;
            }
        }
        if self.link.is_gone() {
            return;
        }
        if !frames.is_empty() {
            self.desk.dropped(Dropped::Half);
        }
    }

    /// All requests that are there.
    async fn requests(&self, frames: &mut Frames) -> Next {
        loop {
            let body = match frames.message() {
                Ok(Some(body)) => body,
                Ok(None) => return Next::Go,
                Err(error) => {
                    self.desk.dropped(Dropped::TooLong);
                    tracing::warn!("API client hung up on: {error}");
                    return Next::Stop;
                }
            };
            if self.request(body).await == Next::Stop || !self.link.room().await {
                return Next::Stop;
            }
            self.pace.give_way().await;
        }
    }

    async fn request(&self, body: &[u8]) -> Next {
        let mut input = Input::new(body);
        let Ok(id) = input.array().map(u16::from_be_bytes) else {
            self.desk.dropped(Dropped::Short);
            return Next::Go;
        };
        self.desk.trace.received(body);
        if id == SOCKCLNT_CREATE {
            return self.create(input);
        }
        let Some(client) = self.client.get() else {
            self.desk.dropped(Dropped::NoClient);
            return Next::Go;
        };
        let Some((entry, handler)) = self.desk.table.get(id).map(|e| (e, e.handler)) else {
            self.desk.dropped(Dropped::NoMessage);
            return Next::Go;
        };
        let numbers = |input: &mut Input<'_>| {
            let index = input.array().map(u32::from_be_bytes)?;
            Ok::<_, Malformed>((index, input.array().map(u32::from_be_bytes)?))
        };
        let (index, context) = match numbers(&mut input) {
            Ok(numbers) if entry.is_request => numbers,
            Ok(_) => {
                self.desk.dropped(Dropped::NoHandler);
                return Next::Go;
            }
            Err(_) => {
                self.desk.dropped(Dropped::Short);
                return Next::Go;
            }
        };
        if id == SOCKCLNT_DELETE {
            return self.delete(client, context, input);
        }
        if index != client.0 {
            self.desk.dropped(Dropped::NoClient);
            return Next::Go;
        }
        let Some(handler) = handler else {
            self.desk.dropped(Dropped::NoHandler);
            return Next::Go;
        };
        let call = Call { control: Rc::clone(&self.desk.control), client, context };
        let (reply, details) = (entry.reply, entry.details);
        let outcome = self.link.answer(|to| {
            let before = to.len();
            let outcome = handler(&call, input, &mut Answers::new(to, context, reply, details));
            if outcome.is_err() {
                to.truncate(before);
            }
            outcome
        });
        self.desk.handled();
        match outcome {
            Ok(Outcome::Done) => {}
            Ok(Outcome::More(rows)) => return self.rows(rows, context, details).await,
            Ok(Outcome::Wait(later)) => {
                // The answer for a client that has gone has no reader.
                let gone = async {
                    self.link.hung_up().await;
                    None
                };
                let Some(write) = or(async { Some(later.await) }, gone).await else { return Next::Stop };
                self.link.answer(|to| write(&mut Answers::new(to, context, reply, details)));
            }
            Err(_) => self.desk.dropped(Dropped::Short),
        }
        Next::Go
    }

    /// Answers piece by piece; others are served meanwhile.
    async fn rows(&self, mut rows: Rows, context: u32, details: u16) -> Next {
        /// So many at a time: some microseconds.
        const BATCH: usize = 16;
        loop {
            let more = self.link.answer(|to| {
                let mut answers = Answers::new(to, context, 0, details);
                (0..BATCH).all(|_| rows(&mut answers))
            });
            if !more {
                return Next::Go;
            }
            if !self.link.has_room() && !self.link.room().await {
                return Next::Stop;
            }
            self.pace.give_way().await;
        }
    }

    fn create(&self, mut input: Input<'_>) -> Next {
        let Ok(SockclntCreate { context, name }) = SockclntCreate::decode(&mut input) else {
            self.desk.dropped(Dropped::Short);
            return Next::Go;
        };
        self.link.set_name(name.as_str());
        let client = self.client.get().unwrap_or_else(|| self.desk.clients.add(Rc::clone(self.link) as _));
        self.client.set(Some(client));
        let entry =
            |(index, e): (u16, &crate::table::Entry)| MessageTableEntry { index, name: Text::from(&*e.key) };
        let message_table = self.desk.table.iter().map(entry).collect();
        let reply = SockclntCreateReply {
            client_index: 0,
            context,
            response: 0,
            index: client.0,
            count: Count::default(),
            message_table,
        };
        self.link.answer(|to| {
            frame(to, |to| {
                to.extend(SOCKCLNT_CREATE_REPLY.to_be_bytes());
                reply.encode(to);
            });
        });
        Next::Go
    }

    fn delete(&self, client: ClientIndex, context: u32, mut input: Input<'_>) -> Next {
        let Ok(SockclntDelete { index }) = SockclntDelete::decode(&mut input) else {
            self.desk.dropped(Dropped::Short);
            return Next::Go;
        };
        let is_known = index == client.0;
        self.link.answer(|to| {
            let reply = Ok(SockclntDeleteReply { response: if is_known { 1 } else { -1 } });
            Answers::new(to, context, SOCKCLNT_DELETE_REPLY, 0).reply(&reply);
        });
        if is_known { Next::Stop } else { Next::Go }
    }
}
