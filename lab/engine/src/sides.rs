//! The one of two that belongs to a side.

use shoal_lab_plan::Side;

/// Of a left and a right one, that of `side`.
#[inline]
pub(crate) fn at_mut<T>(both: &mut [T; 2], side: Side) -> &mut T {
    let [left, right] = both;
    match side {
        Side::Left => left,
        Side::Right => right,
    }
}

/// Of a left and a right one, that of `side`.
#[inline]
pub(crate) fn at<T>(both: &[T; 2], side: Side) -> &T {
    let [left, right] = both;
    match side {
        Side::Left => left,
        Side::Right => right,
    }
}
