//! Derives for node declarations: where packets go ([`macro@NextNodes`]), why they are dropped
//! ([`macro@ErrorCounters`]) and what a trace says ([`macro@TraceLine`]).
#![forbid(unsafe_code)]

mod error_counters;
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
/// case, or `#[counter("name")]`; `#[severity(info)]` or `#[severity(warn)]` marks what is not a loss.
#[proc_macro_derive(ErrorCounters, attributes(counter, severity))]
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
