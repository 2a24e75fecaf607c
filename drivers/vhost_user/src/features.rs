//! What both ends can do: features of the device (virtio 1.2, 5.1.3 and 6) and of the protocol.

/// Features of the device that are offered, and their names, lowest bit first.
pub const FEATURES: &[(u32, &str)] = &[
    (CSUM, "VIRTIO_NET_F_CSUM"),
    (GUEST_CSUM, "VIRTIO_NET_F_GUEST_CSUM"),
    (GUEST_TSO4, "VIRTIO_NET_F_GUEST_TSO4"),
    (GUEST_TSO6, "VIRTIO_NET_F_GUEST_TSO6"),
    (GUEST_ECN, "VIRTIO_NET_F_GUEST_ECN"),
    (HOST_TSO4, "VIRTIO_NET_F_HOST_TSO4"),
    (HOST_TSO6, "VIRTIO_NET_F_HOST_TSO6"),
    (HOST_ECN, "VIRTIO_NET_F_HOST_ECN"),
    (MRG_RXBUF, "VIRTIO_NET_F_MRG_RXBUF"),
    // The two below are the hypervisor's work; it offers several queues to a guest only if both are here.
    (CTRL_VQ, "VIRTIO_NET_F_CTRL_VQ"),
    (MQ, "VIRTIO_NET_F_MQ"),
    (ANY_LAYOUT, "VIRTIO_F_ANY_LAYOUT"),
    (INDIRECT_DESC, "VIRTIO_F_INDIRECT_DESC"),
    (EVENT_IDX, "VIRTIO_F_EVENT_IDX"),
    (PROTOCOL_FEATURES, "VHOST_USER_F_PROTOCOL_FEATURES"),
    (VERSION_1, "VIRTIO_F_VERSION_1"),
];

/// Features of the protocol that are offered.
pub const PROTOCOL: &[(u32, &str)] =
    &[(PROTOCOL_MQ, "VHOST_USER_PROTOCOL_F_MQ"), (PROTOCOL_REPLY_ACK, "VHOST_USER_PROTOCOL_F_REPLY_ACK")];

pub(crate) const CSUM: u32 = 0;
pub(crate) const GUEST_CSUM: u32 = 1;
pub(crate) const GUEST_TSO4: u32 = 7;
pub(crate) const GUEST_TSO6: u32 = 8;
pub(crate) const GUEST_ECN: u32 = 9;
pub(crate) const HOST_TSO4: u32 = 11;
pub(crate) const HOST_TSO6: u32 = 12;
pub(crate) const HOST_ECN: u32 = 13;
pub(crate) const MRG_RXBUF: u32 = 15;
pub(crate) const CTRL_VQ: u32 = 17;
pub(crate) const MQ: u32 = 22;
pub(crate) const ANY_LAYOUT: u32 = 27;
pub(crate) const INDIRECT_DESC: u32 = 28;
pub(crate) const EVENT_IDX: u32 = 29;
pub(crate) const PROTOCOL_FEATURES: u32 = 30;
pub(crate) const VERSION_1: u32 = 32;

pub(crate) const PROTOCOL_MQ: u32 = 0;
pub(crate) const PROTOCOL_REPLY_ACK: u32 = 3;

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(pub u64);

impl Features {
    /// All that are offered, but for those an operator has masked.
    pub fn offered(mask: u64) -> Self {
        // Without these two there is nothing to negotiate with.
        let always = 1 << PROTOCOL_FEATURES | 1 << VERSION_1;
        Features(bits(FEATURES) & (mask | always))
    }

    /// Those of the protocol that are offered.
    pub fn offered_protocol() -> Self {
        Features(bits(PROTOCOL))
    }

    /// Whether one is among them.
    #[inline(always)]
    pub const fn has(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }

    /// Bytes in front of each frame (virtio 1.2, 5.1.6.1): ten, and two for the number of buffers.
    pub fn header_len(self) -> u32 {
        if self.has(VERSION_1) || self.has(MRG_RXBUF) { 12 } else { 10 }
    }
}

const fn bits(of: &[(u32, &str)]) -> u64 {
    let (mut all, mut rest) = (0, of);
    while let [(bit, _), behind @ ..] = rest {
        all |= 1 << *bit;
        rest = behind;
    }
    all
}
