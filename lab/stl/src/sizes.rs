//! Frames of changing length (`STLVmTrimPktSize`): a stream for each length, dealt out in turn.
//!
//! With n lengths, stream i sends frames i, i + n, i + 2n of the whole at an nth of its rate. So what is on the wire is
//! the same, frame by frame, as long as the lengths go round after few frames. Where they do not, or are random, evenly
//! spread ones stand for them.

use crate::program::Program;
use crate::sequence::Sequence;

/// Lengths that one stream may be dealt out to.
const MOST: u64 = 32;
/// Lengths that stand for more.
const STANDING_FOR: u64 = 16;

/// The lengths, without FCS, in the order in which they are sent; and whether they stand for others.
pub(crate) fn lengths(program: &Program, length: usize) -> Result<(Vec<u64>, bool), String> {
    let Some(trim) = &program.trim else { return Ok((vec![length as u64], false)) };
    let (least, most) = bounds(&trim.values);
    if most > length as u64 {
        return Err(format!("it is to be cut to {most} bytes, but has only {length} without FCS"));
    }
    if least < 14 {
        return Err(format!("it is to be cut to {least} bytes; Ethernet's header alone has 14"));
    }
    match trim.values.period() {
        Some(period) if period <= MOST => Ok((trim.values.head(period), false)),
        _ => {
            let parts = STANDING_FOR - 1;
            let mut spread: Vec<_> = (0..=parts).map(|i| least + (most - least) * i / parts).collect();
            spread.dedup();
            Ok((spread, true))
        }
    }
}

fn bounds(values: &Sequence) -> (u64, u64) {
    match values {
        Sequence::Range { min, step, count, .. } => (*min, min + (count - 1) as u64 * step),
        Sequence::Random { min, max, .. } => (*min, *max),
        Sequence::List(list) | Sequence::RandomOf { values: list, .. } => {
            (list.iter().copied().min().unwrap_or(0), list.iter().copied().max().unwrap_or(0))
        }
    }
}
