//! Chains of routed packets, from a family's input node to the output.

use std::rc::Rc;
use std::sync::Arc;

use shoal_abf::AbfNodes;
use shoal_bridge::BridgeNodes;
use shoal_cnat::CnatStages;
use shoal_dslite::DsliteStages;
use shoal_graph::Graph;
use shoal_graph::superpath::{
    Cross, CrossOptional, Directions, FlowOptional, FlowStage, Forward, Link, Open, Optional, Stage,
};
use shoal_interface::{Interfaces, OUTPUT_ARC, Output};
use shoal_ip4::node::rewrite::Ip4Rewrite;
use shoal_ip4::{Ip4Lookup, Ip4Nodes};
use shoal_ip6::Ip6Nodes;
use shoal_ip6::node::lookup::Ip6Lookup;
use shoal_ip6::node::rewrite::Ip6Rewrite;
use shoal_l2::L2Nodes;
use shoal_map::MapStages;
use shoal_module::{Control, InitError};
use shoal_mss_clamp::MssNodes;
use shoal_nat44_ed::Nat44Stages;
use shoal_nat44_ed::node::fast as ed;
use shoal_nat44_ei::Nat44EiStages;
use shoal_nat44_ei::node::fast as ei;
use shoal_nat64::Nat64Stages;
use shoal_reassembly::ReassemblyStages;
use shoal_source_limit::SourceLimitStages;
use shoal_urpf::UrpfNodes;

/// The end of a chain of IPv4 without features.
type Ip4Forward = Forward<Ip4Lookup, Ip4Rewrite, (), Output>;
/// The same of IPv6.
type Ip6Forward = Forward<Ip6Lookup, Ip6Rewrite, (), Output>;

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
    sv: Option<Rc<ReassemblyStages>>,
    ed: Option<Rc<Nat44Stages>>,
    ei: Option<Rc<Nat44EiStages>>,
    cnat: Option<Rc<CnatStages>>,
    nat64: Option<Rc<Nat64Stages>>,
    map: Option<Rc<MapStages>>,
    dslite: Option<Rc<DsliteStages>>,
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
            ed: control.get().ok(),
            ei: control.get().ok(),
            cnat: control.get().ok(),
            nat64: control.get().ok(),
            map: control.get().ok(),
            dslite: control.get().ok(),
            l2: control.get().ok(),
            bridge: control.get().ok(),
        }
    }

    pub(crate) fn output(&self) -> Result<Option<Output>, InitError> {
        let Some(graph) = &self.graph else { return Ok(None) };
        let Some(interfaces) = &self.interfaces else { return Ok(None) };
        Ok(Some(Output { arc: graph.arc(OUTPUT_ARC)?, interfaces: interfaces.table() }))
    }

    /// Makes the ends of chains of both families, without features.
    fn outputs(&self) -> Result<Option<(impl Fn() -> Ip4Forward, impl Fn() -> Ip6Forward)>, InitError> {
        let (Some(ip4), Some(ip6), Some(output)) = (&self.ip4, &self.ip6, self.output()?) else {
            return Ok(None);
        };
        let output6 = output.clone();
        let out4 =
            move || Forward::new(Arc::clone(&ip4.lookup), Arc::clone(&ip4.rewrite), (), output.clone());
        let out6 =
            move || Forward::new(Arc::clone(&ip6.lookup), Arc::clone(&ip6.rewrite), (), output6.clone());
        Ok(Some((out4, out6)))
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

    /// Both directions of NAT44-ED.
    pub(crate) fn ed(&self) -> Option<Directions<ed::Fast<{ ed::IN2OUT }>, ed::Fast<{ ed::OUT2IN }>>> {
        self.ed.as_ref().map(|stages| (Arc::clone(&stages.in2out), Arc::clone(&stages.out2in)))
    }

    /// Both directions of NAT44-EI.
    pub(crate) fn ei(&self) -> Option<Directions<ei::Fast<{ ei::IN2OUT }>, ei::Fast<{ ei::OUT2IN }>>> {
        self.ei.as_ref().map(|stages| (Arc::clone(&stages.in2out), Arc::clone(&stages.out2in)))
    }

    /// IPv4 that one kind of NAT translates, without other features; `None` if that is no part of this router.
    pub(crate) fn ip4_translated<A, B>(
        &self,
        nat: Option<Directions<A, B>>,
    ) -> Result<Option<impl Link + use<A, B>>, InitError>
    where
        A: FlowOptional,
        B: FlowOptional<Feature = A::Feature, Query = A::Query>,
    {
        let (Some(ip), Some(sv), Some(nat)) = (&self.ip4, &self.sv, nat) else { return Ok(None) };
        let Some(output) = self.output()? else { return Ok(None) };
        let forward = Forward::new(Arc::clone(&ip.lookup), Arc::clone(&ip.rewrite), (), output);
        let features = Stage::new(Some(Arc::clone(&sv.ip4)), FlowStage::new(Some(nat), forward));
        Ok(Some(Open::new(Arc::clone(&ip.input), features)))
    }

    /// IPv4 with cloud NAT, where packets come in and where they go out, without other features; `None` if that is no part of this router.
    pub(crate) fn ip4_cnat(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(ip), Some(sv), Some(cnat)) = (&self.ip4, &self.sv, &self.cnat) else { return Ok(None) };
        let Some(output) = self.output()? else { return Ok(None) };
        let out =
            Stage::new(Some(Arc::clone(&sv.ip4_output)), Stage::new(Some(Arc::clone(&cnat.output4)), ()));
        let forward = Forward::new(Arc::clone(&ip.lookup), Arc::clone(&ip.rewrite), out, output);
        let translated = FlowStage::one(Arc::clone(&cnat.input4), forward);
        Ok(Some(Open::new(Arc::clone(&ip.input), Stage::new(Some(Arc::clone(&sv.ip4)), translated))))
    }

    /// IPv6 with cloud NAT.
    pub(crate) fn ip6_cnat(&self) -> Result<Option<impl Link + use<>>, InitError> {
        let (Some(ip), Some(sv), Some(cnat)) = (&self.ip6, &self.sv, &self.cnat) else { return Ok(None) };
        let Some(output) = self.output()? else { return Ok(None) };
        let out =
            Stage::new(Some(Arc::clone(&sv.ip6_output)), Stage::new(Some(Arc::clone(&cnat.output6)), ()));
        let forward = Forward::new(Arc::clone(&ip.lookup), Arc::clone(&ip.rewrite), out, output);
        let translated = FlowStage::one(Arc::clone(&cnat.input6), forward);
        Ok(Some(Open::new(Arc::clone(&ip.input), Stage::new(Some(Arc::clone(&sv.ip6)), translated))))
    }

    /// Both families with NAT64, by which packets of the one become packets of the other.
    pub(crate) fn nat64(&self) -> Result<Option<(impl Link + use<>, impl Link + use<>)>, InitError> {
        let Some(nat) = &self.nat64 else { return Ok(None) };
        self.crossed((&nat.out2in, &nat.in2out), |stages| &stages.ip6)
    }

    /// The same with MAP-T.
    pub(crate) fn map_t(&self) -> Result<Option<(impl Link + use<>, impl Link + use<>)>, InitError> {
        let Some(map) = &self.map else { return Ok(None) };
        self.crossed((&map.translate4, &map.translate6), |stages| &stages.ip6)
    }

    /// The same with MAP-E.
    pub(crate) fn map_e(&self) -> Result<Option<(impl Link + use<>, impl Link + use<>)>, InitError> {
        let Some(map) = &self.map else { return Ok(None) };
        self.crossed((&map.encapsulate, &map.decapsulate), |stages| &stages.ip6_full)
    }

    /// Both families with DS-Lite, whose nodes are at the end of routes.
    pub(crate) fn dslite(&self) -> Result<Option<(impl Link + use<>, impl Link + use<>)>, InitError> {
        let (Some(ip4), Some(ip6), Some(dslite)) = (&self.ip4, &self.ip6, &self.dslite) else {
            return Ok(None);
        };
        let Some((out4, out6)) = self.outputs()? else { return Ok(None) };
        let from4 = Cross::by_route(Arc::clone(&dslite.out2in), out4(), out6());
        let from6 = Cross::by_route(Arc::clone(&dslite.in2out), out6(), out4());
        Ok(Some((Open::new(Arc::clone(&ip4.input), from4), Open::new(Arc::clone(&ip6.input), from6))))
    }

    /// Both families with features that make packets of the other one, and with `before` of reassembly in front of that of IPv6.
    fn crossed<A, B, C>(
        &self,
        (from4, from6): (&Arc<A>, &Arc<B>),
        before: fn(&ReassemblyStages) -> &Arc<C>,
    ) -> Result<Option<(impl Link + use<A, B, C>, impl Link + use<A, B, C>)>, InitError>
    where
        A: CrossOptional<Destination = u128>,
        B: CrossOptional<Destination = u32>,
        C: Optional,
    {
        let (Some(ip4), Some(ip6), Some(stages)) = (&self.ip4, &self.ip6, &self.sv) else { return Ok(None) };
        let Some((out4, out6)) = self.outputs()? else { return Ok(None) };
        let from4 = Cross::new(Arc::clone(from4), out4(), out6());
        let from6 = Cross::new(Arc::clone(from6), out6(), out4());
        let from4 = Open::new(Arc::clone(&ip4.input), Stage::new(Some(Arc::clone(&stages.ip4)), from4));
        let from6 = Open::new(Arc::clone(&ip6.input), Stage::new(Some(Arc::clone(before(stages))), from6));
        Ok(Some((from4, from6)))
    }

    /// IPv4 with features, in the order of their arcs, one kind of NAT among them. Of those that are no part of this router no stage is
    /// ever run.
    pub(crate) fn ip4_with_features<A, B>(
        &self,
        nat: Option<Directions<A, B>>,
    ) -> Result<Option<impl Link + use<A, B>>, InitError>
    where
        A: FlowOptional,
        B: FlowOptional<Feature = A::Feature, Query = A::Query>,
    {
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
        let translated = FlowStage::new(nat, forward);
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
