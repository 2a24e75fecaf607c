//! RFC 9693's traffic through a stateful NAT.
//!
//! In phase 1 the initiator (at the left, as a rule) sends each tuple exactly once, in order or in an order that looks random; the
//! responder learns them as they come out of the NAT. In phase 2 the initiator sends from the same tuples, and
//! the responder answers with those it has learnt.

use std::time::Duration;

use shoal_lab_plan::{
    Answers, Change, Checksums, Digit, Family, Order, Pace, Rate, Side, Stamps, Stream, Variable, Write,
};

use crate::error::FrameError;
use crate::layout::Layout;
use crate::traffic::{FIXED_PORTS, Traffic, of};
use crate::variation::{End, Field, address_byte};

/// The traffic of a stateful test. Everything but what tuples are made of comes from [`traffic`](Self::traffic).
#[derive(Clone, Debug, PartialEq)]
pub struct StatefulTraffic {
    /// Sizes, addresses, form. Tuples are all combinations of the ports that the initiator sends and of both sides' hosts; of
    /// fields that have an order only the range counts, those without one stay fixed.
    pub traffic: Traffic,
    /// Who begins; the other side learns and answers.
    pub initiator: Side,
}

/// A field of a tuple.
struct Part {
    offset: usize,
    first: u16,
    count: u64,
}

impl StatefulTraffic {
    /// How many different tuples there are.
    pub fn tuples(&self) -> u64 {
        let ports = of(&self.traffic.ports, self.initiator);
        let hosts: u64 = self.traffic.hosts.iter().flatten().map(|h| h.field.count()).product();
        ports.source.count() * ports.destination.count() * hosts
    }

    /// Phase 1: the first `frames` tuples (all, if there are as many) once each at `rate`, in `order`: rising, falling or
    /// permuted. Source ports change first, then destination ports, then hosts.
    ///
    /// # Errors
    ///
    /// Fewer tuples than frames, an order that would repeat some, and what [`Traffic::streams`] refuses.
    pub fn preliminary(&self, frames: u64, rate: Rate, order: Order) -> Result<Stream, FrameError> {
        if order == Order::Random {
            return Err(FrameError::Together {
                what: "random order".to_owned(),
                with: "each tuple exactly once".to_owned(),
                nearest: "use a permutation".to_owned(),
            });
        }
        let mut stream = self.of_initiator("preliminary", frames, order)?;
        let after = Duration::ZERO;
        stream.pace = Pace::Bursts { frames, bursts: 1, rate: Some(rate), gap: Duration::ZERO, after };
        Ok(stream)
    }

    /// Phase 2, from the initiator: frames of the first `frames` tuples in any order, again and again.
    ///
    /// # Errors
    ///
    /// As [`preliminary`](Self::preliminary).
    pub fn again(&self, frames: u64, rate: Rate, order: Order) -> Result<Stream, FrameError> {
        let mut stream = self.of_initiator("again", frames, order)?;
        stream.pace = Pace::Steady { rate, after: Duration::ZERO };
        stream.stamps = self.traffic.stamps;
        Ok(stream)
    }

    /// Phase 2, from the responder: answers to what it has learnt, chosen in `order`.
    ///
    /// # Errors
    ///
    /// What [`Traffic::streams`] refuses.
    pub fn answers(&self, rate: Rate, order: Order) -> Result<Stream, FrameError> {
        let mut stream = self.bare("answers", self.initiator.other())?;
        stream.pace = Pace::Steady { rate, after: Duration::ZERO };
        stream.stamps = self.traffic.stamps;
        stream.answers = Some(Answers { order });
        Ok(stream)
    }

    /// RFC 9693's check that all learnt connections are there: each of `tuples` answers goes out once, at `rate`.
    ///
    /// # Errors
    ///
    /// What [`Traffic::streams`] refuses.
    pub fn validation(&self, tuples: u64, rate: Rate) -> Result<Stream, FrameError> {
        let mut stream = self.answers(rate, Order::Rising)?;
        "validation".clone_into(&mut stream.name);
        stream.stamps = Stamps::None;
        let (gap, after) = (Duration::ZERO, Duration::ZERO);
        stream.pace = Pace::Bursts { frames: tuples, bursts: 1, rate: Some(rate), gap, after };
        Ok(stream)
    }

    fn of_initiator(&self, name: &str, frames: u64, order: Order) -> Result<Stream, FrameError> {
        let mut stream = self.bare(name, self.initiator)?;
        FrameError::within("the number of preliminary frames", frames, 1, self.tuples())?;
        let Some(layout) = Layout::of(&stream.frame) else { return Ok(stream) };
        let mut divide = 1;
        let mut writes = Vec::new();
        for Part { offset, first, count } in self.parts(&layout) {
            writes.push(Write {
                add: i64::from(first),
                digit: Some(Digit { divide, of: count }),
                ..Write::whole(offset as u16, 2)
            });
            divide *= count;
        }
        let max = frames - 1;
        let first = if order == Order::Falling { max } else { 0 };
        let variable = Variable { order, min: 0, max, first, step: 1, list: Vec::new(), seed: 6 };
        stream.changes = vec![Change { variable, writes }];
        Ok(stream)
    }

    fn parts(&self, layout: &Layout) -> Vec<Part> {
        let ports = of(&self.traffic.ports, self.initiator);
        let mut parts = Vec::new();
        let mut push = |offset, field: Field| {
            if field.order.is_some() {
                parts.push(Part { offset, first: field.min, count: field.count() });
            }
        };
        push(layout.l4, ports.source);
        push(layout.l4 + 2, ports.destination);
        for (side, end) in [(self.initiator, End::Source), (self.initiator.other(), End::Destination)] {
            if let Some(hosts) = of(&self.traffic.hosts, side) {
                push(address_byte(layout, end, hosts.offset4, hosts.offset6), hosts.field);
            }
        }
        parts
    }

    /// A stream in which nothing varies yet.
    fn bare(&self, name: &str, from: Side) -> Result<Stream, FrameError> {
        self.traffic.check()?;
        let family = *of(&self.traffic.families, from);
        let (frame, tag) = self.traffic.first(from, family, FIXED_PORTS)?;
        Ok(Stream {
            name: name.to_owned(),
            from,
            frame,
            changes: Vec::new(),
            checksums: Checksums { ip4: family == Family::Ip4, l4: true },
            tag,
            pace: Pace::Steady { rate: Rate::ZERO, after: Duration::ZERO },
            stamps: Stamps::None,
            expected: true,
            answers: None,
        })
    }
}
