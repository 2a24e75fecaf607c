//! The start-up sections `l2fib` and `l2learn`.

use std::collections::BTreeMap;

use shoal_module::Control;
use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};

use crate::LEARN_LIMIT;

/// Bytes of a bucket of the MAC table.
const BUCKET: u64 = 64;
/// Default size of the MAC table: room for four million stations.
const USUAL: u64 = 128 << 20;

/// The sections. Other words of VPP's are read and have no effect.
pub(crate) const SECTIONS: [Section; 2] = [
    Section {
        name: "l2fib",
        doc: "the MAC table of all bridge domains",
        effect: Effect::Honoured,
        body: Body::Keys(&[
            Key::new(
                "table-size",
                Kind::Size { min: 1 << 16, max: 1 << 36 },
                "how large it can grow, rounded up to a power of two; 32 bytes a station",
            ),
            Key::accepted(
                "num-buckets",
                Kind::U64 { min: 1, max: 1 << 32 },
                "there are as many as fit into table-size",
                "how many buckets it has",
            ),
        ]),
    },
    Section {
        name: "l2learn",
        doc: "what bridge domains learn",
        effect: Effect::Honoured,
        body: Body::Keys(&[Key::new(
            "limit",
            Kind::U64 { min: 0, max: LEARN_LIMIT as u64 },
            "how many stations may be learned of all bridge domains together",
        )]),
    },
];

/// What the start-up file says.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// Buckets of the MAC table.
    pub buckets: usize,
    /// Stations that may be learned.
    pub limit: u32,
}

impl Sizes {
    pub(crate) fn of(control: &Control) -> Sizes {
        let sections = control.get::<BTreeMap<&'static str, Settings>>().ok();
        let said = |section: &str, key: &str| sections.as_ref()?.get(section)?.u64(key);
        let size = said("l2fib", "table-size").unwrap_or(USUAL);
        let limit = said("l2learn", "limit").and_then(|limit| u32::try_from(limit).ok());
        Sizes { buckets: (size / BUCKET) as usize, limit: limit.unwrap_or(LEARN_LIMIT) }
    }
}

#[cfg(test)]
mod tests {
    use shoal_module::config::{At, Setting, Value};

    use super::*;

    #[test]
    fn the_start_up_file_says_how_large_the_table_is_and_how_many_are_learned() {
        let control = Control::new();
        let Sizes { buckets, limit } = Sizes::of(&control);
        assert_eq!((buckets, limit), (1 << 21, LEARN_LIMIT));
        let of = |key: &'static str, n: u64| {
            let mut settings = Settings::default();
            let at = At { source: 0, line: 1, column: 1, width: 1 };
            settings.push(Setting { key, value: Value::U64(n), at });
            settings
        };
        control.put(BTreeMap::from([("l2fib", of("table-size", 1 << 20)), ("l2learn", of("limit", 7))]));
        let Sizes { buckets, limit } = Sizes::of(&control);
        assert_eq!((buckets, limit), (1 << 14, 7));
    }
}
