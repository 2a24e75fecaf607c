//! Which of several routers has a group's addresses.
//!
//! A protocol (VRRP) tells [`Redundancy`] of its groups, and features that follow a group hear of it, without knowing the
//! protocol.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_module::Control;

/// Routers that share addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Group {
    /// The interface whose link they share.
    pub interface: SwIfIndex,
    /// The group's number there: VRRP's VRID.
    pub number: u8,
    /// Of which addresses.
    pub family: Family,
}

/// Whether this router has a group's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It has them.
    Master,
    /// Another router has, or none.
    Backup,
}

type Observer = Rc<dyn Fn(Group)>;

/// What is known of groups.
#[derive(Default)]
pub struct Redundancy {
    groups: RefCell<BTreeMap<Group, Standing>>,
    observers: RefCell<Vec<Observer>>,
}

impl Redundancy {
    /// That of a router.
    pub fn of(control: &Control) -> Rc<Redundancy> {
        control.get().unwrap_or_else(|_| control.put(Redundancy::default()))
    }

    /// This is so of a group from now on; `None`: there is no such group any more.
    pub fn tell(&self, group: Group, standing: Option<Standing>) {
        let before = match standing {
            Some(standing) => self.groups.borrow_mut().insert(group, standing),
            None => self.groups.borrow_mut().remove(&group),
        };
        if before != standing {
            let observers = self.observers.borrow().clone();
            for observe in observers {
                observe(group);
            }
        }
    }

    /// Whether this router has a group's addresses; `None`: there is no such group.
    pub fn standing(&self, group: Group) -> Option<Standing> {
        self.groups.borrow().get(&group).copied()
    }

    /// Hears of each change.
    pub fn observe(&self, observe: impl Fn(Group) + 'static) {
        self.observers.borrow_mut().push(Rc::new(observe));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_change_is_told_once_and_a_group_that_goes_is_not_known() {
        let (all, heard) = (Redundancy::default(), Rc::new(Cell::new(0)));
        let count = Rc::clone(&heard);
        all.observe(move |_| count.set(count.get() + 1));
        let group = Group { interface: SwIfIndex(1), number: 7, family: Family::Ip4 };
        for (standing, times) in [
            (Some(Standing::Backup), 1),
            (Some(Standing::Backup), 1),
            (Some(Standing::Master), 2),
            (None, 3),
            (None, 3),
        ] {
            all.tell(group, standing);
            assert_eq!((all.standing(group), heard.get()), (standing, times));
        }
    }
}
