//! Functions that decide whether a packet is traced or captured: features bring them, the operator chooses one for
//! traces and one for captures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::trace::Filter;

/// What a function is chosen for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterUse {
    /// Traces.
    Trace,
    /// Captures of packets in files.
    Pcap,
}

/// A function, as a feature brings it.
#[derive(Clone)]
pub struct FilterFunction {
    /// Its name.
    pub name: &'static str,
    /// What it goes by.
    pub description: &'static str,
    /// At first the one with the highest number is chosen.
    pub priority: u32,
    /// Whether a packet is wanted.
    pub wants: Filter,
}

/// A function, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterInfo {
    /// Its name.
    pub name: &'static str,
    /// What it goes by.
    pub description: &'static str,
    /// At first the one with the highest number is chosen.
    pub priority: u32,
    /// Whether it is the one in use.
    pub selected: bool,
}

#[derive(Default)]
struct State {
    all: Vec<FilterFunction>,
    trace: Option<&'static str>,
    pcap: Option<&'static str>,
}

impl State {
    fn selected(&self, what: FilterUse) -> Option<&FilterFunction> {
        let name = match what {
            FilterUse::Trace => self.trace,
            FilterUse::Pcap => self.pcap,
        };
        let chosen = self.all.iter().find(|function| Some(function.name) == name);
        chosen.or_else(|| self.all.iter().max_by_key(|function| function.priority))
    }
}

/// All functions of a router.
#[derive(Clone, Default)]
pub struct FilterFunctions(Arc<Mutex<State>>);

impl FilterFunctions {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a function; one of the same name gives way.
    pub fn add(&self, function: FilterFunction) {
        let mut state = self.lock();
        state.all.retain(|there| there.name != function.name);
        state.all.push(function);
    }

    /// Chooses a function.
    ///
    /// # Errors
    /// There is none of this name; the names there are.
    pub fn select(&self, what: FilterUse, name: &str) -> Result<(), Vec<&'static str>> {
        let mut state = self.lock();
        let names = || state.all.iter().map(|function| function.name);
        let Some(name) = names().find(|there| *there == name) else { return Err(names().collect()) };
        match what {
            FilterUse::Trace => state.trace = Some(name),
            FilterUse::Pcap => state.pcap = Some(name),
        }
        Ok(())
    }

    /// The name that was chosen, if any was.
    pub fn chosen(&self, what: FilterUse) -> Option<&'static str> {
        let state = self.lock();
        match what {
            FilterUse::Trace => state.trace,
            FilterUse::Pcap => state.pcap,
        }
    }

    /// All functions, in the order they came.
    pub fn list(&self, what: FilterUse) -> Vec<FilterInfo> {
        let state = self.lock();
        let selected = state.selected(what).map(|function| function.name);
        let info = |function: &FilterFunction| FilterInfo {
            name: function.name,
            description: function.description,
            priority: function.priority,
            selected: Some(function.name) == selected,
        };
        state.all.iter().map(info).collect()
    }

    /// A filter that asks the function that is in use at the time; without any, all packets are wanted.
    pub fn filter(&self, what: FilterUse) -> Filter {
        let functions = self.clone();
        Arc::new(move |bytes| {
            let wants = functions.lock().selected(what).map(|function| Arc::clone(&function.wants));
            wants.is_none_or(|wants| wants(bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &'static str, priority: u32, wanted: bool) -> FilterFunction {
        FilterFunction { name, description: "test", priority, wants: Arc::new(move |_| wanted) }
    }

    #[test]
    fn the_highest_priority_decides_until_another_is_chosen() {
        let functions = FilterFunctions::default();
        let trace = functions.filter(FilterUse::Trace);
        assert!(trace(&[]), "without a function all packets are wanted");
        functions.add(function("low", 10, true));
        functions.add(function("high", 50, false));
        assert!(!trace(&[]));
        functions.select(FilterUse::Trace, "low").unwrap();
        assert!(trace(&[]));
        assert!(!functions.filter(FilterUse::Pcap)(&[]), "the other use has a choice of its own");
        assert_eq!(functions.select(FilterUse::Pcap, "lo"), Err(vec!["low", "high"]));
        let selected = |what| functions.list(what).into_iter().find(|f| f.selected).map(|f| f.name);
        assert_eq!((selected(FilterUse::Trace), selected(FilterUse::Pcap)), (Some("low"), Some("high")));
    }
}
