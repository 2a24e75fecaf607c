//! `ip4-icmp-listener`, `ip6-icmp-listener`: echo replies and errors, to the sender of the request they are about. RFC
//! 792; RFC 4443. ip4-icmp-input | ip6-icmp-input -> **listener** -> drop | ip4-punt | ip6-punt; what was heard goes to
//! the control plane

use std::marker::PhantomData;
use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, Edge, NextNodes, PacketNode};
use shoal_ip::Listeners;

use crate::echo_answers::{Answer, EchoAnswer, Wanted};
use crate::family::{Family, NotAbout};

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<F> {
    /// It has been understood.
    Done,
    /// It is about nothing this router waits for; packets without a taker are punted.
    Punt(PhantomData<F>),
}

impl<F: Family> NextNodes for Next<F> {
    const NAMES: &'static [&'static str] = &["drop", F::PUNT];

    fn edge(self) -> Edge {
        match self {
            Next::Done => Edge(1),
            Next::Punt(_) => Edge(2),
        }
    }
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// echo replies received
    #[severity(info)]
    Replies,
    /// icmp errors about echo requests of this router
    #[severity(info)]
    Errors,
    /// echo reply without a waiting request
    #[severity(warn)]
    UnexpectedReply,
    /// icmp error about nothing this router waits for
    #[counter("unexpected_error")]
    #[severity(warn)]
    AboutStranger,
    /// payload length too small for type
    TooShort,
    /// echo replies not handed over, too many at a time
    #[severity(warn)]
    Congested,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("about echo request id {id} seq {sequence}")]
pub struct Trace {
    id: u16,
    sequence: u16,
}

/// Knows who waits.
pub(crate) struct ListenerNode<F> {
    pub(crate) wanted: Wanted,
    pub(crate) heard: Sender<EchoAnswer>,
    /// Whether packets without a taker are punted.
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) family: PhantomData<F>,
}

impl From<NotAbout> for Error {
    fn from(why: NotAbout) -> Self {
        match why {
            NotAbout::Reply => Error::UnexpectedReply,
            NotAbout::Error => Error::AboutStranger,
            NotAbout::TooShort => Error::TooShort,
        }
    }
}

impl<F: Family> PacketNode for ListenerNode<F> {
    const NAME: &'static str = F::LISTENER;
    type Next = Next<F>;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<F>, Error> {
        let (from, about) = F::heard(pkt)?;
        let (unexpected, expected) = match about.answer {
            Answer::Reply => (Error::UnexpectedReply, Error::Replies),
            _ => (Error::AboutStranger, Error::Errors),
        };
        // A flood of unexpected answers ends here: nothing is kept of them.
        if !self.wanted.has(about.id) {
            if self.listeners.others().is_none() {
                return Err(unexpected);
            }
            cx.count(unexpected, 1);
            return Ok(Next::Punt(PhantomData));
        }
        let (id, sequence) = (about.id, about.sequence);
        cx.trace(pkt, || Trace { id, sequence });
        let heard = EchoAnswer {
            id,
            sequence,
            answer: about.answer,
            from: from.into(),
            ttl: about.ttl,
            bytes: about.bytes,
            at: cx.now(),
        };
        match self.heard.try_send(heard) {
            Ok(()) => {
                cx.count(expected, 1);
                Ok(Next::Done)
            }
            Err(_) => Err(Error::Congested),
        }
    }
}
