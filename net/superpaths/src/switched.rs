//! Chains of switched frames.

use std::sync::Arc;

use shoal_graph::superpath::{Chained, Direct, FlowLookup, Link};
use shoal_l2::{BridgedInput, BridgedOutput};
use shoal_module::InitError;

use crate::routed::Parts;

impl Parts {
    /// A cross-connect.
    pub(crate) fn xconnect(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(l2), Some(output)) = (&self.l2, self.output()?) else { return Ok(None) };
        let out = Direct(Arc::clone(&l2.output), output);
        Ok(Some(Chained(Arc::clone(&l2.input), Chained(Arc::clone(&l2.rewrite), out))))
    }

    /// A bridge, for stations that are known.
    pub(crate) fn bridge(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(l2), Some(bridge), Some(output)) = (&self.l2, &self.bridge, self.output()?) else {
            return Ok(None);
        };
        let out = Direct(Arc::new(BridgedOutput(Arc::clone(&l2.output))), output);
        let table = FlowLookup(Arc::clone(&bridge.learn), FlowLookup(Arc::clone(&bridge.forward), out));
        Ok(Some(Chained(Arc::new(BridgedInput(Arc::clone(&l2.input))), table)))
    }
}
