//! Messages: `pipe.api`.
#![allow(missing_docs, reason = "of fields whose names say it all; each message has its line")]

use std::rc::Rc;

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Request};

use crate::{PipeError, Pipes};

/// Messages of this crate.
pub static API: ApiPart = ApiPart {
    file: "pipe",
    folder: Folder::Core,
    version: "1.0.1",
    messages: &[
        ApiMessage::request::<PipeCreate>(),
        ApiMessage::sent::<PipeCreateReply>(),
        ApiMessage::request::<PipeDelete>(),
        ApiMessage::dump::<PipeDump>(),
        ApiMessage::sent::<PipeDetails>(),
    ],
};

impl From<PipeError> for Retval {
    fn from(error: PipeError) -> Self {
        match error {
            PipeError::Exists(_) | PipeError::Number(_) => Retval::INVALID_REGISTRATION,
            PipeError::NotPipe(_) => Retval::INVALID_SW_IF_INDEX,
            PipeError::Interface(error) => error.into(),
        }
    }
}

fn pipes(call: &Call) -> Result<Rc<Pipes>, Retval> {
    call.get().map_err(|_| Retval::UNSPECIFIED)
}

/// Creates a pipe.
#[derive(Message)]
#[message(request, reply = PipeCreateReply)]
pub struct PipeCreate {
    /// Whether it is to have the number that follows; else the first that is free.
    pub is_specified: bool,
    pub user_instance: u32,
}

/// The interfaces of a new pipe.
#[derive(Message)]
#[message(reply)]
pub struct PipeCreateReply {
    pub retval: i32,
    pub sw_if_index: InterfaceIndex,
    /// Its ends.
    pub pipe_sw_if_index: [InterfaceIndex; 2],
}

impl Request for PipeCreate {
    fn handle(self, call: &Call) -> Result<PipeCreateReply, Retval> {
        let pipe = pipes(call)?.create(self.is_specified.then_some(self.user_instance))?;
        Ok(PipeCreateReply {
            retval: 0,
            sw_if_index: InterfaceIndex(pipe.index.0),
            pipe_sw_if_index: pipe.ends.map(|end| InterfaceIndex(end.0)),
        })
    }
}

/// Deletes a pipe and its ends.
#[derive(Message)]
#[message(request)]
pub struct PipeDelete {
    pub sw_if_index: InterfaceIndex,
}

impl Request for PipeDelete {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        Ok(pipes(call)?.delete(SwIfIndex(self.sw_if_index.0))?)
    }
}

/// Asks for all pipes.
#[derive(Message)]
#[message(request, details = PipeDetails)]
pub struct PipeDump {}

/// A pipe.
#[derive(Message)]
#[message(reply)]
pub struct PipeDetails {
    pub sw_if_index: InterfaceIndex,
    /// Its ends.
    pub pipe_sw_if_index: [InterfaceIndex; 2],
    pub instance: u32,
}

impl Dump for PipeDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = PipeDetails> + 'static {
        let all = pipes(call).map(|pipes| pipes.list()).unwrap_or_default();
        all.into_iter().map(|pipe| PipeDetails {
            sw_if_index: InterfaceIndex(pipe.index.0),
            pipe_sw_if_index: pipe.ends.map(|end| InterfaceIndex(end.0)),
            instance: pipe.instance,
        })
    }
}
