//! A variable on its way from value to value.

use shoal_lab_plan::{Order, Variable};

use crate::error::FrameError;
use crate::permutation::Permutation;
use crate::random::{join, uniform};

/// A variable at some frame of its stream.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    path: Path,
    min: u64,
    max: u64,
    /// Values from here on (downwards: to here) are followed by the range's other end.
    last: u64,
    first: u64,
    step: u64,
    list: Vec<u64>,
    seed: u64,
    position: u64,
    value: u64,
}

#[derive(Clone, Debug)]
enum Path {
    Rising,
    Falling,
    Random,
    Permutation(Permutation),
}

impl Cursor {
    /// A cursor at frame 0 of `variable`; random values depend on both its own seed and `seed`.
    ///
    /// # Errors
    ///
    /// An empty range, a beginning outside of it, a step that does not move.
    pub(crate) fn new(variable: &Variable, seed: u64) -> Result<Cursor, FrameError> {
        let Variable { order, list, .. } = variable;
        let ordered = matches!(order, Order::Rising | Order::Falling);
        let (min, max, first, step) = if let Some(max) = (list.len() as u64).checked_sub(1) {
            (0, max, if *order == Order::Falling { max } else { 0 }, 1)
        } else {
            (variable.min, variable.max, variable.first, variable.step)
        };
        if min > max {
            return Err(FrameError::Range { min, max, first, nearest: min });
        }
        if ordered && !(min..=max).contains(&first) {
            return Err(FrameError::Range { min, max, first, nearest: first.clamp(min, max) });
        }
        if ordered && step == 0 && min != max {
            return Err(FrameError::Step { min, max, step, nearest: 1 });
        }
        let step = step.max(1);
        let seed = join(seed, variable.seed);
        let (path, last) = match order {
            Order::Rising => (Path::Rising, max.saturating_sub(step - 1)),
            Order::Falling => (Path::Falling, min.saturating_add(step - 1)),
            Order::Random => (Path::Random, 0),
            Order::Permutation => (Path::Permutation(Permutation::new(max - min, seed)), 0),
        };
        let mut cursor =
            Cursor { path, min, max, last, first, step, list: list.clone(), seed, position: 0, value: first };
        cursor.skip_to(0);
        Ok(cursor)
    }

    /// This frame's value; the cursor goes on to the next frame.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let value = match &self.path {
            Path::Rising => {
                let value = self.value;
                self.value = if value >= self.last { self.min } else { value + self.step };
                value
            }
            Path::Falling => {
                let value = self.value;
                self.value = if value <= self.last { self.max } else { value - self.step };
                value
            }
            Path::Random => {
                let value = self.min + uniform(self.seed, self.position, self.max - self.min);
                self.position = self.position.wrapping_add(1);
                value
            }
            Path::Permutation(permutation) => {
                let value = self.min + permutation.at(self.position);
                self.position = if self.position == self.max - self.min { 0 } else { self.position + 1 };
                value
            }
        };
        if self.list.is_empty() { value } else { self.list.get(value as usize).copied().unwrap_or(0) }
    }

    /// Goes to `frame`, forwards or back.
    pub(crate) fn skip_to(&mut self, frame: u64) {
        match &self.path {
            Path::Rising => {
                let ahead = self.steps(self.max - self.first, self.max - self.min, frame);
                self.value = match ahead {
                    Ok(steps) => self.first + steps * self.step,
                    Err(steps) => self.min + steps * self.step,
                };
            }
            Path::Falling => {
                let ahead = self.steps(self.first - self.min, self.max - self.min, frame);
                self.value = match ahead {
                    Ok(steps) => self.first - steps * self.step,
                    Err(steps) => self.max - steps * self.step,
                };
            }
            Path::Random => self.position = frame,
            Path::Permutation(_) => {
                self.position = (self.max - self.min).checked_add(1).map_or(frame, |count| frame % count);
            }
        }
    }

    /// Steps from the first value, if `frame` is in the first round, which goes over `first_room`; steps from the range's end
    /// in a later round, each over `room`.
    fn steps(&self, first_room: u64, room: u64, frame: u64) -> Result<u64, u64> {
        let first_round = first_room / self.step;
        if frame <= first_round {
            return Ok(frame);
        }
        let since = frame - first_round - 1;
        Err((room / self.step).checked_add(1).map_or(since, |count| since % count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variable(order: Order, min: u64, max: u64, first: u64, step: u64) -> Variable {
        Variable { order, min, max, first, step, list: Vec::new(), seed: 9 }
    }

    fn values(variable: &Variable, count: usize) -> Vec<u64> {
        let mut cursor = Cursor::new(variable, 1).unwrap();
        (0..count).map(|_| cursor.next()).collect()
    }

    #[test]
    fn rising_goes_from_the_end_to_the_start() {
        assert_eq!(values(&variable(Order::Rising, 3, 6, 5, 1), 7), [5, 6, 3, 4, 5, 6, 3]);
    }

    #[test]
    fn falling_goes_from_the_start_to_the_end() {
        assert_eq!(values(&variable(Order::Falling, 3, 6, 4, 1), 7), [4, 3, 6, 5, 4, 3, 6]);
    }

    #[test]
    fn a_step_that_would_leave_the_range_wraps_around() {
        assert_eq!(values(&variable(Order::Rising, 0, 10, 1, 4), 7), [1, 5, 9, 0, 4, 8, 0]);
        assert_eq!(values(&variable(Order::Falling, 0, 10, 9, 4), 7), [9, 5, 1, 10, 6, 2, 10]);
    }

    #[test]
    fn a_list_is_taken_in_order_from_its_first_or_backwards_from_its_last() {
        let mut listed = variable(Order::Rising, 0, 0, 0, 1);
        listed.list = vec![70, 7, 700];
        assert_eq!(values(&listed, 4), [70, 7, 700, 70]);
        listed.order = Order::Falling;
        assert_eq!(values(&listed, 4), [700, 7, 70, 700]);
        listed.order = Order::Random;
        assert!(values(&listed, 100).iter().all(|v| listed.list.contains(v)));
    }

    #[test]
    fn the_ends_of_the_numbers_do_not_overflow() {
        let most = u64::MAX;
        assert_eq!(values(&variable(Order::Rising, 0, most, most - 1, 1), 3), [most - 1, most, 0]);
        assert_eq!(values(&variable(Order::Falling, 0, most, 1, 1), 3), [1, 0, most]);
        assert_eq!(values(&variable(Order::Rising, 5, 5, 5, 0), 3), [5, 5, 5]);
    }

    #[test]
    fn ranges_and_steps_that_cannot_be_are_refused_with_the_nearest() {
        let refused = |v| Cursor::new(&v, 1).unwrap_err().to_string();
        assert!(refused(variable(Order::Rising, 6, 3, 6, 1)).contains("6 would do"));
        assert!(refused(variable(Order::Falling, 3, 6, 9, 1)).contains("6 would do"));
        assert!(refused(variable(Order::Rising, 3, 6, 3, 0)).contains("nearest step is 1"));
    }

    fn orders() -> impl Strategy<Value = Order> {
        prop_oneof![Just(Order::Rising), Just(Order::Falling), Just(Order::Random), Just(Order::Permutation)]
    }

    proptest! {
        #[test]
        fn skipping_to_a_frame_is_the_same_as_walking(
            order in orders(), min in 0_u64..50, room in 0_u64..60, from in 0_u64..60, step in 1_u64..70, frame in 0_u64..500,
        ) {
            let v = variable(order, min, min + room, min + from.min(room), step);
            let walked = values(&v, frame as usize + 1)[frame as usize];
            let mut cursor = Cursor::new(&v, 1).unwrap();
            cursor.skip_to(frame);
            prop_assert_eq!(cursor.next(), walked);
        }

        #[test]
        fn values_stay_in_their_range(order in orders(), min: u64, room: u64, from: u64, step in 1_u64..) {
            let max = min.saturating_add(room);
            let v = variable(order, min, max, min.saturating_add(from).min(max), step);
            for value in values(&v, 200) {
                prop_assert!((min..=max).contains(&value));
            }
        }
    }
}
