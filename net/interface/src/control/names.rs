//! Which names and numbers are taken: found at once, however many interfaces there are.

use std::collections::HashMap;

use shoal_buffer::SwIfIndex;
use shoal_infra::Bitmap;

use super::MAX_INTERFACES;
use crate::loopback::MAX_INSTANCES;

/// Names and numbers of all interfaces.
#[derive(Default)]
pub(super) struct Names {
    by_name: HashMap<String, SwIfIndex>,
    indices: Bitmap,
    /// Numbers `N` of names `loopN`, whatever is called so.
    loopbacks: Bitmap,
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
        if let Some(number) = instance(name) {
            self.loopbacks.set(number);
        }
    }

    /// A name is no interface's any more; the number of the interface stays taken.
    pub(super) fn forget(&mut self, name: &str) {
        self.by_name.remove(name);
        if let Some(number) = instance(name) {
            self.loopbacks.clear(number);
        }
    }

    pub(super) fn remove(&mut self, name: &str, index: SwIfIndex) {
        self.forget(name);
        self.indices.clear(index.0);
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
        assert_eq!((names.free_index(), names.free_loopback()), (Some(SwIfIndex(4)), Some(1)));
        names.remove("loop0", SwIfIndex(1));
        assert_eq!((names.free_index(), names.free_loopback()), (Some(SwIfIndex(1)), Some(0)));
        names.forget("loop2");
        names.insert("wan", SwIfIndex(3));
        assert_eq!((names.find("loop2"), names.find("wan")), (None, Some(SwIfIndex(3))));
        assert_eq!(names.free_index(), Some(SwIfIndex(1)));
    }
}
