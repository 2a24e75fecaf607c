//! Chains of routed packets, from a family's input node to the output.

use std::rc::Rc;
use std::sync::Arc;

use shoal_abf::AbfNodes;
use shoal_bridge::BridgeNodes;
use shoal_graph::Graph;
use shoal_graph::superpath::{FlowStage, Forward, Link, Open, Stage};
use shoal_interface::{Interfaces, OUTPUT_ARC, Output};
use shoal_ip4::Ip4Nodes;
use shoal_ip6::Ip6Nodes;
use shoal_l2::L2Nodes;
use shoal_module::{Control, InitError};
use shoal_mss_clamp::MssNodes;
use shoal_nat44_ed::Nat44Stages;
use shoal_reassembly::SvStages;
use shoal_source_limit::SourceLimitStages;
use shoal_urpf::UrpfNodes;

/// What is part of this router.
pub(crate) struct Parts {
    graph: Option<Rc<Graph>>,
    interfaces: Option<Rc<Interfaces>>,
    ip4: Option<Rc<Ip4Nodes>>,
    ip6: Option<Rc<Ip6Nodes>>,
    urpf: Option<Rc<UrpfNodes>>,
    mss: Option<Rc<MssNodes>>,
    abf: Option<Rc<AbfNodes>>,
    limit: Option<Rc<SourceLimitStages>>,
    sv: Option<Rc<SvStages>>,
    nat44: Option<Rc<Nat44Stages>>,
    pub(crate) l2: Option<Rc<L2Nodes>>,
    pub(crate) bridge: Option<Rc<BridgeNodes>>,
}

impl Parts {
    pub(crate) fn of(control: &Control) -> Parts {
        Parts {
            graph: control.graph().ok(),
            interfaces: control.get().ok(),
            ip4: control.get().ok(),
            ip6: control.get().ok(),
            urpf: control.get().ok(),
            mss: control.get().ok(),
            abf: control.get().ok(),
            limit: control.get().ok(),
            sv: control.get().ok(),
            nat44: control.get().ok(),
            l2: control.get().ok(),
            bridge: control.get().ok(),
        }
    }

    pub(crate) fn output(&self) -> Result<Option<Output>, InitError> {
        let Some(graph) = &self.graph else { return Ok(None) };
        let Some(interfaces) = &self.interfaces else { return Ok(None) };
        Ok(Some(Output { arc: graph.arc(OUTPUT_ARC)?, interfaces: interfaces.table() }))
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

    /// IPv4 that NAT44-ED translates, without other features; `None` if that is no part of this router.
    pub(crate) fn ip4_translated(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(ip), Some(sv), Some(nat44)) = (&self.ip4, &self.sv, &self.nat44) else { return Ok(None) };
        let Some(output) = self.output()? else { return Ok(None) };
        let forward = Forward::new(Arc::clone(&ip.lookup), Arc::clone(&ip.rewrite), (), output);
        let both = (Arc::clone(&nat44.in2out), Arc::clone(&nat44.out2in));
        let features = Stage::new(Some(Arc::clone(&sv.ip4)), FlowStage::new(Some(both), forward));
        Ok(Some(Open::new(Arc::clone(&ip.input), features)))
    }

    /// IPv4 with features, in the order of their arcs. Of those that are no part of this router no stage is ever run.
    pub(crate) fn ip4_with_features(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(ip), Some(output)) = (&self.ip4, self.output()?) else { return Ok(None) };
        let urpf = self.urpf.as_ref().map(|nodes| &nodes.ip4);
        let mss = self.mss.as_ref().map(|nodes| &nodes.ip4);
        let abf = self.abf.as_ref().map(|nodes| Arc::clone(&nodes.ip4));
        let limit = self.limit.as_ref().map(|stages| Arc::clone(&stages.ip4));
        let out = Stage::new(
            urpf.map(|nodes| Arc::clone(&nodes.tx_loose)),
            Stage::new(
                urpf.map(|nodes| Arc::clone(&nodes.tx_strict)),
                Stage::new(mss.map(|nodes| Arc::clone(&nodes.tx)), ()),
            ),
        );
        let forward = Forward::new(Arc::clone(&ip.lookup), Arc::clone(&ip.rewrite), out, output);
        let nat44 =
            self.nat44.as_ref().map(|stages| (Arc::clone(&stages.in2out), Arc::clone(&stages.out2in)));
        let translated = FlowStage::new(nat44, forward);
        let checked = Stage::new(
            urpf.map(|nodes| Arc::clone(&nodes.rx_loose)),
            Stage::new(
                urpf.map(|nodes| Arc::clone(&nodes.rx_strict)),
                Stage::new(
                    mss.map(|nodes| Arc::clone(&nodes.rx)),
                    Stage::new(abf, Stage::new(limit, translated)),
                ),
            ),
        );
        let features = Stage::new(self.sv.as_ref().map(|stages| Arc::clone(&stages.ip4)), checked);
        Ok(Some(Open::new(Arc::clone(&ip.input), features)))
    }

    /// IPv6 with features, in the order of their arcs.
    pub(crate) fn ip6_with_features(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(ip), Some(output)) = (&self.ip6, self.output()?) else { return Ok(None) };
        let urpf = self.urpf.as_ref().map(|nodes| &nodes.ip6);
        let mss = self.mss.as_ref().map(|nodes| &nodes.ip6);
        let abf = self.abf.as_ref().map(|nodes| Arc::clone(&nodes.ip6));
        let limit = self.limit.as_ref().map(|stages| Arc::clone(&stages.ip6));
        let out = Stage::new(
            urpf.map(|nodes| Arc::clone(&nodes.tx_loose)),
            Stage::new(
                urpf.map(|nodes| Arc::clone(&nodes.tx_strict)),
                Stage::new(mss.map(|nodes| Arc::clone(&nodes.tx)), ()),
            ),
        );
        let forward = Forward::new(Arc::clone(&ip.lookup), Arc::clone(&ip.rewrite), out, output);
        let checked = Stage::new(
            urpf.map(|nodes| Arc::clone(&nodes.rx_loose)),
            Stage::new(
                urpf.map(|nodes| Arc::clone(&nodes.rx_strict)),
                Stage::new(
                    mss.map(|nodes| Arc::clone(&nodes.rx)),
                    Stage::new(abf, Stage::new(limit, forward)),
                ),
            ),
        );
        let features = Stage::new(self.sv.as_ref().map(|stages| Arc::clone(&stages.ip6)), checked);
        Ok(Some(Open::new(Arc::clone(&ip.input), features)))
    }
}
