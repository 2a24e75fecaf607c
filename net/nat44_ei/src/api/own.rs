//! Messages that VPP does not have. The names begin with `shoal_`.

use shoal_message::{Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use super::nat;
use crate::config::AtUserLimit;

/// Messages of Shoal alone.
pub static API: ApiPart = ApiPart {
    file: "shoal_nat44_ei",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<ShoalNat44EiUserLimitSet>(),
        ApiMessage::request::<ShoalNat44EiUserLimitGet>(),
        ApiMessage::sent::<ShoalNat44EiUserLimitGetReply>(),
    ],
};

/// Says what becomes of packets that would begin sessions of hosts that have as many as they may have.
#[derive(Message)]
#[message(request)]
pub struct ShoalNat44EiUserLimitSet {
    /// They are dropped; otherwise the host's session that was not used for longest ends.
    pub drop: bool,
}

impl Request for ShoalNat44EiUserLimitSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        nat(call)?.set_at_user_limit(if self.drop { AtUserLimit::Drop } else { AtUserLimit::Recycle });
        Ok(())
    }
}

/// Asks what becomes of them.
#[derive(Message)]
#[message(request, reply = ShoalNat44EiUserLimitGetReply)]
pub struct ShoalNat44EiUserLimitGet {}

/// What becomes of them.
#[derive(Message)]
#[message(reply)]
pub struct ShoalNat44EiUserLimitGetReply {
    pub retval: i32,
    /// They are dropped.
    pub drop: bool,
}

impl Request for ShoalNat44EiUserLimitGet {
    fn handle(self, call: &Call) -> Result<ShoalNat44EiUserLimitGetReply, Retval> {
        let drop = nat(call)?.at_user_limit() == AtUserLimit::Drop;
        Ok(ShoalNat44EiUserLimitGetReply { retval: 0, drop })
    }
}
