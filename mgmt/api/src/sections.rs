//! Start-up settings: `api-trace { ... }`. Where the socket is, `socksvr` says.

use std::collections::BTreeMap;

use shoal_module::Control;
use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};

use crate::trace::{self, Trace};

const NO_FILE: &str = "`api trace save` stores the table with the messages";

/// The section.
pub const API_TRACE: Section = Section {
    name: "api-trace",
    doc: "the last messages of the binary API are kept",
    effect: Effect::Honoured,
    body: Body::Keys(&[
        Key::new("on", Kind::Flag, "keep them from the start"),
        Key::new("enable", Kind::Flag, "keep them from the start"),
        Key::new("nitems", Kind::U64 { min: 1, max: 1 << 24 }, "how many; default 16384, and 64 MiB at most"),
        Key::accepted("save-api-table", Kind::Word, NO_FILE, "a file for the table of messages"),
    ]),
};

/// The trace as the start-up file wants it.
pub fn trace(control: &Control) -> Trace {
    let sections = control.get::<BTreeMap<&'static str, Settings>>().ok();
    let settings = sections.as_ref().and_then(|all| all.get(API_TRACE.name));
    let on = settings.is_some_and(|s| s.flag("on") || s.flag("enable"));
    let most = settings.and_then(|s| s.u64("nitems")).map_or(trace::USUAL, |n| n as usize);
    Trace::new(on, most)
}
