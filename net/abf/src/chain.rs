//! What packets read: the rules of each interface in order of priority.

use std::sync::Arc;

use shoal_adj::AdjIndex;
use shoal_buffer::SwIfIndex;
use shoal_infra::{Guard, Published};
use shoal_rule::{Address, Matcher};

/// A policy on an interface.
#[derive(Clone, Copy, Debug)]
pub struct Entry<A> {
    /// Which packets it is for.
    pub rule: Matcher<A>,
    /// Where they go.
    pub adj: AdjIndex,
    /// The policy's counter.
    pub counter: u32,
    /// The policy's number.
    pub policy: u32,
}

/// The policies of one interface, the one to be asked first in front.
pub type Chain<A> = Arc<[Entry<A>]>;

/// The policies of all interfaces, by index. Clones are the same.
#[derive(Clone)]
pub struct Chains<A: Address>(Arc<Published<Vec<Option<Chain<A>>>>>);

impl<A: Address> Chains<A> {
    pub(crate) fn new() -> Self {
        Chains(Arc::new(Published::new(Vec::new())))
    }

    /// The policies of packets received on an interface.
    #[inline(always)]
    pub(crate) fn of<'g>(&'g self, rx: SwIfIndex, guard: Guard<'g>) -> Option<&'g [Entry<A>]> {
        self.0.load(guard).get(rx.0 as usize)?.as_deref()
    }

    /// Gives interfaces other chains, all at once.
    pub(crate) fn set(&self, new: impl IntoIterator<Item = (SwIfIndex, Option<Chain<A>>)>) {
        let mut all = Vec::clone(&self.0.get());
        for (interface, chain) in new {
            let at = interface.0 as usize;
            if at >= all.len() && chain.is_some() {
                all.resize(at + 1, None);
            }
            if let Some(slot) = all.get_mut(at) {
                *slot = chain;
            }
        }
        self.0.replace(all);
    }
}
