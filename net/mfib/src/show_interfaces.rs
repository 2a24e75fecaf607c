//! `show mfib interface`, `show mfib route flags`, `show mfib itf flags`.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::Serialize;
use shoal_adj::Family;
use shoal_fib::{Fib, FibIndex};
use shoal_interface::Interfaces;
use shoal_module::Control;
use shoal_module::cli::{CliError, Listing, Page};

use crate::control::Place;
use crate::{EntryFlags, ItfFlags, Member, Mfib};

/// An interface of an entry.
#[derive(Serialize)]
struct Row {
    index: u32,
    group: String,
    interface: String,
    flags: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}@ {}: {},", self.index, self.interface, self.flags)
    }
}

/// The interfaces of all entries of all tables.
pub(crate) struct InterfaceListing {
    mfib: Rc<Mfib>,
    interfaces: Rc<Interfaces>,
    left: VecDeque<(Family, FibIndex)>,
    places: Option<Box<dyn Iterator<Item = Place>>>,
    number: u32,
    begun: bool,
}

impl InterfaceListing {
    pub fn new(control: &Control) -> Result<Self, CliError> {
        let fib = control.get::<Fib>()?;
        let tables = |family| fib.list_tables(family).into_iter().map(move |table| (family, table.index));
        let left = Family::ALL.into_iter().flat_map(tables).collect();
        let (mfib, interfaces) = (control.get()?, control.get()?);
        Ok(InterfaceListing { mfib, interfaces, left, places: None, number: 0, begun: false })
    }
}

impl Listing for InterfaceListing {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if !std::mem::replace(&mut self.begun, true) {
            page.text("mFIB interfaces::\n");
            page.array();
        }
        let Some(places) = &mut self.places else {
            let Some((family, table)) = self.left.pop_front() else { return ControlFlow::Break(()) };
            self.places = Some(Box::new(self.mfib.places(family, table)));
            return ControlFlow::Continue(());
        };
        let Some(place) = places.next() else {
            self.places = None;
            return ControlFlow::Continue(());
        };
        let Some(entry) = self.mfib.entry_at(place) else { return ControlFlow::Continue(()) };
        for itf in entry.interfaces {
            let interface = match itf.member {
                Member::Local => "local".to_owned(),
                Member::Interface(index) => self.interfaces.name(index).unwrap_or_default(),
            };
            let (index, group, flags) = (self.number, entry.prefix.to_string(), itf.flags.to_string());
            self.number += 1;
            page.row(&Row { index, group, interface, flags });
        }
        ControlFlow::Continue(())
    }
}

/// A flag and its short name.
#[derive(Serialize)]
struct Flag {
    short: String,
    name: &'static str,
}

/// Flags with the short names VPP has for them: the first letter of each word.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Flags(Vec<Flag>);

impl Flags {
    pub fn of_entries() -> Self {
        Flags(EntryFlags::NAMES.into_iter().map(|(_, name)| flag(name)).collect())
    }

    pub fn of_interfaces() -> Self {
        let mut by_bit = ItfFlags::NAMES;
        by_bit.sort_by_key(|(ItfFlags(bit), _)| *bit);
        Flags(by_bit.into_iter().map(|(_, name)| flag(name)).collect())
    }
}

fn flag(name: &'static str) -> Flag {
    // VPP leaves the `itf' of `Accept-all-itf' out.
    let words = name.trim_end_matches("-itf").split('-');
    Flag {
        short: words.filter_map(|word| word.chars().next()).map(|c| c.to_ascii_uppercase()).collect(),
        name,
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Flag { short, name }| writeln!(f, "{short} = {name}"))
    }
}
