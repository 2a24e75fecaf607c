//! Messages of the server itself: which modules are there, and which messages they know. Their numbers are fixed, and
//! so is their order.

use shoal_message::{Count, Message, Retval, Text, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request, Task};
use shoal_module::cli::Pace;

use crate::table::Table;

/// Number of the message that a client sends first.
pub const SOCKCLNT_CREATE: u16 = 15;
/// Number of its answer.
pub const SOCKCLNT_CREATE_REPLY: u16 = 16;
/// Number of the message with which a client leaves.
pub const SOCKCLNT_DELETE: u16 = 17;
/// Number of its answer.
pub const SOCKCLNT_DELETE_REPLY: u16 = 18;

/// The messages, in the order of their numbers: from 1.
pub static API: ApiPart = ApiPart {
    file: "memclnt",
    folder: Folder::Core,
    version: "2.1.0",
    messages: &[
        ApiMessage::sent::<MemclntCreate>(),
        ApiMessage::sent::<MemclntCreateReply>(),
        ApiMessage::sent::<MemclntDelete>(),
        ApiMessage::sent::<MemclntDeleteReply>(),
        ApiMessage::sent::<RxThreadExit>(),
        ApiMessage::sent::<MemclntRxThreadSuspend>(),
        ApiMessage::sent::<MemclntReadTimeout>(),
        ApiMessage::request::<RpcCall>(),
        ApiMessage::request::<GetFirstMsgId>(),
        ApiMessage::sent::<GetFirstMsgIdReply>(),
        ApiMessage::request::<ApiVersions>(),
        ApiMessage::sent::<ApiVersionsReply>(),
        ApiMessage::sent::<TracePluginMsgIds>(),
        ApiMessage::sent::<SockclntCreate>(),
        ApiMessage::sent::<SockclntCreateReply>(),
        ApiMessage::sent::<SockclntDelete>(),
        ApiMessage::sent::<SockclntDeleteReply>(),
        ApiMessage::request::<SockInitShm>(),
        ApiMessage::request::<MemclntKeepalive>(),
        ApiMessage::request::<ControlPing>(),
        ApiMessage::sent::<ControlPingReply>(),
        ApiMessage::sent::<MemclntCreateV2>(),
        ApiMessage::sent::<MemclntCreateV2Reply>(),
        ApiMessage::task::<GetApiJson>(),
        ApiMessage::sent::<GetApiJsonReply>(),
    ],
};

/// Joins through shared memory, which this router does not offer: it is not answered.
#[derive(Message)]
#[message(bare, reply = MemclntCreateReply)]
struct MemclntCreate {
    context: u32,
    ctx_quota: i32,
    input_queue: u64,
    name: Text<64>,
    api_versions: [u32; 8],
}

/// Would answer `memclnt_create`.
#[derive(Message)]
#[message(bare)]
struct MemclntCreateReply {
    context: u32,
    response: i32,
    handle: u64,
    index: u32,
    message_table: u64,
}

/// Leaves through shared memory: it is not answered.
#[derive(Message)]
#[message(bare, reply = MemclntDeleteReply)]
struct MemclntDelete {
    index: u32,
    handle: u64,
    do_cleanup: bool,
}

/// Would answer `memclnt_delete`.
#[derive(Message)]
#[message(bare)]
struct MemclntDeleteReply {
    response: i32,
    handle: u64,
}

/// Ends the thread of a client that reads from shared memory: it has no meaning on a socket.
#[derive(Message)]
#[message(bare, unanswered)]
struct RxThreadExit {
    dummy: u8,
}

/// Stops the thread of a client that reads from shared memory: it has no meaning on a socket.
#[derive(Message)]
#[message(bare, unanswered)]
struct MemclntRxThreadSuspend {
    dummy: u8,
}

/// Wakes the thread of a client that reads from shared memory: it has no meaning on a socket.
#[derive(Message)]
#[message(bare, unanswered)]
struct MemclntReadTimeout {
    dummy: u8,
}

/// Calls a function by its address: always refused.
#[derive(Message)]
#[message(request)]
struct RpcCall {
    function: u64,
    multicast: u8,
    need_barrier_sync: u8,
    send_reply: u8,
    data_len: Count<u32>,
    #[counted_by(data_len)]
    data: Vec<u8>,
}

impl Request for RpcCall {
    fn handle(self, _: &Call) -> Result<(), Retval> {
        Err(Retval::UNIMPLEMENTED)
    }
}

/// Asks where a plugin's messages begin, by the name and checksum of its file as compiled into a client. Numbers within
/// a file are not those of VPP here, so no name is known: clients look messages up in the table they get at first.
#[derive(Message)]
#[message(request, reply = GetFirstMsgIdReply)]
struct GetFirstMsgId {
    name: Text<64>,
}

/// The number of a plugin's first message.
#[derive(Message)]
#[message(reply)]
struct GetFirstMsgIdReply {
    retval: i32,
    first_msg_id: u16,
}

impl Request for GetFirstMsgId {
    fn handle(self, _: &Call) -> Result<GetFirstMsgIdReply, Retval> {
        Ok(GetFirstMsgIdReply { retval: Retval::INVALID_VALUE.0, first_msg_id: u16::MAX })
    }
}

/// Asks for the versions of plugins.
#[derive(Message)]
#[message(request, reply = ApiVersionsReply)]
struct ApiVersions {}

/// The version of a plugin's messages.
#[derive(Value)]
struct ModuleVersion {
    major: u32,
    minor: u32,
    patch: u32,
    name: Text<64>,
}

/// The versions of all files of messages.
#[derive(Message)]
#[message(reply)]
struct ApiVersionsReply {
    retval: i32,
    count: Count<u32>,
    #[counted_by(count)]
    api_versions: Vec<ModuleVersion>,
}

impl Request for ApiVersions {
    fn handle(self, call: &Call) -> Result<ApiVersionsReply, Retval> {
        let table = call.get::<Table>().map_err(|_| Retval::UNSPECIFIED)?;
        let version = |(_, file): &(Folder, shoal_message::Module)| {
            let mut numbers = file.version.split('.').map(|n| n.parse().unwrap_or(0));
            let mut next = || numbers.next().unwrap_or(0);
            let name = Text::from(format!("{}.api", file.name).as_str());
            ModuleVersion { major: next(), minor: next(), patch: next(), name }
        };
        let api_versions = table.files().iter().map(version).collect();
        Ok(ApiVersionsReply { retval: 0, count: Count::default(), api_versions })
    }
}

/// Tells where a plugin's messages begin and end, in a trace of VPP's: it is not sent here.
#[derive(Message)]
#[message(request, unanswered)]
struct TracePluginMsgIds {
    plugin_name: Text<128>,
    first_msg_id: u16,
    last_msg_id: u16,
}

/// Says who the client is. It is the first message of every client.
#[derive(Message)]
#[message(bare, reply = SockclntCreateReply)]
pub struct SockclntCreate {
    /// Comes back in the answer.
    pub context: u32,
    /// What the client calls itself.
    pub name: Text<64>,
}

/// A message and its number.
#[derive(Value)]
pub struct MessageTableEntry {
    /// The number.
    pub index: u16,
    /// The name, `_` and the checksum.
    pub name: Text<64>,
}

/// The client's index, and all messages there are.
#[derive(Message)]
#[message(bare)]
pub struct SockclntCreateReply {
    /// Nothing.
    pub client_index: u32,
    /// As in the request.
    pub context: u32,
    /// 0.
    pub response: i32,
    /// What the client puts into its requests.
    pub index: u32,
    /// How many messages there are.
    pub count: Count<u16>,
    /// The messages.
    #[counted_by(count)]
    pub message_table: Vec<MessageTableEntry>,
}

/// Says that the client leaves. The connection is closed after the answer.
#[derive(Message)]
#[message(request, reply = SockclntDeleteReply)]
pub struct SockclntDelete {
    /// Its index.
    pub index: u32,
}

/// 1 if the index was the client's.
#[derive(Message)]
#[message(reply)]
pub struct SockclntDeleteReply {
    /// 1, or -1.
    pub response: i32,
}

/// Asks for a segment of shared memory: always refused, there is the socket.
#[derive(Message)]
#[message(request)]
struct SockInitShm {
    requested_size: u32,
    nitems: Count<u8>,
    #[counted_by(nitems)]
    configs: Vec<u64>,
}

impl Request for SockInitShm {
    fn handle(self, _: &Call) -> Result<(), Retval> {
        Err(Retval::UNSUPPORTED)
    }
}

/// Asks whether anybody is there.
#[derive(Message)]
#[message(request)]
struct MemclntKeepalive {}

impl Request for MemclntKeepalive {
    fn handle(self, _: &Call) -> Result<(), Retval> {
        Ok(())
    }
}

/// Asks whether all requests before it are done.
#[derive(Message)]
#[message(request, reply = ControlPingReply)]
struct ControlPing {}

/// They are.
#[derive(Message)]
#[message(reply)]
struct ControlPingReply {
    retval: i32,
    client_index: u32,
    vpe_pid: u32,
}

impl Request for ControlPing {
    fn handle(self, call: &Call) -> Result<ControlPingReply, Retval> {
        Ok(ControlPingReply { retval: 0, client_index: call.client.0, vpe_pid: std::process::id() })
    }
}

/// Joins through shared memory, which this router does not offer: it is not answered.
#[derive(Message)]
#[message(bare, name = "memclnt_create_v2", reply = MemclntCreateV2Reply)]
struct MemclntCreateV2 {
    context: u32,
    ctx_quota: i32,
    input_queue: u64,
    name: Text<64>,
    api_versions: [u32; 8],
    #[preset("true")]
    keepalive: bool,
}

/// Would answer `memclnt_create_v2`.
#[derive(Message)]
#[message(bare, name = "memclnt_create_v2_reply")]
struct MemclntCreateV2Reply {
    context: u32,
    response: i32,
    handle: u64,
    index: u32,
    message_table: u64,
}

/// Asks for the description of all messages.
#[derive(Message)]
#[message(request, reply = GetApiJsonReply)]
struct GetApiJson {}

/// All files that clients would load, as one JSON array.
#[derive(Message)]
#[message(reply)]
struct GetApiJsonReply {
    retval: i32,
    json: String,
}

impl Task for GetApiJson {
    async fn run(self, call: Call) -> Result<GetApiJsonReply, Retval> {
        let table = call.get::<Table>().map_err(|_| Retval::UNSPECIFIED)?;
        let pace = Pace::default();
        let mut json = String::from("[");
        for (at, (_, file)) in table.files().iter().enumerate() {
            if at > 0 {
                json.push(',');
            }
            json.push_str(&file.json().to_string());
            pace.give_way().await;
        }
        json.push(']');
        Ok(GetApiJsonReply { retval: 0, json })
    }
}
