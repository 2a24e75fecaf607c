//! What the router makes itself: frames of its own, and addresses of interfaces that have none.

use std::hash::{BuildHasher, RandomState};

use shoal_buffer::{Flags, SwIfIndex};
use shoal_wire::{EtherType, MacAddress};

use crate::{Interfaces, LinkHeader};

/// A random address in the range VPP uses for its own interfaces.
pub fn random_mac() -> MacAddress {
    let [a, b, c, d, ..] = RandomState::new().hash_one(std::process::id()).to_be_bytes();
    MacAddress([0x02, 0xfe, a, b, c, d])
}

impl Interfaces {
    /// Sends a frame of this router by an interface, with its address and its tags; false when there is no such interface or no
    /// buffer: it is lost then, as on a wire.
    pub fn send_frame(&self, index: SwIfIndex, dst: MacAddress, kind: EtherType, payload: &[u8]) -> bool {
        let Ok(data) = self.data(index) else { return false };
        self.send_frame_from(index, (data.mac(), dst), kind, payload)
    }

    /// The same from another MAC address than the interface's own: that of a virtual router.
    pub fn send_frame_from(
        &self,
        index: SwIfIndex,
        (src, dst): (MacAddress, MacAddress),
        kind: EtherType,
        payload: &[u8],
    ) -> bool {
        let Ok(data) = self.data(index) else { return false };
        let frame = [&*LinkHeader::from(&data, src, dst, kind), payload].concat();
        let mut main = self.graph().main();
        let Ok(mut buffer) = main.cache().alloc_data(&frame) else { return false };
        let mut pkt = main.cache().packet(&mut buffer);
        let meta = pkt.meta_mut();
        meta.tx = index;
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        main.inject(self.output_node(), buffer);
        true
    }
}
