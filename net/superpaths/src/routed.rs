//! Chains of routed packets, from a family's input node to the output.

use std::rc::Rc;
use std::sync::Arc;

use shoal_abf::AbfNodes;
use shoal_graph::Graph;
use shoal_graph::superpath::{Forward, Link, Open, Stage};
use shoal_interface::{OUTPUT_ARC, Output};
use shoal_ip4::Ip4Nodes;
use shoal_ip6::Ip6Nodes;
use shoal_module::{Control, InitError};
use shoal_mss_clamp::MssNodes;
use shoal_urpf::UrpfNodes;

/// What is part of this router.
pub(crate) struct Parts {
    graph: Option<Rc<Graph>>,
    ip4: Option<Rc<Ip4Nodes>>,
    ip6: Option<Rc<Ip6Nodes>>,
    urpf: Option<Rc<UrpfNodes>>,
    mss: Option<Rc<MssNodes>>,
    abf: Option<Rc<AbfNodes>>,
}

impl Parts {
    pub(crate) fn of(control: &Control) -> Parts {
        Parts {
            graph: control.graph().ok(),
            ip4: control.get().ok(),
            ip6: control.get().ok(),
            urpf: control.get().ok(),
            mss: control.get().ok(),
            abf: control.get().ok(),
        }
    }

    fn output(&self) -> Result<Option<Output>, InitError> {
        let Some(graph) = &self.graph else { return Ok(None) };
        Ok(Some(Output { arc: graph.arc(OUTPUT_ARC)? }))
    }

    /// IPv4 without features.
    pub(crate) fn ip4(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(ip), Some(output)) = (&self.ip4, self.output()?) else { return Ok(None) };
        let forward = Forward::new(Arc::clone(&ip.lookup), Arc::clone(&ip.rewrite), (), output);
        Ok(Some(Open::new(Arc::clone(&ip.input), forward)))
    }

    /// IPv6 without features.
    pub(crate) fn ip6(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(ip), Some(output)) = (&self.ip6, self.output()?) else { return Ok(None) };
        let forward = Forward::new(Arc::clone(&ip.lookup), Arc::clone(&ip.rewrite), (), output);
        Ok(Some(Open::new(Arc::clone(&ip.input), forward)))
    }

    /// IPv4 with features, in the order of their arcs. Of those that are no part of this router no stage is ever run.
    pub(crate) fn ip4_with_features(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(ip), Some(output)) = (&self.ip4, self.output()?) else { return Ok(None) };
        let urpf = self.urpf.as_ref().map(|nodes| &nodes.ip4);
        let mss = self.mss.as_ref().map(|nodes| &nodes.ip4);
        let abf = self.abf.as_ref().map(|nodes| Arc::clone(&nodes.ip4));
        let out = Stage::new(
            urpf.map(|nodes| Arc::clone(&nodes.tx_loose)),
            Stage::new(
                urpf.map(|nodes| Arc::clone(&nodes.tx_strict)),
                Stage::new(mss.map(|nodes| Arc::clone(&nodes.tx)), ()),
            ),
        );
        let forward = Forward::new(Arc::clone(&ip.lookup), Arc::clone(&ip.rewrite), out, output);
        let features = Stage::new(
            urpf.map(|nodes| Arc::clone(&nodes.rx_loose)),
            Stage::new(
                urpf.map(|nodes| Arc::clone(&nodes.rx_strict)),
                Stage::new(mss.map(|nodes| Arc::clone(&nodes.rx)), Stage::new(abf, forward)),
            ),
        );
        Ok(Some(Open::new(Arc::clone(&ip.input), features)))
    }

    /// IPv6 with features, in the order of their arcs.
    pub(crate) fn ip6_with_features(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(ip), Some(output)) = (&self.ip6, self.output()?) else { return Ok(None) };
        let urpf = self.urpf.as_ref().map(|nodes| &nodes.ip6);
        let mss = self.mss.as_ref().map(|nodes| &nodes.ip6);
        let abf = self.abf.as_ref().map(|nodes| Arc::clone(&nodes.ip6));
        let out = Stage::new(
            urpf.map(|nodes| Arc::clone(&nodes.tx_loose)),
            Stage::new(
                urpf.map(|nodes| Arc::clone(&nodes.tx_strict)),
                Stage::new(mss.map(|nodes| Arc::clone(&nodes.tx)), ()),
            ),
        );
        let forward = Forward::new(Arc::clone(&ip.lookup), Arc::clone(&ip.rewrite), out, output);
        let features = Stage::new(
            urpf.map(|nodes| Arc::clone(&nodes.rx_loose)),
            Stage::new(
                urpf.map(|nodes| Arc::clone(&nodes.rx_strict)),
                Stage::new(mss.map(|nodes| Arc::clone(&nodes.rx)), Stage::new(abf, forward)),
            ),
        );
        Ok(Some(Open::new(Arc::clone(&ip.input), features)))
    }
}
