//! The kernel's thread, played: the other end of a ring in the same memory.

use shoal_buffer::{Pages, Pool, PoolConfig};
use shoal_link::EventFd;
use shoal_shm::{Mapping, Populate};
use std::sync::Arc;

use crate::ring::{HEADER, Ring, slot_bytes};
use crate::vring::{NEXT, Vring, WRITE};

/// The kernel's end of a ring.
pub(crate) struct Kernel {
    pub(crate) ring: Vring,
    /// Chains taken in all.
    taken: u16,
    /// Chains given back in all.
    pub(crate) used: u16,
}

/// Both ends of a ring. The kernel's says at first that it wants to be woken.
pub(crate) fn ends(size: u16) -> (Ring, Kernel) {
    let slot = slot_bytes(size);
    let memory = Arc::new(Mapping::anonymous(Vring::bytes(size, slot), Populate::Later).unwrap());
    let vring = Vring::new(&memory, 0, size, slot).unwrap();
    let kernel = Kernel { ring: vring.other_end(), taken: 0, used: 0 };
    (Ring::new(vring, EventFd::create().unwrap()), kernel)
}

pub(crate) fn pool(buffers: usize) -> Arc<Pool> {
    Pool::new(PoolConfig { name: "test".into(), buffers, most: buffers, pages: Pages::Small }).unwrap()
}

/// Bytes that differ from one place to the next.
pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 11) as u8).collect()
}

impl Kernel {
    /// The next chain that was given, as slots with their lengths; `None` when there is none.
    pub(crate) fn take(&mut self) -> Option<Vec<(u16, u32)>> {
        if self.taken == self.ring.avail_index() {
            return None;
        }
        let mut at = self.ring.avail_entry(self.taken);
        self.taken = self.taken.wrapping_add(1);
        let mut chain = Vec::new();
        loop {
            let (slot, len, flags, next) = self.ring.desc(at);
            assert_eq!(slot, Some(at), "a descriptor points to its slot");
            assert!(len as usize <= self.ring.slot_bytes());
            assert_eq!(flags & !NEXT & !WRITE, 0);
            chain.push((at, len));
            assert!(chain.len() <= usize::from(self.ring.size()), "a chain without end");
            if flags & NEXT == 0 {
                return Some(chain);
            }
            at = next;
        }
    }

    /// Gives a chain back; seen after [`Kernel::show`].
    pub(crate) fn give(&mut self, id: u32, len: u32) {
        self.ring.set_used_entry(self.used, id, len);
        self.used = self.used.wrapping_add(1);
    }

    pub(crate) fn show(&self) {
        self.ring.set_used_index(self.used);
    }

    /// Puts a frame into as many slots as it needs, as the kernel does; `None`, and they stay taken, when there are too few.
    pub(crate) fn put(&mut self, vnet: [u8; 10], frame: &[u8]) -> Option<()> {
        let room = self.ring.slot_bytes();
        let slots = (HEADER + frame.len()).div_ceil(room);
        let count = (slots as u16).to_le_bytes();
        let whole = [&vnet[..], &count, frame].concat();
        let chains: Vec<_> = (0..slots).map_while(|_| self.take()).collect();
        if chains.len() < slots {
            return None;
        }
        for (chain, bytes) in chains.iter().zip(whole.chunks(room)) {
            self.ring.copy_in(chain[0].0, 0, bytes).unwrap();
            self.give(chain[0].0.into(), bytes.len() as u32);
        }
        self.show();
        Some(())
    }

    /// The bytes of a chain.
    pub(crate) fn bytes(&self, chain: &[(u16, u32)]) -> Vec<u8> {
        let read = |&(slot, len): &(u16, u32)| {
            let mut bytes = vec![0; len as usize];
            self.ring.copy_out(slot, 0, &mut bytes).unwrap();
            bytes
        };
        chain.iter().flat_map(read).collect()
    }
}
