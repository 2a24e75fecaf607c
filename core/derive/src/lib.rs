//! Derives for node declarations: where packets go ([`macro@NextNodes`]), why they are dropped
//! ([`macro@ErrorCounters`]) and what a trace says ([`macro@TraceLine`]); and for messages of the binary API
//! ([`macro@Message`]) and what they are made of ([`macro@Value`]).
#![forbid(unsafe_code)]

mod error_counters;
mod message;
mod next_nodes;
mod trace_line;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `shoal_graph::NextNodes` for an enum.
///
/// Unit variants carry `#[node("name")]`, the common one first. A variant that holds an `Edge` goes where that edge
/// leads.
#[proc_macro_derive(NextNodes, attributes(node))]
pub fn next_nodes(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    next_nodes::expand(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Implements `shoal_graph::ErrorCounters` for an enum of unit variants.
///
/// The doc line of a variant is what an operator reads and is mandatory; the counter's name is the variant's in snake
/// case, or `#[counter("name")]`; `#[at("node")]` shows it at another node; `#[severity(info)]` or `#[severity(warn)]` marks what is not a loss.
#[proc_macro_derive(ErrorCounters, attributes(counter, severity, at))]
pub fn error_counters(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    error_counters::expand(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Implements `Display` for a struct from `#[line("ttl {ttl}")]`; several `line`s are several lines.
#[proc_macro_derive(TraceLine, attributes(line))]
pub fn trace_line(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    trace_line::expand(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Implements `shoal_message::Value`: for a struct of fields with names, for a struct of one without
/// (`#[value(alias)]`, or `#[value(flags)]` with `#[entry("NAME", BIT)]` for each, or `open` where VPP calls flags an
/// enum), or for an enum whose variants have values and `#[entry("NAME")]`.
///
/// `#[value(name = "..")]` is its name where that is not the struct's in snake case, `width = u8` the size of an enum
/// that does not take 32 bits. A `Vec` names the `Count` before it: `#[counted_by(n_paths)]`.
#[proc_macro_derive(Value, attributes(value, entry, preset, counted_by))]
pub fn value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    message::expand_value(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Implements `shoal_message::Message` for a struct of fields with names.
///
/// `#[message(request)]`, `reply`, `indexed`, `event` or `bare` says what stands in front of them. A request is answered by a reply
/// that says whether it was done, unless it names others: `reply = TYPE`, `details = TYPE` for a dump, both for a stream
/// with an end; `events = TYPE` is what comes unasked afterwards. The doc line is mandatory: it is what the reference of
/// the API says.
#[proc_macro_derive(Message, attributes(message, preset, counted_by))]
pub fn message(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    message::expand_message(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}
