//! Messages: `ping.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use shoal_message::{Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, ClientIndex, Clients, Folder, Request};
use shoal_module::cli::{ClientGone, Reader, Sink};

use crate::echo::Target;
use crate::ping::{Detail, INTERVALS, Ping};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "ping",
    folder: Folder::Plugins,
    version: "0.1.0",
    messages: &[ApiMessage::request::<WantPingFinishedEvents>(), ApiMessage::sent::<PingFinishedEvent>()],
};

/// Most pings of all clients at a time.
const MOST: u32 = 64;
/// Bytes of data in a request, as `ping` sends them.
const SIZE: usize = 100;

/// Pings that clients have under way.
#[derive(Default)]
struct Running(Cell<u32>);

/// Sends echo requests to a host; an event says at the end how many came back.
#[derive(Message)]
#[message(request, events = PingFinishedEvent)]
pub struct WantPingFinishedEvents {
    /// The host.
    pub address: IpAddr,
    /// How often.
    #[preset(1)]
    pub repeat: u32,
    /// Seconds from one to the next.
    #[preset(1.0)]
    pub interval: f64,
}

/// A ping has ended.
#[derive(Message)]
#[message(bare)]
pub struct PingFinishedEvent {
    /// Who asked for it.
    pub client_index: u32,
    /// How many requests were sent.
    pub request_count: u32,
    /// How many were answered.
    pub reply_count: u32,
}

/// Says nothing, and is gone when the client is.
struct Silent {
    clients: Rc<Clients>,
    client: ClientIndex,
}

impl Reader for Silent {
    fn write(&self, _: &str) -> Result<(), ClientGone> {
        if self.is_gone() { Err(ClientGone) } else { Ok(()) }
    }

    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        // Asked at every request and answer.
        if self.is_gone() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn is_gone(&self) -> bool {
        !self.clients.is_there(self.client)
    }
}

impl Request for WantPingFinishedEvents {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let clients = call.clients().map_err(|_| Retval::INVALID_REGISTRATION)?;
        if !clients.is_there(call.client) {
            return Err(Retval::INVALID_REGISTRATION);
        }
        if !INTERVALS.contains(&self.interval) || self.address.is_unspecified() || self.address.is_multicast()
        {
            return Err(Retval::INVALID_VALUE);
        }
        let processes = call.control.processes().map_err(|_| Retval::UNSPECIFIED)?;
        let running = call.get::<Running>().unwrap_or_else(|_| call.control.put(Running::default()));
        if running.0.get() >= MOST {
            return Err(Retval::BUSY);
        }
        running.0.set(running.0.get() + 1);
        let ping = Ping {
            target: Target { address: self.address, source: None, table: 0, size: SIZE },
            repeat: self.repeat,
            burst: 1,
            interval: Duration::from_secs_f64(self.interval),
            detail: Detail::Normal,
        };
        let (control, client) = (Rc::clone(&call.control), call.client);
        let sink = Sink::new(Rc::new(Silent { clients: Rc::clone(&clients), client }));
        processes.spawn_unlisted(async move {
            // What cannot be sent at all was not sent.
            let (sent, received) = ping.count(control, &sink).await.unwrap_or_default();
            running.0.set(running.0.get() - 1);
            let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
            let event = PingFinishedEvent {
                client_index: client.0,
                request_count: number(sent),
                reply_count: number(received),
            };
            clients.send(client, 0, &event);
        });
        Ok(())
    }
}
