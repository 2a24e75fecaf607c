//! Which names and numbers are taken: found at once, however many interfaces there are.

use std::collections::HashMap;

use shoal_buffer::{MAX_INTERFACES, SwIfIndex};
use shoal_infra::Bitmap;

use crate::loopback::MAX_INSTANCES;

/// Names and numbers of all interfaces.
#[derive(Default)]
pub(super) struct Names {
    by_name: HashMap<String, SwIfIndex>,
    indices: Bitmap,
    /// Numbers `N` of names `loopN`, whatever is called so or was made so.
    loopbacks: Bitmap,
    /// How often each of them is taken: one may be called as another was made.
    uses: HashMap<u32, u8>,
}

/// The number of a loopback's name.
fn instance(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("loop")?;
    let number: u32 = digits.parse().ok()?;
    // `loop07` and `loop+7` are names of other interfaces.
    (number < MAX_INSTANCES && number.to_string() == digits).then_some(number)
}

impl Names {
    pub(super) fn find(&self, name: &str) -> Option<SwIfIndex> {
        self.by_name.get(name).copied()
    }

    /// The lowest number that no interface has.
    pub(super) fn free_index(&self) -> Option<SwIfIndex> {
        self.indices.first_clear().filter(|free| *free < MAX_INTERFACES as u32).map(SwIfIndex)
    }

    /// The lowest number of a loopback that does not exist.
    pub(super) fn free_loopback(&self) -> Option<u32> {
        self.loopbacks.first_clear().filter(|free| *free < MAX_INSTANCES)
    }

    pub(super) fn insert(&mut self, name: &str, index: SwIfIndex) {
        self.by_name.insert(name.to_owned(), index);
        self.indices.set(index.0);
        self.take(name);
    }

    /// An interface is made by a name. Its number is taken for as long as the interface is there, whatever it is called.
    pub(super) fn take(&mut self, made_as: &str) {
        if let Some(number) = instance(made_as) {
            self.loopbacks.set(number);
            *self.uses.entry(number).or_default() += 1;
        }
    }

    fn give(&mut self, name: &str) {
        let Some(number) = instance(name) else { return };
        let left = self.uses.get(&number).map_or(0, |uses| uses.saturating_sub(1));
        if left == 0 {
            self.uses.remove(&number);
            self.loopbacks.clear(number);
        } else {
            self.uses.insert(number, left);
        }
    }

    /// Whether a loopback has this number, by whatever name, or something is called as one of this number.
    pub(super) fn is_loopback(&self, number: u32) -> bool {
        self.uses.contains_key(&number)
    }

    /// A name is no interface's any more; the number of the interface stays taken.
    pub(super) fn forget(&mut self, name: &str) {
        if self.by_name.remove(name).is_some() {
            self.give(name);
        }
    }

    pub(super) fn remove(&mut self, name: &str, made_as: &str, index: SwIfIndex) {
        self.forget(name);
        self.give(made_as);
        self.indices.clear(index.0);
    }
}

impl super::Interfaces {
    /// Whether there is a loopback of this number, or something that is called so.
    pub(crate) fn is_loopback_taken(&self, number: u32) -> bool {
        self.names.borrow().is_loopback(number)
    }

    /// The lowest number of a loopback that does not exist.
    pub(crate) fn free_loopback(&self) -> Option<u32> {
        self.names.borrow().free_loopback()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_found_and_given_again() {
        let mut names = Names::default();
        names.insert("local0", SwIfIndex(0));
        names.insert("loop0", SwIfIndex(1));
        names.insert("loop01", SwIfIndex(2));
        names.insert("loop2", SwIfIndex(3));
        for made in ["local0", "loop0", "loop01", "loop2"] {
            names.take(made);
        }
        assert_eq!((names.free_index(), names.free_loopback()), (Some(SwIfIndex(4)), Some(1)));
        names.remove("loop0", "loop0", SwIfIndex(1));
        assert_eq!((names.free_index(), names.free_loopback()), (Some(SwIfIndex(1)), Some(0)));
        names.forget("loop2");
        names.insert("wan", SwIfIndex(3));
        assert_eq!((names.find("loop2"), names.find("wan")), (None, Some(SwIfIndex(3))));
        assert_eq!(names.free_index(), Some(SwIfIndex(1)));
        // Called otherwise, it is still loopback 2.
        assert!(names.is_loopback(2) && !names.is_loopback(0));
        names.remove("wan", "loop2", SwIfIndex(3));
        assert!(!names.is_loopback(2));
    }
}
