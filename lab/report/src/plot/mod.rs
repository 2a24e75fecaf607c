//! Plots as inline SVG: bars with whiskers, and lines.
//!
//! A plot is an object with data, drawn by one function into text. Colours are CSS classes (`c0` to `c7`), so that light,
//! dark and print have their own; what a colour tells is told by a dash pattern, a mark or a label too.

mod bars;
mod lines;
mod scale;

pub use bars::{Bar, BarGroup, Bars};
pub use lines::{Lines, Series};
pub use scale::{Axis, Scale};

/// Classes of colour that there are.
pub const COLOURS: usize = 8;
