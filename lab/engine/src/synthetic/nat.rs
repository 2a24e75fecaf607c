//! The synthetic device's translations.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use shoal_lab_frame::{Tuple, retuple};

use super::behaviour::{NatFault, NatTable};

/// Ports below are not given.
const FIRST_PORT: u32 = 1024;

/// Who has which tuple.
#[derive(Debug)]
pub(super) struct Nat {
    table: NatTable,
    /// The place of each inner tuple, and how many frames of it came.
    flows: HashMap<Tuple, (u32, u64)>,
    /// What the outside sees, and whom it hides.
    outside: HashMap<Tuple, Tuple>,
}

impl Nat {
    pub(super) fn new(table: NatTable) -> Nat {
        Nat { table, flows: HashMap::new(), outside: HashMap::new() }
    }

    /// All translations are forgotten.
    pub(super) fn flush(&mut self) {
        self.flows.clear();
        self.outside.clear();
    }

    fn outer(&self, inner: &Tuple, place: u32) -> Tuple {
        let ports = 65_536 - FIRST_PORT;
        let source = Ipv4Addr::from(u32::from(self.table.pool).wrapping_add(place / ports));
        let source_port = (FIRST_PORT + place % ports) as u16;
        Tuple { source: IpAddr::V4(source), source_port, ..*inner }
    }

    /// A frame from left to right; whether there was room for its flow.
    pub(super) fn outward(&mut self, frame: &mut [u8]) -> bool {
        let Some(inner) = Tuple::of(frame) else { return false };
        let count = self.flows.len();
        if count >= self.table.size && !self.flows.contains_key(&inner) {
            return false;
        }
        let entry = self.flows.entry(inner).or_insert((count as u32, 0));
        entry.1 += 1;
        let (place, frames) = *entry;
        let place = match self.table.fault {
            Some(NatFault::Shared) => place / 2,
            Some(NatFault::Moving) if frames > 1 => place + self.table.size as u32,
            _ => place,
        };
        let outer = self.outer(&inner, place);
        self.outside.entry(outer).or_insert(inner);
        retuple(frame, &outer)
    }

    /// A frame from right to left; whether its flow is known.
    pub(super) fn inward(&self, frame: &mut [u8]) -> bool {
        let Some(tuple) = Tuple::of(frame) else { return false };
        let Some(inner) = self.outside.get(&crate::flow::reversed(&tuple)) else { return false };
        let mut back = crate::flow::reversed(inner);
        if self.table.fault == Some(NatFault::Unrestored) {
            back.destination_port = back.destination_port.wrapping_add(1);
        }
        retuple(frame, &back)
    }
}
