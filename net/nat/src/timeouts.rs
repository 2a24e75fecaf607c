//! How long sessions live without a packet.

/// Seconds without a packet after which a session ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// Of UDP, and of protocols without ports.
    pub udp: u32,
    /// Of TCP connections that are open.
    pub tcp_established: u32,
    /// Of TCP connections that begin or end.
    pub tcp_transitory: u32,
    /// Of ICMP queries.
    pub icmp: u32,
}

impl Default for Timeouts {
    /// RFC 4787, REQ-5; RFC 5382, REQ-5; RFC 5508, REQ-1.
    fn default() -> Self {
        Timeouts { udp: 300, tcp_established: 7440, tcp_transitory: 240, icmp: 60 }
    }
}
