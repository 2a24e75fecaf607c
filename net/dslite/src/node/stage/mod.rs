//! Whole packets with ports, of sessions that there are, on a fused path: out of their tunnel, or into it. Routes lead all others to
//! the nodes, and packets that are too long for the way of their tunnel.

mod hosts;
mod internet;

use std::sync::Arc;

use shoal_graph::superpath::WithState;

use super::in2out::In2out;
use super::out2in::Out2in;

/// Sessions that stay in a processor's own cache.
const NEAR: usize = 1024;

/// The nodes' common cases, for chains.
pub struct DsliteStages {
    /// Out of tunnels.
    pub in2out: Arc<WithState<In2out<false>>>,
    /// Into tunnels.
    pub out2in: Arc<WithState<Out2in>>,
}
