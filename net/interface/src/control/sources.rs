//! What modules say of interfaces beside what is known here.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;
use shoal_buffer::SwIfIndex;

use super::Interfaces;

/// A feature of frames that are switched, which is no node of an arc.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SwitchedFeature {
    /// VPP's name for it.
    pub name: &'static str,
    /// The node that runs it.
    pub node: &'static str,
}

type AddressSource = Rc<dyn Fn(SwIfIndex) -> Vec<String>>;
type FeatureSource = Rc<dyn Fn(SwIfIndex) -> Vec<SwitchedFeature>>;

/// The sources.
#[derive(Default)]
pub(super) struct Sources {
    addresses: RefCell<Vec<AddressSource>>,
    /// By the arc under whose name they are shown.
    features: RefCell<Vec<(&'static str, FeatureSource)>>,
}

impl Interfaces {
    /// Registers a source of interfaces' addresses, or where else they belong, for `show interface address`.
    pub fn add_address_source(&self, source: impl Fn(SwIfIndex) -> Vec<String> + 'static) {
        self.sources.addresses.borrow_mut().push(Rc::new(source));
    }

    /// What `show interface address` says of an interface.
    pub fn addresses(&self, interface: SwIfIndex) -> Vec<String> {
        let sources = self.sources.addresses.borrow().clone();
        sources.iter().flat_map(|source| source(interface)).collect()
    }

    /// Registers a source of features of an interface that are shown with those of an arc.
    pub fn add_feature_source(
        &self,
        arc: &'static str,
        source: impl Fn(SwIfIndex) -> Vec<SwitchedFeature> + 'static,
    ) {
        self.sources.features.borrow_mut().push((arc, Rc::new(source)));
    }

    /// These features.
    pub fn switched_features(&self, arc: &str, interface: SwIfIndex) -> Vec<SwitchedFeature> {
        let sources = self.sources.features.borrow().clone();
        let of_arc = sources.iter().filter(|(name, _)| *name == arc);
        of_arc.flat_map(|(_, source)| source(interface)).collect()
    }
}
