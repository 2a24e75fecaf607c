//! A router with two TAPs.
#![allow(dead_code)]

use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_tap::{CreateTap, Taps};
use shoal_testkit::netns;
pub use shoal_testkit::netns::*;

/// Whether tests that need namespaces can run; says why not.
pub fn can_run(test: &str) -> bool {
    netns::can_run(test, &["/dev/net/tun"])
}

/// A router that knows TAPs.
pub fn start(ns: &Namespace) -> Crossing {
    Crossing::start(ns, &shoal_tap::MODULE)
}

pub fn all_taps(inside: &Inside) -> Rc<Taps> {
    inside.control.get().unwrap()
}

/// Two TAPs, up, connected with each other.
pub fn connect(inside: &Inside, create: [CreateTap; 2]) -> [SwIfIndex; 2] {
    let made = create.map(|create| all_taps(inside).create(&create).unwrap());
    inside.join(made);
    for index in made {
        inside.interfaces.set_admin(index, true).unwrap();
    }
    made
}
