//! Messages of the runtime: lines for the command line, nodes, threads, the version, time.

mod bpf;
mod line;
mod nodes;
mod threads;
mod trace;
mod version;

pub use bpf::BPF;
pub use nodes::GRAPH;
pub(crate) use nodes::NodeFlag;
pub use trace::TRACEDUMP;

use shoal_module::api::{ApiMessage, ApiPart, Folder};

/// Messages that VPP has in `vlib.api`.
pub static VLIB: ApiPart = ApiPart {
    file: "vlib",
    folder: Folder::Core,
    version: "1.0.0",
    messages: &[
        ApiMessage::request::<line::Cli>(),
        ApiMessage::sent::<line::CliReply>(),
        ApiMessage::task::<line::CliInband>(),
        ApiMessage::sent::<line::CliInbandReply>(),
        ApiMessage::request::<nodes::GetNodeIndex>(),
        ApiMessage::sent::<nodes::GetNodeIndexReply>(),
        ApiMessage::request::<nodes::AddNodeNext>(),
        ApiMessage::sent::<nodes::AddNodeNextReply>(),
        ApiMessage::request::<threads::ShowThreads>(),
        ApiMessage::sent::<threads::ShowThreadsReply>(),
        ApiMessage::request::<nodes::GetNextIndex>(),
        ApiMessage::sent::<nodes::GetNextIndexReply>(),
        ApiMessage::request::<version::GetF64EndianValue>(),
        ApiMessage::sent::<version::GetF64EndianValueReply>(),
        ApiMessage::request::<version::GetF64IncrementByOne>(),
        ApiMessage::sent::<version::GetF64IncrementByOneReply>(),
    ],
};

/// Messages that VPP has in `vpe.api`.
pub static VPE: ApiPart = ApiPart {
    file: "vpe",
    folder: Folder::Core,
    version: "1.7.0",
    messages: &[
        ApiMessage::request::<version::ShowVersion>(),
        ApiMessage::sent::<version::ShowVersionReply>(),
        ApiMessage::request::<version::ShowVpeSystemTime>(),
        ApiMessage::sent::<version::ShowVpeSystemTimeReply>(),
    ],
};
