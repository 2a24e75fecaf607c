//! RFC 2889's traffic for the address table of a bridge with two ports (5.7, 5.8).
//!
//! With a third port one would look there for floods. With two the question is put the other way round: frames go, from the
//! side at which addresses were learnt, *to* these addresses. A bridge that knows them keeps the frames back; those to
//! addresses that it does not know arrive at the other side.

use std::time::Duration;

use shoal_lab_plan::{Change, Checksums, Family, Pace, Rate, Side, Stamps, Stream};

use crate::error::FrameError;
use crate::packet::Mac;
use crate::permutation::Permutation;
use crate::traffic::{FIXED_PORTS, Traffic, of};
use crate::variation::listed_macs;

/// The most addresses that can be taught: a trial's streams have lists of them.
pub const MOST_ADDRESSES: u32 = 1 << 20;

/// The first two bytes of all addresses: locally administered as the tester's own, and never one of those.
const PREFIX: u64 = 0x025a;
/// Where the MACs are.
const DESTINATION: u16 = 0;
const SOURCE: u16 = 6;
/// One frame in so many, while it is asked, goes to an address that was not taught.
const THROUGH: u32 = 10;

/// The traffic that teaches a bridge addresses, and asks whether it knows them.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningTraffic {
    /// Sizes, IP addresses, form. Nothing of it varies but Ethernet addresses.
    pub traffic: Traffic,
    /// The side at which the addresses are.
    pub at: Side,
}

impl LearningTraffic {
    /// One frame *from* each of `addresses`, to the tester's other port, at `rate`.
    ///
    /// # Errors
    ///
    /// No addresses or more than [`MOST_ADDRESSES`], and what [`Traffic::streams`] refuses.
    pub fn learn(&self, addresses: u32, rate: Rate) -> Result<Stream, FrameError> {
        let changes = vec![listed_macs(SOURCE, list(addresses)?)];
        self.stream("learn", changes, addresses, rate)
    }

    /// `ask`: one frame *to* each of them, from another of them, at `rate`; it is not expected to arrive. And `through`: a
    /// tenth as many to the tester's other port, which never sends, so that the bridge has to flood them: that they arrive shows
    /// that it does forward. Nothing of this teaches a new address.
    ///
    /// # Errors
    ///
    /// As [`learn`](Self::learn).
    pub fn ask(&self, addresses: u32, rate: Rate) -> Result<Vec<Stream>, FrameError> {
        let list = list(addresses)?;
        let first = list.first().copied().into_iter().collect();
        // Each asks for the one behind it, the last for the first.
        let mut askers = list.clone();
        askers.rotate_right(1);
        let changes = vec![listed_macs(DESTINATION, list), listed_macs(SOURCE, askers)];
        let mut ask = self.stream("ask", changes, addresses, rate)?;
        ask.expected = false;
        let some = addresses.div_ceil(THROUGH);
        let slower = rate.share(1, u64::from(THROUGH));
        let through = self.stream("through", vec![listed_macs(SOURCE, first)], some, slower)?;
        Ok(vec![ask, through])
    }

    fn stream(
        &self,
        name: &str,
        changes: Vec<Change>,
        frames: u32,
        rate: Rate,
    ) -> Result<Stream, FrameError> {
        self.traffic.check()?;
        let family = *of(&self.traffic.families, self.at);
        let (mut frame, tag) = self.traffic.first(self.at, family, FIXED_PORTS)?;
        // A stream's frame is its first; no checksum has MACs in it.
        for change in &changes {
            let Some((mac, write)) = change.variable.list.first().zip(change.writes.first()) else {
                continue;
            };
            let [_, _, mac @ ..] = mac.to_be_bytes();
            if let Some(bytes) = frame.get_mut(usize::from(write.offset)..usize::from(write.offset) + 6) {
                bytes.copy_from_slice(&mac);
            }
        }
        let (gap, after) = (Duration::ZERO, Duration::ZERO);
        Ok(Stream {
            name: name.to_owned(),
            from: self.at,
            frame,
            changes,
            checksums: Checksums { ip4: family == Family::Ip4, l4: true },
            tag,
            pace: Pace::Bursts { frames: u64::from(frames), bursts: 1, rate: Some(rate), gap, after },
            stamps: Stamps::None,
            expected: true,
            answers: None,
        })
    }

    /// Address `number` of those that are taught, counted from 0.
    pub fn address(number: u32) -> Mac {
        let [_, _, mac @ ..] = numbered(&order(), number).to_be_bytes();
        mac
    }
}

/// RFC 4814 4.2: addresses that follow each other would flatter some hashes and burden others, so they are in random order;
/// each comes once.
fn order() -> Permutation {
    Permutation::new(u64::from(u32::MAX), 0x2889)
}

fn numbered(order: &Permutation, number: u32) -> u64 {
    PREFIX << 32 | order.at(u64::from(number))
}

fn list(addresses: u32) -> Result<Vec<u64>, FrameError> {
    let most = u64::from(MOST_ADDRESSES);
    FrameError::within("the number of addresses to learn", u64::from(addresses), 1, most)?;
    let order = order();
    Ok((0..addresses).map(|number| numbered(&order, number)).collect())
}
