//! `show_threads`.

use shoal_message::{Count, Message, Retval, Text, Value};
use shoal_module::api::{Call, Request};

use crate::commands::threads;

/// Asks which threads there are.
#[derive(Message)]
#[message(request, reply = ShowThreadsReply)]
pub struct ShowThreads {}

/// A thread.
#[derive(Value)]
pub struct ThreadData {
    /// 0 is the main thread.
    id: u32,
    name: Text<64>,
    /// `workers`, or nothing.
    r#type: Text<64>,
    /// The number by which the system knows it.
    pid: u32,
    /// The processor it runs on; all bits set if it may run on several.
    cpu_id: u32,
    core: u32,
    cpu_socket: u32,
}

/// The threads there are.
#[derive(Message)]
#[message(reply)]
pub struct ShowThreadsReply {
    retval: i32,
    count: Count<u32>,
    #[counted_by(count)]
    thread_data: Vec<ThreadData>,
}

impl Request for ShowThreads {
    fn handle(self, call: &Call) -> Result<ShowThreadsReply, Retval> {
        let graph = call.control.graph().map_err(|_| Retval::UNSPECIFIED)?;
        let none = u32::MAX;
        let thread = |t: threads::Thread| ThreadData {
            id: t.id as u32,
            name: t.name.as_str().into(),
            r#type: t.r#type.into(),
            pid: t.lwp as u32,
            cpu_id: t.lcore.unwrap_or(none),
            core: t.core.unwrap_or(none),
            cpu_socket: t.socket.unwrap_or(none),
        };
        let thread_data = threads::all(&graph).into_iter().map(thread).collect();
        Ok(ShowThreadsReply { retval: 0, count: Count::default(), thread_data })
    }
}
