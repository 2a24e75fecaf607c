//! Who contributes to an entry.

use std::fmt;

/// Who contributes to an entry, best first, in VPP's order (fib_source.h). Of several that contribute to one
/// entry the first decides; when it withdraws, the next one does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Source {
    /// What every table has and nobody may change.
    Special,
    /// The longest packet that the way to a host carries. It changes nothing else of the way, and next hops are looked up
    /// as if it were not there.
    PathMtu,
    /// Addresses the router answers for others (proxy ARP).
    Proxy,
    /// An interface's address and its connected network.
    Interface,
    /// The binary API.
    Api,
    /// An operator.
    Cli,
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
        Source::Proxy,
        Source::Interface,
        Source::Api,
        Source::Cli,
        Source::Dhcp,
        Source::Adjacency,
        Source::AttachedExport,
        Source::RecursiveResolution,
        Source::DefaultRoute,
    ];

    /// The word `show ip fib` prints.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Special => "special",
            Source::PathMtu => "path-mtu",
            Source::Proxy => "proxy",
            Source::Interface => "interface",
            Source::Api => "API",
            Source::Cli => "CLI",
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
