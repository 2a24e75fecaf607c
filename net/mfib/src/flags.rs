//! Flags of entries and of the interfaces in them, with VPP's words and bits.

use std::fmt;

/// Flags of an entry, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EntryFlags(pub u8);

impl EntryFlags {
    /// Packets are signalled on every interface that does not negate it.
    pub const SIGNAL: EntryFlags = EntryFlags(1);
    /// Packets are dropped.
    pub const DROP: EntryFlags = EntryFlags(1 << 1);
    /// Sources are directly connected: packets are signalled only on interfaces that negate the entry's flag.
    pub const CONNECTED: EntryFlags = EntryFlags(1 << 2);
    /// Packets are taken from every interface.
    pub const ACCEPT_ALL: EntryFlags = EntryFlags(1 << 3);

    /// The flags with the words of the CLI.
    pub const NAMES: [(EntryFlags, &'static str); 4] = [
        (Self::SIGNAL, "Signal"),
        (Self::DROP, "Drop"),
        (Self::CONNECTED, "Connected"),
        (Self::ACCEPT_ALL, "Accept-all-itf"),
    ];

    /// Whether any bit of `other` is set.
    pub const fn has(self, other: EntryFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// These bits and those of `other`.
    #[must_use]
    pub const fn with(self, other: EntryFlags) -> EntryFlags {
        EntryFlags(self.0 | other.0)
    }

    /// These bits without those of `other`.
    #[must_use]
    pub const fn without(self, other: EntryFlags) -> EntryFlags {
        EntryFlags(self.0 & !other.0)
    }
}

/// Flags of an interface in an entry, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ItfFlags(pub u8);

impl ItfFlags {
    /// The opposite of the entry's signal flag holds here.
    pub const NEGATE_SIGNAL: ItfFlags = ItfFlags(1);
    /// Packets from here are taken.
    pub const ACCEPT: ItfFlags = ItfFlags(1 << 1);
    /// Packets are sent here; for `local`: delivered to this router.
    pub const FORWARD: ItfFlags = ItfFlags(1 << 2);
    /// A packet was signalled. Set by packets.
    pub const SIGNAL_PRESENT: ItfFlags = ItfFlags(1 << 3);

    /// The flags with the words of the CLI.
    pub const NAMES: [(ItfFlags, &'static str); 4] = [
        (Self::ACCEPT, "Accept"),
        (Self::FORWARD, "Forward"),
        (Self::NEGATE_SIGNAL, "Negate-Signal"),
        (Self::SIGNAL_PRESENT, "Signal-Present"),
    ];

    /// Whether any bit of `other` is set.
    pub const fn has(self, other: ItfFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// These bits and those of `other`.
    #[must_use]
    pub const fn with(self, other: ItfFlags) -> ItfFlags {
        ItfFlags(self.0 | other.0)
    }

    /// These bits without those of `other`.
    #[must_use]
    pub const fn without(self, other: ItfFlags) -> ItfFlags {
        ItfFlags(self.0 & !other.0)
    }

    /// Whether no bit is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

fn list(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = &'static str>) -> fmt::Result {
    for (i, name) in names.enumerate() {
        write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
    }
    Ok(())
}

impl fmt::Display for EntryFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("none");
        }
        list(f, Self::NAMES.into_iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| name))
    }
}

impl fmt::Display for ItfFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, Self::NAMES.into_iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| name))
    }
}
