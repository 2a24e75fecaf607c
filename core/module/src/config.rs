//! Start-up sections: what a feature may declare for the start-up file, and the values it gets back.
//!
//! Data only. A feature declares a [`Section`]; `shoal-config` reads the file, checks it against every declared
//! section before anything is touched, and hands each feature its [`Settings`].
//!
//! ```
//! use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};
//!
//! static NAT: Section = Section {
//!     name: "nat44",
//!     doc: "address translation",
//!     effect: Effect::Honoured,
//!     body: Body::Keys(&[Key::new("max-sessions", Kind::U64 { min: 1, max: 1 << 30 }, "sessions per worker")]),
//! };
//!
//! fn configure(settings: &Settings) -> u64 {
//!     settings.u64("max-sessions").unwrap_or(65_536)
//! }
//! assert_eq!(NAT.name, "nat44");
//! assert_eq!(configure(&Settings::default()), 65_536);
//! ```

use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// One stanza of the start-up file: `name { ... }`, or `name value`.
#[derive(Debug)]
pub struct Section {
    /// The stanza's word, kebab-case.
    pub name: &'static str,
    /// One line for the reference.
    pub doc: &'static str,
    /// Whether the stanza does anything.
    pub effect: Effect,
    /// What may stand in it.
    pub body: Body,
}

/// What may stand in a section.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// These keys, in any order.
    Keys(&'static [Key]),
    /// One value and no braces, as in `heapsize 2G`.
    Value(Kind),
    /// Anything with balanced braces; nothing of it is looked at. Its words are kept under [`TEXT`].
    Anything,
}

/// The key under which the inside of a section of [`Body::Anything`] is kept, once for each time it stands in the file.
pub const TEXT: &str = "";

/// One setting of a section.
#[derive(Debug)]
pub struct Key {
    /// The word before the value; two words joined by one blank are one key (`default data-size`).
    pub name: &'static str,
    /// The shape of its value.
    pub kind: Kind,
    /// Whether it does anything.
    pub effect: Effect,
    /// One line for the reference; says the default.
    pub doc: &'static str,
}

impl Key {
    /// A setting that is honoured.
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, effect: Effect::Honoured, doc }
    }

    /// A setting that is accepted because VPP has it, and why it has no effect.
    pub const fn accepted(name: &'static str, kind: Kind, why: &'static str, doc: &'static str) -> Self {
        Self { name, kind, effect: Effect::Accepted(why), doc }
    }
}

/// What a setting changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The router obeys it.
    Honoured,
    /// Accepted so that a file written for VPP still starts; the text says why it changes nothing.
    Accepted(&'static str),
}

/// The shape of a value. Ranges include both ends.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// No value: the word itself switches something on.
    Flag,
    /// `on` or `off`.
    Switch,
    /// One word.
    Word,
    /// One word, or several in double quotes.
    Text,
    /// A path.
    Path,
    /// A whole number, decimal or `0x` hexadecimal.
    U64 {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// Bytes, with an optional `k`, `m`, `g` or `t` (powers of 1,024).
    Size {
        /// Smallest value in bytes.
        min: u64,
        /// Largest value in bytes.
        max: u64,
    },
    /// Seconds, with an optional fraction.
    Seconds {
        /// Shortest time.
        min: f64,
        /// Longest time.
        max: f64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A page size: `default`, `default-hugepage`, or a power of two such as `2M`.
    PageSize,
    /// One core that this machine has.
    Core,
    /// A list of cores that this machine has, such as `1,3-5`.
    CpuList,
    /// An IPv4 or IPv6 address.
    Ip,
    /// `{ ... }` with these keys.
    Block(&'static [Key]),
    /// A name, and `{ ... }` with these keys unless it is left out.
    Named(&'static [Key]),
    /// Words and blocks up to the next key of the section; nothing of it is looked at.
    Anything,
}

/// Where a word stands, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    /// Which of the texts read (a file, the command line).
    pub source: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Characters the word has.
    pub width: usize,
}

/// A page size that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageSize {
    /// The system's ordinary page.
    #[default]
    Default,
    /// The system's default huge page.
    DefaultHuge,
    /// Pages of this many bytes, a power of two.
    Bytes(u64),
}

/// A value that passed its check.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A flag that is there.
    Flag,
    /// `on` or `off`.
    Switch(bool),
    /// Of [`Kind::Word`], [`Kind::Text`] and [`Kind::Choice`].
    Text(String),
    /// A path as written.
    Path(PathBuf),
    /// A whole number, a core, or bytes.
    U64(u64),
    /// Seconds.
    Seconds(f64),
    /// A page size.
    PageSize(PageSize),
    /// Cores in ascending order, none twice.
    CpuList(Vec<u32>),
    /// An address.
    Ip(IpAddr),
    /// A block.
    Block(Settings),
    /// A name and its block, empty if it was left out.
    Named(String, Settings),
    /// Of [`Kind::Anything`].
    Anything,
}

/// One setting as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The declared key.
    pub key: &'static str,
    /// Its value.
    pub value: Value,
    /// Where the value stands (the key itself for a flag).
    pub at: At,
}

/// The settings of one section or block, in the order they were written.
///
/// Of a key given twice the last one counts, as in VPP; [`Settings::all`] sees every one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    list: Vec<Setting>,
}

impl Settings {
    /// Adds one at the end.
    pub fn push(&mut self, setting: Setting) {
        self.list.push(setting);
    }

    /// Adds those of a repeated stanza.
    pub fn extend(&mut self, more: Settings) {
        self.list.extend(more.list);
    }

    /// Every setting, in the order written.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.list.iter()
    }

    /// Every value of `key`, in the order written.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Setting> {
        self.list.iter().filter(move |s| s.key == key)
    }

    /// The value of `key` that counts.
    pub fn last(&self, key: &str) -> Option<&Setting> {
        self.list.iter().rev().find(|s| s.key == key)
    }

    /// Whether `key` is there at all.
    pub fn flag(&self, key: &str) -> bool {
        self.last(key).is_some()
    }

    /// The number, core or bytes under `key`.
    pub fn u64(&self, key: &str) -> Option<u64> {
        match self.last(key)?.value {
            Value::U64(n) => Some(n),
            _ => None,
        }
    }

    /// The seconds under `key`.
    pub fn seconds(&self, key: &str) -> Option<f64> {
        match self.last(key)?.value {
            Value::Seconds(s) => Some(s),
            _ => None,
        }
    }

    /// The `on` or `off` under `key`.
    pub fn switch(&self, key: &str) -> Option<bool> {
        match self.last(key)?.value {
            Value::Switch(on) => Some(on),
            _ => None,
        }
    }

    /// The word or text under `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.last(key)?.value {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }

    /// The path under `key`.
    pub fn path(&self, key: &str) -> Option<&Path> {
        match &self.last(key)?.value {
            Value::Path(p) => Some(p),
            _ => None,
        }
    }

    /// The page size under `key`.
    pub fn page_size(&self, key: &str) -> Option<PageSize> {
        match self.last(key)?.value {
            Value::PageSize(p) => Some(p),
            _ => None,
        }
    }

    /// The cores under `key`.
    pub fn cpu_list(&self, key: &str) -> Option<&[u32]> {
        match &self.last(key)?.value {
            Value::CpuList(list) => Some(list),
            _ => None,
        }
    }

    /// The address under `key`.
    pub fn ip(&self, key: &str) -> Option<IpAddr> {
        match self.last(key)?.value {
            Value::Ip(ip) => Some(ip),
            _ => None,
        }
    }

    /// The block under `key`.
    pub fn block(&self, key: &str) -> Option<&Settings> {
        match &self.last(key)?.value {
            Value::Block(settings) => Some(settings),
            _ => None,
        }
    }

    /// Every name under `key` with its block.
    pub fn named<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a str, &'a Settings)> {
        self.all(key).filter_map(|s| match &s.value {
            Value::Named(name, settings) => Some((name.as_str(), settings)),
            _ => None,
        })
    }
}
