//! Commands of interfaces: `show` and `set interface`, placement of queues, features, loopbacks.

mod collect;
pub mod column;
mod feature;
mod hardware;
mod loopback;
mod placement;
mod set;
mod show;
mod superpath;

use shoal_module::Control;
use shoal_module::cli::{ArgType, Command, check};

use crate::{InterfaceArg, Interfaces};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    show::SHOW_INTERFACE,
    hardware::SHOW_HARDWARE,
    set::STATE,
    set::MTU,
    set::MAC,
    set::PROMISCUOUS,
    set::NAME,
    set::RENUMBER,
    set::TAG,
    set::CLEAR_INTERFACES,
    set::CLEAR_HARDWARE,
    placement::SET_MODE,
    placement::SET_PLACEMENT,
    placement::SET_TX,
    placement::SET_QUEUES,
    placement::SHOW_PLACEMENT,
    feature::SET_FEATURE,
    collect::SET,
    loopback::CREATE,
    loopback::CREATE_OLD,
    loopback::DELETE,
    loopback::DELETE_OLD,
    superpath::SET,
    superpath::SHOW,
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[
    ArgType::live("interface", "an interface's name", check::<InterfaceArg>, interface_names),
    ArgType::new("thread-list", "numbers of threads, such as 0,2-3", check::<placement::ThreadList>),
    ArgType::live("feature-arc", "a feature arc", feature::check_arc, feature::arc_names),
    ArgType::live("feature", "a feature of an arc", feature::check_feature, feature::feature_names),
];

fn interface_names(control: &Control, _: &str) -> Vec<String> {
    let Ok(interfaces) = control.get::<Interfaces>() else { return Vec::new() };
    interfaces.indices().into_iter().filter_map(|i| interfaces.name(i).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn interface_names_complete() {
        let control = testing::router(|_| Ok(()));
        assert_eq!(interface_names(&control, ""), ["local0"]);
    }
}
