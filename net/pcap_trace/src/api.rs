//! Messages of captures that VPP has in `interface.api`.

use std::rc::Rc;

use shoal_graph::FilterUse;
use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval, Text};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::{CaptureSettings, PcapTrace};

/// The messages.
pub static API: ApiPart = ApiPart {
    file: "interface",
    folder: Folder::Core,
    version: "3.2.4",
    messages: &[
        ApiMessage::request::<PcapSetFilterFunction>(),
        ApiMessage::request::<PcapTraceOn>(),
        ApiMessage::request::<PcapTraceOff>(),
    ],
};

/// Says by which function it is asked whether a packet is captured, when a capture has a filter.
#[derive(Message)]
#[message(request)]
pub struct PcapSetFilterFunction {
    /// Its name.
    pub filter_function_name: String,
}

/// Begins a capture.
#[derive(Message)]
#[message(request)]
#[allow(clippy::struct_excessive_bools)] // the message's fields
pub struct PcapTraceOn {
    /// Whether received packets are captured.
    pub capture_rx: bool,
    /// Whether packets on their way out are.
    pub capture_tx: bool,
    /// Whether dropped packets are.
    pub capture_drop: bool,
    /// Whether the filter function is asked.
    pub filter: bool,
    /// Memory is taken as packets come.
    pub preallocate_data: bool,
    /// Memory is always given back.
    pub free_data: bool,
    /// Most packets.
    #[preset(1000)]
    pub max_packets: u32,
    /// Most bytes of each.
    #[preset(512)]
    pub max_bytes_per_packet: u32,
    /// The only interface; 0 for all.
    pub sw_if_index: InterfaceIndex,
    /// Dropped packets with this reason only, as NODE.REASON.
    pub error: Text<128>,
    /// A name in /tmp.
    pub filename: Text<64>,
}

/// Ends a capture and writes its file.
#[derive(Message)]
#[message(request)]
pub struct PcapTraceOff {}

fn trace(call: &Call) -> Result<Rc<PcapTrace>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

impl Request for PcapSetFilterFunction {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let graph = call.control.graph().map_err(|_| Retval::UNSPECIFIED)?;
        let chosen = graph.filters().select(FilterUse::Pcap, &self.filter_function_name);
        chosen.map_err(|_| Retval::NO_SUCH_ENTRY)
    }
}

impl Request for PcapTraceOn {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let interface = SwIfIndex(self.sw_if_index.0);
        Ok(trace(call)?.start(CaptureSettings {
            rx: self.capture_rx,
            tx: self.capture_tx,
            drop: self.capture_drop,
            max: self.max_packets as usize,
            max_bytes: self.max_bytes_per_packet as usize,
            interface: Some(interface).filter(|index| *index != SwIfIndex(0)),
            file: text(self.filename.as_str()),
            filter: self.filter,
            reason: text(self.error.as_str()),
        })?)
    }
}

impl Request for PcapTraceOff {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        trace(call)?.stop()?;
        Ok(())
    }
}
