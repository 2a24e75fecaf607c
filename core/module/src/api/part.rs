//! What a feature lists: its messages, as parts of VPP's API files.

use shoal_message::{Described, Message};

use super::handler::{self, Dump, Get, Handler, Request, Task};

/// Messages of one feature that VPP has in one file. Several features may each have a part of the same file.
#[derive(Debug)]
pub struct ApiPart {
    /// The file's name, without `.api.json`.
    pub file: &'static str,
    /// Where it lies.
    pub folder: Folder,
    /// The file's version, as VPP has it.
    pub version: &'static str,
    /// The messages.
    pub messages: &'static [ApiMessage],
}

/// Where clients look for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Folder {
    /// `core`.
    Core,
    /// `plugins`.
    Plugins,
}

impl Folder {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Folder::Core => "core",
            Folder::Plugins => "plugins",
        }
    }
}

/// A message, and what is done when one comes.
#[derive(Debug)]
pub struct ApiMessage {
    /// Its name and fields.
    pub described: Described,
    /// What is done; nothing for those that only go out.
    pub handler: Option<Handler>,
}

impl ApiMessage {
    /// A request that is answered at once.
    pub const fn request<M: Request>() -> Self {
        Self { described: Described::of::<M>(), handler: Some(handler::request::<M>) }
    }

    /// A request that is answered by any number of messages.
    pub const fn dump<M: Dump>() -> Self {
        Self { described: Described::of::<M>(), handler: Some(handler::dump::<M>) }
    }

    /// A request that is answered by some messages and a last one.
    pub const fn get<M: Get>() -> Self {
        Self { described: Described::of::<M>(), handler: Some(handler::get::<M>) }
    }

    /// A request that takes its time.
    pub const fn task<M: Task>() -> Self {
        Self { described: Described::of::<M>(), handler: Some(handler::task::<M>) }
    }

    /// A reply, details or an event. A reply that says no more than whether it was done needs not be listed.
    pub const fn sent<M: Message>() -> Self {
        Self { described: Described::of::<M>(), handler: None }
    }
}
