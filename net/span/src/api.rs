//! Messages: `span.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::rc::Rc;

use shoal_interface::{InterfaceError, SwIfIndex};
use shoal_message::{InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::{Level, Mirror, MirrorDirections, Span, SpanError};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "span",
    folder: Folder::Core,
    version: "2.0.0",
    messages: &[
        ApiMessage::request::<SwInterfaceSpanEnableDisable>(),
        ApiMessage::dump::<SwInterfaceSpanDump>(),
        ApiMessage::sent::<SwInterfaceSpanDetails>(),
    ],
};

impl From<SpanError> for Retval {
    fn from(error: SpanError) -> Self {
        match error {
            SpanError::Itself(_)
            | SpanError::NoDestination
            | SpanError::SubInterface(_)
            | SpanError::SendsNothing(_)
            | SpanError::Interface(InterfaceError::NoIndex(_)) => Retval::INVALID_INTERFACE,
            SpanError::L2(error) => error.into(),
            SpanError::Interface(error) => error.into(),
        }
    }
}

fn span(call: &Call) -> Result<Rc<Span>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// Which frames are copied.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(open)]
#[entry("SPAN_STATE_API_DISABLED", 0)]
#[entry("SPAN_STATE_API_RX", 1)]
#[entry("SPAN_STATE_API_TX", 2)]
#[entry("SPAN_STATE_API_RX_TX", 3)]
pub struct SpanState(pub u32);

impl From<MirrorDirections> for SpanState {
    fn from(ways: MirrorDirections) -> Self {
        SpanState(u32::from(ways.rx) | u32::from(ways.tx) << 1)
    }
}

impl SpanState {
    fn ways(self) -> Option<MirrorDirections> {
        (self.0 <= 3).then_some(MirrorDirections { rx: self.0 & 1 != 0, tx: self.0 & 2 != 0 })
    }
}

fn level(is_l2: bool) -> Level {
    if is_l2 { Level::L2 } else { Level::Device }
}

/// Mirrors an interface to another one, or no longer.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSpanEnableDisable {
    pub sw_if_index_from: InterfaceIndex,
    /// All bits set with state 0: to no interface any more.
    pub sw_if_index_to: InterfaceIndex,
    pub state: SpanState,
    /// Where a bridge or a cross-connect gets and sends frames; else at the device.
    pub is_l2: bool,
}

impl Request for SwInterfaceSpanEnableDisable {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (span, level) = (span(call)?, level(self.is_l2));
        let ways = self.state.ways().ok_or(Retval::UNIMPLEMENTED)?;
        let (from, to) = (SwIfIndex(self.sw_if_index_from.0), SwIfIndex(self.sw_if_index_to.0));
        let all = self.sw_if_index_to == InterfaceIndex::NONE && ways == MirrorDirections::NONE;
        Ok(if all { span.clear(level, from) } else { span.set(level, from, to, ways) }?)
    }
}

/// Asks for the mirrors of a level.
#[derive(Message)]
#[message(request, details = SwInterfaceSpanDetails)]
pub struct SwInterfaceSpanDump {
    pub is_l2: bool,
}

/// A mirror.
#[derive(Message)]
#[message(reply)]
pub struct SwInterfaceSpanDetails {
    pub sw_if_index_from: InterfaceIndex,
    pub sw_if_index_to: InterfaceIndex,
    pub state: SpanState,
    pub is_l2: bool,
}

impl Dump for SwInterfaceSpanDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwInterfaceSpanDetails> + 'static {
        let all = span(call).map(|span| span.list()).unwrap_or_default();
        all.into_iter().filter_map(move |Mirror { source, destination, device, l2 }| {
            let ways = if self.is_l2 { l2 } else { device };
            (ways != MirrorDirections::NONE).then(|| SwInterfaceSpanDetails {
                sw_if_index_from: InterfaceIndex(source.0),
                sw_if_index_to: InterfaceIndex(destination.0),
                state: ways.into(),
                is_l2: self.is_l2,
            })
        })
    }
}
