//! How packets are spread over members. The numbers are those of VPP's API, the words those of its command line.

/// What a bond does with its members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mode {
    /// Each packet goes to the next member.
    RoundRobin = 1,
    /// One member does all; the others wait for it to fail.
    ActiveBackup = 2,
    /// The packets of a flow go to one member.
    Xor = 3,
    /// Each packet goes to all members.
    Broadcast = 4,
    /// As `Xor`, over the members that the other end agrees to: IEEE 802.1AX.
    Lacp = 5,
}

impl Mode {
    /// All, with their words.
    pub const WORDS: [(Mode, &'static str); 5] = [
        (Mode::RoundRobin, "round-robin"),
        (Mode::ActiveBackup, "active-backup"),
        (Mode::Xor, "xor"),
        (Mode::Broadcast, "broadcast"),
        (Mode::Lacp, "lacp"),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        Mode::WORDS.iter().find(|(mode, _)| *mode == self).map_or("", |(_, word)| word)
    }

    /// Whether packets are spread by what they carry.
    pub fn hashes(self) -> bool {
        matches!(self, Mode::Xor | Mode::Lacp)
    }

    /// The mode of a number.
    pub fn from_number(number: u32) -> Option<Mode> {
        Mode::WORDS.iter().map(|(mode, _)| *mode).find(|mode| *mode as u32 == number)
    }
}

/// What makes packets a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Balance {
    /// Their MAC addresses.
    #[default]
    L2 = 0,
    /// Their IP addresses and ports.
    L34 = 1,
    /// Their MAC and IP addresses.
    L23 = 2,
    /// Nothing: mode `round-robin`.
    RoundRobin = 3,
    /// Nothing: mode `broadcast`.
    Broadcast = 4,
    /// Nothing: mode `active-backup`.
    ActiveBackup = 5,
}

impl Balance {
    /// Those that can be chosen.
    pub const WORDS: [(Balance, &'static str); 3] =
        [(Balance::L2, "l2"), (Balance::L34, "l34"), (Balance::L23, "l23")];

    /// What a mode makes of what was chosen.
    pub fn of(mode: Mode, chosen: Balance) -> Balance {
        match mode {
            Mode::RoundRobin => Balance::RoundRobin,
            Mode::ActiveBackup => Balance::ActiveBackup,
            Mode::Broadcast => Balance::Broadcast,
            Mode::Xor | Mode::Lacp => chosen,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Balance::RoundRobin => Mode::RoundRobin.word(),
            Balance::Broadcast => Mode::Broadcast.word(),
            Balance::ActiveBackup => Mode::ActiveBackup.word(),
            _ => Balance::WORDS.iter().find(|(balance, _)| *balance == self).map_or("", |(_, word)| word),
        }
    }

    /// The one of a number that can be chosen.
    pub fn from_number(number: u32) -> Option<Balance> {
        Balance::WORDS.iter().map(|(balance, _)| *balance).find(|balance| *balance as u32 == number)
    }
}
