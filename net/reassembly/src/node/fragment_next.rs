//! Ways out of nodes that both families have under names of their own.

use std::marker::PhantomData;

use shoal_graph::{Edge, NextNodes};

use crate::family::Family;

/// To the node that tells the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToIcmp<F>(PhantomData<F>);

impl<F> ToIcmp<F> {
    /// The way.
    pub const WAY: ToIcmp<F> = ToIcmp(PhantomData);
}

impl<F: Family> NextNodes for ToIcmp<F> {
    const NAMES: &'static [&'static str] = &[F::NODES.icmp_error];

    fn edge(self) -> Edge {
        Edge(1)
    }
}

/// Out of a feature: to the node that tells fragments what the first says, or on along the arc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentNext<F> {
    /// It is a fragment.
    Fragment(PhantomData<F>),
    /// It goes on.
    On(Edge),
}

impl<F> FragmentNext<F> {
    /// It is a fragment.
    pub const FRAGMENT: Self = FragmentNext::Fragment(PhantomData);
}

impl<F: Family> NextNodes for FragmentNext<F> {
    const NAMES: &'static [&'static str] = &[F::NODES.sv];

    #[inline(always)]
    fn edge(self) -> Edge {
        match self {
            FragmentNext::Fragment(_) => Edge(1),
            FragmentNext::On(edge) => edge,
        }
    }
}
