//! `BondEthernetN-tx`: which member a packet goes out by.
//! BondEthernetN-output -> **BondEthernetN-tx** -> interface-output of the member
//!
//! A frame node, because mode broadcast makes many packets of one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::{Frame, Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Edge, FrameCx, FrameNode, NextNodes as _, ReplicaTarget};
use shoal_infra::Published;

use crate::data::BondData;
use crate::hash::{hash, place};
use crate::mode::Mode;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Out by a member.
    #[node("interface-output")]
    Output,
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// no member
    NoMember,
    /// no buffer for a copy
    NoBuffer,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("member sw_if_index {member}")]
pub struct Trace {
    member: u32,
}

/// Sends by members.
pub struct BondTx {
    /// The bond.
    pub data: Arc<Published<BondData>>,
    /// The next turn of mode round-robin. Threads share it: it is an order, not a count.
    pub turn: AtomicU32,
}

/// A member that gets a copy.
#[derive(Clone, Copy)]
struct Copy(SwIfIndex);

impl ReplicaTarget for Copy {
    type Trace = Trace;

    fn address(&self, pkt: &mut Packet<'_>) -> Edge {
        pkt.meta_mut().tx = self.0;
        Next::Output.edge()
    }

    fn trace(&self) -> Trace {
        Trace { member: self.0.0 }
    }
}

impl FrameNode for BondTx {
    const NAME: &'static str = "bond-tx";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let data = self.data.load(cx.guard());
        let active = data.active.as_slice();
        let Some(first) = active.first() else { return cx.drop_frame(frame, Error::NoMember) };
        if data.mode == Mode::Broadcast {
            return Self::to_all(active, frame, cx);
        }
        let packets = frame.len();
        let mut turn = match data.mode {
            Mode::RoundRobin => {
                self.turn.fetch_add(packets as u32, Ordering::Relaxed) as usize % active.len()
            }
            _ => 0,
        };
        let memory = cx.memory();
        for i in 0..packets {
            let Some(mut pkt) = frame.packet(memory, i) else { continue };
            let at = match data.mode {
                Mode::RoundRobin => {
                    let at = turn;
                    turn = if turn + 1 == active.len() { 0 } else { turn + 1 };
                    at
                }
                Mode::ActiveBackup | Mode::Broadcast => 0,
                Mode::Xor | Mode::Lacp => place(hash(data.balance, pkt.data()), active.len()),
            };
            let member = active.get(at).copied().unwrap_or(*first);
            pkt.meta_mut().tx = member;
            cx.trace(&pkt, || Trace { member: member.0 });
        }
        cx.send_frame(Next::Output.edge(), frame);
    }
}

impl BondTx {
    fn to_all(active: &[SwIfIndex], frame: &mut Frame, cx: &mut FrameCx<'_>) {
        while let Some(buffer) = frame.pop() {
            // As many copies as there are members, which are few.
            let mut most = active.len();
            let done = cx.replicate(buffer, active.iter().copied().map(Copy), &mut most);
            cx.count(Error::NoBuffer, done.missed as u64);
            if let Some((buffer, _)) = done.left {
                cx.drop(buffer, Error::NoMember);
            }
        }
    }
}
