//! The common case of `ip6-full-reassembly-feature`: a packet that is no fragment passes.

use std::marker::PhantomData;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_graph::superpath::{Optional, Pass};
use shoal_graph::{Counts, Cx};
use shoal_infra::Guard;

use super::full_error::Error;
use crate::family::Family;

/// Full reassembly as a stage of a chain; its node sees to fragments.
pub struct FullFeature<F>(PhantomData<F>);

impl<F> Default for FullFeature<F> {
    fn default() -> Self {
        FullFeature(PhantomData)
    }
}

impl<F: Family> Counts for FullFeature<F> {
    type Error = Error;
}

impl<F: Family> Optional for FullFeature<F> {
    const NAME: &'static str = F::NODES.feature;
    type Facts<'g> = ();

    fn facts(&self, _: SwIfIndex, _: Guard<'_>) {}

    #[inline(always)]
    fn pass(&self, (): (), pkt: &mut Packet<'_>, _: &Cx<'_, Self>) -> Pass {
        if F::is_fragment(pkt) { Pass::Leave } else { Pass::On }
    }
}
