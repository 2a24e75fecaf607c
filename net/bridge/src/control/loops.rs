//! Loops: stations that move too often are reported, and the port they moved to is blocked for a while.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future;
use shoal_graph::clock::Time;
use shoal_graph::process::{Processes, Receiver};
use shoal_interface::SwIfIndex;
use shoal_l2::{Mode, PortGuard};
use shoal_wire::MacAddress;

use super::Bridges;
use crate::error::BridgeError;
use crate::loops::{LoopSeen, MOST_MOVES};

/// Longest that a port is blocked, in seconds: one day.
const LONGEST: u32 = 86_400;
/// After a port was blocked, what was seen before may still be told: so long no other one is.
const SETTLES: Duration = Duration::from_secs(1);
/// How often a domain's loops are written to the log, when no port is blocked.
const LOG: Duration = Duration::from_secs(10);

/// What a domain does about loops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopProtection {
    /// Moves of one station in a second that are a loop.
    pub moves: u16,
    /// For how many seconds the port a station moved to is blocked; 0: it is only reported.
    pub block: u32,
}

/// The last loop of a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastLoop {
    /// Of which station.
    pub mac: MacAddress,
    /// Where it was.
    pub from: SwIfIndex,
    /// Where it was heard then.
    pub to: SwIfIndex,
    /// When.
    pub at: Time,
}

/// What a domain knows of loops.
#[derive(Clone, Default, Debug)]
pub struct LoopState {
    /// How often one was seen; once a second of each station.
    pub seen: u64,
    /// How often a port was blocked.
    pub blocks: u64,
    /// The last one.
    pub last: Option<LastLoop>,
    /// Ports that are blocked, and until when.
    pub blocked: BTreeMap<SwIfIndex, Time>,
    block_at: Option<Time>,
    log_at: Option<Time>,
}

impl Bridges {
    /// Says what a domain does about loops; `None`: nothing, and no port stays blocked.
    ///
    /// # Errors
    /// There is no such domain, it is the one that drops, or a number is too small or too large.
    pub fn set_loop_protection(
        &self,
        number: u32,
        protection: Option<LoopProtection>,
    ) -> Result<(), BridgeError> {
        if let Some(LoopProtection { moves, block }) = protection {
            if !(2..=MOST_MOVES).contains(&moves) {
                let nearest = u32::from(moves.clamp(2, MOST_MOVES));
                return Err(BridgeError::Range { what: "moves", value: moves.into(), nearest });
            }
            if block > LONGEST {
                return Err(BridgeError::Range { what: "seconds", value: block, nearest: LONGEST });
            }
        }
        self.modify(number, |domain| domain.protection = protection)?;
        self.table.set_move_limit(self.index_of(number)?, protection.map_or(0, |p| p.moves));
        if protection.is_none() {
            for port in self.loop_state(number)?.blocked.into_keys() {
                self.unblock(number, port);
            }
        }
        Ok(())
    }

    /// What a domain does about loops.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn loop_protection(&self, number: u32) -> Result<Option<LoopProtection>, BridgeError> {
        Ok(self.domain(number)?.protection)
    }

    /// What a domain knows of loops.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn loop_state(&self, number: u32) -> Result<LoopState, BridgeError> {
        Ok(self.domain(number)?.loops)
    }

    /// How long a port stays blocked; `None`: it is not.
    pub fn blocked_for(&self, state: &LoopState, port: SwIfIndex) -> Option<Duration> {
        let now = self.graph.clock().now();
        state.blocked.get(&port).map(|until| until.since(now))
    }

    /// How long ago something was.
    pub fn since(&self, at: Time) -> Duration {
        self.graph.clock().now().since(at)
    }

    /// Packets have seen a loop.
    fn see_loop(&self, seen: LoopSeen) {
        let Some(number) = self.number_of(seen.key.domain()) else { return };
        let Ok(Some(protection)) = self.loop_protection(number) else { return };
        let LoopSeen { key, from, to } = seen;
        let (now, mac) = (self.graph.clock().now(), key.mac());
        let mut blocks = false;
        let mut logs = false;
        self.with_loops(number, |state| {
            state.seen += 1;
            state.last = Some(LastLoop { mac, from, to, at: now });
            let settled = state.block_at.is_none_or(|at| now.since(at) >= SETTLES);
            blocks = protection.block != 0 && settled && !state.blocked.contains_key(&from);
            logs = blocks || state.log_at.is_none_or(|at| now.since(at) >= LOG);
            if logs {
                state.log_at = Some(now);
            }
        });
        let name = |port| self.interfaces.name(port).unwrap_or_else(|_| "a deleted interface".into());
        if blocks {
            blocks = self.block(number, to, now.after(Duration::from_secs(protection.block.into())));
        }
        if logs {
            let done = if blocks {
                format!("{} is blocked for {} s", name(to), protection.block)
            } else {
                "no port is blocked".into()
            };
            tracing::warn!(
                "loop in bridge domain {number}: {mac} moves between {} and {}; {done}",
                name(from),
                name(to)
            );
        }
    }

    fn with_loops(&self, number: u32, change: impl FnOnce(&mut LoopState)) {
        if let Some(domain) = self.domains.borrow_mut().get_mut(&number) {
            change(&mut domain.loops);
        }
    }

    /// Blocks a member; false when it cannot be.
    fn block(&self, number: u32, port: SwIfIndex, until: Time) -> bool {
        let index = self.index_of(number).ok();
        let Mode::Bridge(place) = self.l2.mode(port) else { return false };
        if Some(place.domain) != index {
            return false;
        }
        let now = self.graph.clock().now();
        if let Err(e) = self.set_blocked(port, true) {
            tracing::warn!(%port, "it cannot be blocked: {e}");
            return false;
        }
        self.with_loops(number, |state| {
            state.blocked.insert(port, until);
            (state.blocks, state.block_at) = (state.blocks + 1, Some(now));
        });
        // Nothing is flooded there, and what was learned of it is not true.
        if let Err(e) = self.publish(number).and_then(|()| self.outdate(port)) {
            tracing::warn!(%port, "frames are still sent there: {e}");
        }
        self.scan.want();
        self.ring();
        let _ = self.loop_bell.try_send(());
        true
    }

    fn set_blocked(&self, port: SwIfIndex, is_blocked: bool) -> Result<(), BridgeError> {
        Ok(self.l2.set_guard(port, PortGuard { is_blocked, ..self.l2.guard(port) })?)
    }

    fn unblock(&self, number: u32, port: SwIfIndex) {
        self.with_loops(number, |state| {
            state.blocked.remove(&port);
        });
        if let Err(e) = self.set_blocked(port, false).and_then(|()| self.publish(number)) {
            tracing::warn!(%port, "it stays blocked: {e}");
        }
    }

    /// Opens the ports whose time is over; when the next one is to be opened.
    fn open_ports(&self) -> Option<Time> {
        let now = self.graph.clock().now();
        let mut next: Option<Time> = None;
        for number in self.numbers() {
            let Ok(state) = self.loop_state(number) else { continue };
            for (port, until) in state.blocked {
                if until > now {
                    next = Some(next.map_or(until, |next| next.min(until)));
                    continue;
                }
                self.unblock(number, port);
                let name = self.interfaces.name(port).unwrap_or_default();
                tracing::info!("{name} of bridge domain {number} is open again");
            }
        }
        next
    }

    /// A member has left its domain.
    pub(super) fn forget_loops(&self, number: u32, port: SwIfIndex) {
        self.with_loops(number, |state| {
            state.blocked.remove(&port);
        });
    }
}

/// What the task that watches for loops waits for.
pub(crate) struct LoopEars {
    pub seen: Receiver<LoopSeen>,
    pub bell: Receiver<()>,
}

/// The task.
pub(crate) async fn watch(bridges: Rc<Bridges>, processes: Rc<Processes>, ears: LoopEars) {
    loop {
        while let Ok(seen) = ears.seen.try_recv() {
            bridges.see_loop(seen);
        }
        let due = bridges.open_ports();
        let seen = async {
            match ears.seen.recv().await {
                Ok(seen) => Some(seen),
                Err(_) => future::pending().await,
            }
        };
        let other = async {
            processes.rung_or_due(&ears.bell, due).await;
            None
        };
        if let Some(seen) = future::or(seen, other).await {
            bridges.see_loop(seen);
        }
    }
}
