//! A router with two AF_XDP interfaces.
#![allow(dead_code)]

pub mod hosts;

use std::rc::Rc;

use shoal_af_xdp::{CreateXdp, XdpInterfaces};
use shoal_interface::SwIfIndex;
use shoal_testkit::netns;
pub use shoal_testkit::netns::*;

/// Whether tests that need namespaces can run; says why not.
pub fn can_run(test: &str) -> bool {
    netns::can_run(test, &[])
}

/// A router that knows AF_XDP interfaces.
pub fn start(ns: &Namespace) -> Crossing {
    Crossing::start(ns, &shoal_af_xdp::MODULE)
}

pub fn xdps(inside: &Inside) -> Rc<XdpInterfaces> {
    inside.control.get().unwrap()
}

/// Two interfaces made like this, up, connected with each other.
pub fn connect(inside: &Inside, names: [&str; 2], like: &CreateXdp) -> [SwIfIndex; 2] {
    let create = |name: &str| CreateXdp { host_if: name.into(), ..like.clone() };
    let made = names.map(|name| xdps(inside).create(&create(name)).unwrap());
    inside.join(made);
    for index in made {
        inside.interfaces.set_admin(index, true).unwrap();
    }
    made
}
