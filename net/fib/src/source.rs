//! Who contributes to an entry.

use std::fmt;

/// Who contributes to an entry, best first, in VPP's order (fib_source.h). Of several that contribute to one
/// entry the first decides; when it withdraws, the next one does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Source {
    /// What every table has and no client may change.
    Special,
    /// The longest packet that the way to a host carries. It changes nothing else of the way, and next hops are looked up
    /// as if it were not there.
    PathMtu,
    /// Addresses that a feature takes for itself, as a NAT's pool.
    Feature,
    /// Addresses the router answers for others (proxy ARP).
    Proxy,
    /// An interface's address and its connected network.
    Interface,
    /// An operator's route of Linux, by an image of an interface.
    LcpRt,
    /// A route that FRR's zebra gave the router itself (FPM).
    Fpm,
    /// A route that a routing daemon gave Linux, likewise.
    LcpRtDynamic,
    /// A client's, above the API's.
    ClientHigh1,
    /// A client's, above the API's.
    ClientHigh2,
    /// A client's, above the API's.
    ClientHigh3,
    /// A client's, above the API's.
    ClientHigh4,
    /// The binary API.
    Api,
    /// An operator.
    Cli,
    /// A client's, below an operator's.
    ClientLow1,
    /// A client's, below an operator's.
    ClientLow2,
    /// A client's, below an operator's.
    ClientLow3,
    /// A client's, below an operator's.
    ClientLow4,
    /// An address or default gateway learnt by DHCP.
    Dhcp,
    /// A neighbour on a connected network.
    Adjacency,
    /// A host that another table knows on the link a route leads to.
    AttachedExport,
    /// A next hop that routes resolve through.
    RecursiveResolution,
    /// The route of last resort that every table has.
    DefaultRoute,
}

impl Source {
    /// All, best first.
    pub(crate) const ALL: [Source; Source::DefaultRoute as usize + 1] = [
        Source::Special,
        Source::PathMtu,
        Source::Feature,
        Source::Proxy,
        Source::Interface,
        Source::LcpRt,
        Source::Fpm,
        Source::LcpRtDynamic,
        Source::ClientHigh1,
        Source::ClientHigh2,
        Source::ClientHigh3,
        Source::ClientHigh4,
        Source::Api,
        Source::Cli,
        Source::ClientLow1,
        Source::ClientLow2,
        Source::ClientLow3,
        Source::ClientLow4,
        Source::Dhcp,
        Source::Adjacency,
        Source::AttachedExport,
        Source::RecursiveResolution,
        Source::DefaultRoute,
    ];

    /// Those that clients may name, above the API's and below an operator's.
    pub(crate) const OF_CLIENTS: [[Source; 4]; 2] = [
        [Source::ClientHigh1, Source::ClientHigh2, Source::ClientHigh3, Source::ClientHigh4],
        [Source::ClientLow1, Source::ClientLow2, Source::ClientLow3, Source::ClientLow4],
    ];

    /// What clients see of its place: the lower, the better. VPP's numbers where VPP has the source. A client's own has the
    /// one that the client gave it.
    pub(crate) const fn priority(self) -> u8 {
        match self {
            Source::Special => 0,
            Source::PathMtu => 1,
            Source::Feature | Source::Proxy => 2,
            Source::Interface => 3,
            Source::LcpRt => 4,
            Source::Fpm | Source::LcpRtDynamic => 5,
            Source::ClientHigh1 | Source::ClientHigh2 | Source::ClientHigh3 | Source::ClientHigh4 => 0x10,
            Source::Api => 0x80,
            Source::Cli => 0x81,
            Source::ClientLow1 | Source::ClientLow2 | Source::ClientLow3 | Source::ClientLow4 => 0x90,
            Source::Dhcp => 0xb0,
            Source::Adjacency => 0xd0,
            Source::AttachedExport => 0xd1,
            Source::RecursiveResolution => 0xe0,
            Source::DefaultRoute => 0xff,
        }
    }

    /// The word `show ip fib` prints.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Special => "special",
            Source::PathMtu => "path-mtu",
            Source::Feature => "plugin-hi",
            Source::Proxy => "proxy",
            Source::Interface => "interface",
            Source::LcpRt => "lcp-rt",
            Source::Fpm => "fpm",
            Source::LcpRtDynamic => "lcp-rt-dynamic",
            Source::ClientHigh1 => "client-high-1",
            Source::ClientHigh2 => "client-high-2",
            Source::ClientHigh3 => "client-high-3",
            Source::ClientHigh4 => "client-high-4",
            Source::Api => "API",
            Source::Cli => "CLI",
            Source::ClientLow1 => "client-low-1",
            Source::ClientLow2 => "client-low-2",
            Source::ClientLow3 => "client-low-3",
            Source::ClientLow4 => "client-low-4",
            Source::Dhcp => "DHCP",
            Source::Adjacency => "adjacency",
            Source::AttachedExport => "attached-export",
            Source::RecursiveResolution => "recursive-resolution",
            Source::DefaultRoute => "default-route",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
