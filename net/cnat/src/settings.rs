//! The start-up section `cnat { ... }`.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use shoal_module::Control;
use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};

use crate::Cnat;
use crate::config::Limits;
use crate::sessions::LONGEST;

const AGE: Kind = Kind::U64 { min: 1, max: LONGEST as u64 };
const SESSIONS: Kind = Kind::U64 { min: 1, max: 1 << 26 };
const BUCKETS: Kind = Kind::U64 { min: 0, max: u32::MAX as u64 };
const MEMORY: Kind = Kind::Size { min: 0, max: u64::MAX };
const GROWS: &str = "tables grow as sessions and translations come";

/// The section.
pub const SECTION: Section = Section {
    name: "cnat",
    doc: "Cloud NAT",
    effect: Effect::Honoured,
    body: Body::Keys(&[
        Key::new(
            "session-cleanup-timeout",
            Kind::Seconds { min: 0.01, max: 3600.0 },
            "seconds between two publications of the number of sessions; default 1. Sessions end by timers, not by scans",
        ),
        Key::new("session-max-age", AGE, "seconds a session may be without a packet; default 30"),
        Key::new("tcp-max-age", AGE, "the same of an open TCP connection; default 3600"),
        Key::new(
            "session-max-port-retries",
            Kind::U64 { min: 1, max: 10_000 },
            "ports tried for a connection before it is refused; default 100",
        ),
        Key::new("maglev-len", Kind::U64 { min: 1, max: 1 << 20 }, "places of Maglev's tables; default 1009"),
        Key::new("session-max", SESSIONS, "sessions of each worker; default 262144"),
        Key::new("session-max-per-vrf", SESSIONS, "sessions of one forwarding table and worker; default any"),
        Key::new(
            "session-log2-pool-size",
            Kind::U64 { min: 0, max: 26 },
            "binary logarithm of the sessions of each worker; `session-max` stands above it",
        ),
        Key::accepted("scanner", Kind::Switch, "sessions end by timers, not by scans", "end sessions"),
        Key::accepted("session-db-buckets", BUCKETS, GROWS, "buckets of the table of sessions"),
        Key::accepted("session-db-memory", MEMORY, GROWS, "memory of the table of sessions"),
        Key::accepted("translation-db-buckets", BUCKETS, GROWS, "buckets of the table of translations"),
        Key::accepted("translation-db-memory", MEMORY, GROWS, "memory of the table of translations"),
        Key::accepted("client-db-buckets", BUCKETS, GROWS, "buckets of the table of clients"),
        Key::accepted("client-db-memory", MEMORY, GROWS, "memory of the table of clients"),
        Key::accepted("snat-db-buckets", BUCKETS, GROWS, "buckets of the table of excluded prefixes"),
        Key::accepted("snat-db-memory", MEMORY, GROWS, "memory of the table of excluded prefixes"),
        Key::accepted("snat-if-map-len", BUCKETS, GROWS, "interfaces of the policy's lists"),
    ]),
};

/// Reads it; how often the number of sessions is published.
pub(crate) fn read(control: &Control, cnat: &Rc<Cnat>) -> Duration {
    let usual = Duration::from_secs(1);
    let Ok(sections) = control.get::<BTreeMap<&'static str, Settings>>() else { return usual };
    let Some(settings) = sections.get(SECTION.name) else { return usual };
    let number = |key: &str| settings.u64(key).and_then(|value| u32::try_from(value).ok());
    let usual_limits = Limits::default();
    let by_log2 = number("session-log2-pool-size").map(|log2| 1 << log2.min(26));
    cnat.set_limits(Limits {
        sessions: number("session-max").or(by_log2).unwrap_or(usual_limits.sessions),
        sessions_of_table: number("session-max-per-vrf").unwrap_or(usual_limits.sessions_of_table),
        age: number("session-max-age").unwrap_or(usual_limits.age),
        tcp_age: number("tcp-max-age").unwrap_or(usual_limits.tcp_age),
        closing_age: usual_limits.closing_age,
        retries: number("session-max-port-retries").unwrap_or(usual_limits.retries),
        maglev_len: number("maglev-len").unwrap_or(usual_limits.maglev_len),
    });
    settings.seconds("session-cleanup-timeout").map_or(usual, Duration::from_secs_f64)
}
