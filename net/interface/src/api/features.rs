//! Messages of features that VPP has in `feature.api`.

use shoal_graph::GraphError;
use shoal_message::{InterfaceIndex, Message, Retval, Text};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use super::interfaces;
use crate::{InterfaceError, SwIfIndex};

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "feature",
    folder: Folder::Core,
    version: "1.0.2",
    messages: &[
        ApiMessage::request::<FeatureEnableDisable>(),
        ApiMessage::request::<FeatureIsEnabled>(),
        ApiMessage::sent::<FeatureIsEnabledReply>(),
    ],
};

/// Enables a feature of an arc on an interface, or disables it.
#[derive(Message)]
#[message(request)]
pub struct FeatureEnableDisable {
    /// The interface; `local0` on arcs without interfaces.
    pub sw_if_index: InterfaceIndex,
    /// Whether it is enabled.
    pub enable: bool,
    /// The arc: `ip4-unicast`.
    pub arc_name: Text<64>,
    /// The feature's node.
    pub feature_name: Text<64>,
}

impl Request for FeatureEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (arc, feature) = (self.arc_name.as_str(), self.feature_name.as_str());
        let index = SwIfIndex(self.sw_if_index.0);
        interfaces(call)?.set_feature(arc, feature, index, self.enable).map_err(|e| match e {
            InterfaceError::Graph(GraphError::OfAll(_)) => Retval::INVALID_SW_IF_INDEX,
            // VPP says the same of an arc and of a feature that is not there.
            InterfaceError::Graph(_) => Retval::INVALID_VALUE,
            e => e.into(),
        })
    }
}

/// Asks whether a feature of an arc is enabled on an interface.
#[derive(Message)]
#[message(request, reply = FeatureIsEnabledReply)]
pub struct FeatureIsEnabled {
    /// The arc.
    pub arc_name: Text<64>,
    /// The feature's node.
    pub feature_name: Text<64>,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// Whether a feature is enabled.
#[derive(Message)]
#[message(indexed)]
pub struct FeatureIsEnabledReply {
    /// 0, or why there is no answer.
    pub retval: i32,
    /// Whether it is.
    pub is_enabled: bool,
}

impl Request for FeatureIsEnabled {
    fn handle(self, call: &Call) -> Result<FeatureIsEnabledReply, Retval> {
        let (interfaces, index) = (interfaces(call)?, SwIfIndex(self.sw_if_index.0));
        interfaces.data(index)?;
        let arcs = interfaces.graph().features(Some(index));
        let arc = arcs.iter().find(|(arc, _)| *arc == self.arc_name.as_str());
        let (_, features) = arc.ok_or(Retval::INVALID_VALUE)?;
        let feature = features.iter().find(|(name, _)| name == self.feature_name.as_str());
        let (_, is_enabled) = feature.ok_or(Retval::INVALID_VALUE_2)?;
        Ok(FeatureIsEnabledReply { retval: 0, is_enabled: *is_enabled })
    }
}
