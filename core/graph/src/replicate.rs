//! One packet for many: flooding, mirroring, multicast.

use std::fmt;

use shoal_buffer::{Buffer, Full, Packet};

use crate::cx::FrameCx;
use crate::node::Edge;

/// Copies of one packet that are traced with it.
const MOST_TRACED: usize = 16;

/// One of those that get a packet.
pub trait ReplicaTarget {
    /// What the trace says of its copy, at the node that makes it.
    type Trace: fmt::Display + Send + 'static;

    /// Prepares its packet; which edge that goes along.
    fn address(&self, pkt: &mut Packet<'_>) -> Edge;

    /// Its line in the trace.
    fn trace(&self) -> Self::Trace;

    /// Whether it needs a packet that shares nothing: one that reads or writes far behind the headers.
    fn wants_all(&self) -> bool {
        false
    }
}

/// What became of a packet that was given to many.
#[must_use = "packets that are left would be lost"]
#[derive(Debug)]
pub struct Replicated<T> {
    /// Copies that were made and sent.
    pub copies: usize,
    /// Takers that got none, as there was no buffer.
    pub missed: usize,
    /// The packet itself, when it was not sent, and the first taker that has not had its turn: `None` when there is no
    /// taker.
    pub left: Option<(Buffer, Option<T>)>,
}

impl FrameCx<'_> {
    /// Gives a packet to each of `takers`, in order: copies, which share the payload where there is enough of it, and to
    /// the last one the packet itself. No more than `most` copies are made, and what is made is taken off from it: then
    /// the packet comes back, for another round, when what was made is sent.
    ///
    /// Every buffer has one way out: it is sent, or comes back. Copies that cannot be made are in `missed`.
    #[inline]
    pub fn replicate<T: ReplicaTarget>(
        &mut self,
        mut buffer: Buffer,
        takers: impl IntoIterator<Item = T>,
        most: &mut usize,
    ) -> Replicated<T> {
        let mut done = Replicated { copies: 0, missed: 0, left: None };
        let mut takers = takers.into_iter();
        let Some(mut taker) = takers.next() else {
            done.left = Some((buffer, None));
            return done;
        };
        let mut is_ready = false;
        for next in takers {
            if *most == 0 {
                done.left = Some((buffer, Some(taker)));
                return done;
            }
            *most -= 1;
            // Whatever wants all comes first where it can: it is copied whole then, and nothing is made its own again.
            if !is_ready && !taker.wants_all() {
                buffer = self.cache().share(buffer);
                is_ready = true;
            }
            let pkt = self.cache().packet(&mut buffer);
            self.trace(&pkt, || taker.trace());
            match self.copy_for(&taker, &pkt, done.copies < MOST_TRACED) {
                Ok(()) => done.copies += 1,
                Err(Full) => done.missed += 1,
            }
            taker = next;
        }
        let mut pkt = self.cache().packet(&mut buffer);
        self.trace(&pkt, || taker.trace());
        if taker.wants_all() && self.cache().make_own(&mut pkt).is_err() {
            done.missed += 1;
            self.cache().free(buffer);
            return done;
        }
        let edge = taker.address(&mut pkt);
        self.send(edge, buffer);
        done
    }

    /// Gives a copy of a packet to each of `takers`, and the packet itself back, to go its own way: copies share its payload
    /// where there is enough of it. How many got none, as there was no buffer.
    #[must_use = "the packet would be lost"]
    pub fn mirror<T: ReplicaTarget>(
        &mut self,
        mut buffer: Buffer,
        takers: impl IntoIterator<Item = T>,
    ) -> (Buffer, usize) {
        let (mut made, mut missed) = (0, 0);
        for taker in takers {
            if made == 0 && !taker.wants_all() {
                buffer = self.cache().share(buffer);
            }
            let pkt = self.cache().packet(&mut buffer);
            self.trace(&pkt, || taker.trace());
            match self.copy_for(&taker, &pkt, made < MOST_TRACED) {
                Ok(()) => made += 1,
                Err(Full) => missed += 1,
            }
        }
        (buffer, missed)
    }

    #[inline]
    fn copy_for<T: ReplicaTarget>(&mut self, taker: &T, pkt: &Packet<'_>, traced: bool) -> Result<(), Full> {
        let mut buffer = self.cache().copy(pkt)?;
        let mut copy = self.cache().packet(&mut buffer);
        if traced {
            copy.meta_mut().share_trace(pkt.meta());
        }
        if taker.wants_all() && self.cache().make_own(&mut copy).is_err() {
            self.cache().free(buffer);
            return Err(Full);
        }
        let edge = taker.address(&mut copy);
        self.send(edge, buffer);
        Ok(())
    }
}
