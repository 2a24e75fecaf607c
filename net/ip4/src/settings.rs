//! The start-up section `ip`.

use std::collections::BTreeMap;

use shoal_ip::Unreachables;
use shoal_module::Control;
use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};

/// The section. Other words of VPP's are read and have no effect.
pub(crate) const SECTION: Section = Section {
    name: "ip",
    doc: "forwarding of both families",
    effect: Effect::Honoured,
    body: Body::Keys(&[
        Key::new("unreachables", Kind::Switch, "tell senders that there is no route for their packets"),
        Key::accepted(
            "heap-size",
            Kind::Size { min: 0, max: u64::MAX },
            "memory is taken from the system when it is needed",
            "the IPv4 table's heap",
        ),
    ]),
};

/// What the start-up file says.
pub(crate) fn configure(control: &Control) {
    let Ok(sections) = control.get::<BTreeMap<&'static str, Settings>>() else { return };
    if let Some(settings) = sections.get(SECTION.name) {
        Unreachables::of(control).send(settings.switch("unreachables").unwrap_or(false));
    }
}
