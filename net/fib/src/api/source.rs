//! `fib_source_dump`: who routes may be from.

use shoal_message::{Message, Text, Value};
use shoal_module::api::{Call, Dump};

use crate::Source;

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

impl Dump for FibSourceDump {
    fn dump(self, _: &Call) -> impl Iterator<Item = FibSourceDetails> + 'static {
        Source::ALL.into_iter().map(|source| {
            let id = number(source);
            FibSourceDetails { src: FibSource { priority: id, id, name: source.name().into() } }
        })
    }
}
