//! `fib_source_add`, `fib_source_dump`: who routes may be from.

use shoal_message::{Message, Retval, Text, Value};
use shoal_module::api::{Call, Dump, Request};

use super::retval;
use crate::{Fib, Source};

/// Who routes may be from.
#[derive(Value, Clone, Debug, PartialEq)]
pub struct FibSource {
    /// Of several sources of a route the one with the lowest number here decides.
    pub priority: u8,
    /// Its number in messages.
    pub id: u8,
    /// Its name, as `show ip fib` has it.
    pub name: Text<64>,
}

/// A client names a source of routes that it will say.
#[derive(Message)]
#[message(request, reply = FibSourceAddReply)]
pub struct FibSourceAdd {
    /// Its name and priority; its number is the router's to give.
    pub src: FibSource,
}

/// The number of the source.
#[derive(Message)]
#[message(reply)]
pub struct FibSourceAddReply {
    /// 0, or what was wrong.
    pub retval: i32,
    /// What `ip_route_add_del_v2` takes.
    pub id: u8,
}

/// Asks who routes may be from.
#[derive(Message)]
#[message(request, details = FibSourceDetails)]
pub struct FibSourceDump {}

/// A source of routes.
#[derive(Message)]
#[message(reply)]
pub struct FibSourceDetails {
    pub src: FibSource,
}

/// A source's number in messages, which is never 0.
pub(super) const fn number(source: Source) -> u8 {
    source as u8 + 1
}

/// The source of a number.
pub(super) fn source_of(number: u8) -> Option<Source> {
    Source::ALL.get(usize::from(number).checked_sub(1)?).copied()
}

impl Request for FibSourceAdd {
    fn handle(self, call: &Call) -> Result<FibSourceAddReply, Retval> {
        let fib = call.get::<Fib>().map_err(|_| Retval::UNSPECIFIED)?;
        let source = fib.add_source(self.src.name.as_str(), self.src.priority).map_err(|e| retval(&e))?;
        Ok(FibSourceAddReply { retval: 0, id: number(source) })
    }
}

impl Dump for FibSourceDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = FibSourceDetails> + 'static {
        let clients = call.get::<Fib>().map(|fib| fib.client_sources()).unwrap_or_default();
        let of_clients = Source::OF_CLIENTS.as_flattened();
        Source::ALL.into_iter().filter_map(move |source| {
            let id = number(source);
            let src = match clients.iter().find(|client| client.source == source) {
                Some(client) => {
                    FibSource { priority: client.priority, id, name: client.name.as_str().into() }
                }
                // No client has it.
                None if of_clients.contains(&source) => return None,
                None => FibSource { priority: source.priority(), id, name: source.name().into() },
            };
            Some(FibSourceDetails { src })
        })
    }
}
