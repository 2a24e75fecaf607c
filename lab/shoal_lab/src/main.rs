//! Measures routers by the RFCs, and says how far to trust the figures.
#![forbid(unsafe_code)]
#![allow(dead_code)]

mod args;
mod cases;
mod doctor;
mod exit;
mod interrupt;
mod settings;
mod view;

fn main() {}
