//! Sources of routes that clients name for themselves.

use std::collections::BTreeMap;

use super::Fib;
use crate::{FibError, Source};

/// A source that a client has named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientSource {
    /// Its place among all sources.
    pub source: Source,
    /// The priority it was given: the lower, the better.
    pub priority: u8,
    /// Its name.
    pub name: String,
}

/// Those there are.
pub(crate) type ClientSources = BTreeMap<Source, (u8, String)>;

/// A free place of a band in which better priorities stand before and worse ones behind.
fn place(band: [Source; 4], taken: &ClientSources, priority: u8) -> Option<Source> {
    let fits = |at: usize| {
        let (before, from) = band.split_at_checked(at)?;
        let (here, behind) = from.split_first()?;
        let of = |source: &Source| taken.get(source).map(|(priority, _)| *priority);
        let stands = of(here).is_none()
            && before.iter().filter_map(of).all(|p| p <= priority)
            && behind.iter().filter_map(of).all(|p| p > priority);
        stands.then_some(*here)
    };
    // From the middle, so that there is room on both sides.
    [1, 2, 0, 3].into_iter().find_map(fits)
}

impl Fib {
    /// A client names a source of its routes. Of several sources of a route the one with the lowest priority decides; one
    /// of the same priority stands behind those before it. The same name and priority are the same source.
    ///
    /// # Errors
    /// The priority or the name is another source's, or there is no place left.
    pub fn add_source(&self, name: &str, priority: u8) -> Result<Source, FibError> {
        let mut clients = self.clients.borrow_mut();
        if let Some((source, (known, _))) = clients.iter().find(|(_, (_, known))| known == name) {
            return if *known == priority {
                Ok(*source)
            } else {
                Err(FibError::SourceTaken(name.to_owned()))
            };
        }
        if name.is_empty() || Source::ALL.iter().any(|source| source.name() == name) {
            return Err(FibError::SourceTaken(name.to_owned()));
        }
        let [high, low] = Source::OF_CLIENTS;
        let band = match priority {
            p if p <= Source::LcpRtDynamic.priority() || p >= Source::Dhcp.priority() => {
                return Err(FibError::SourcePriority(priority));
            }
            p if p < Source::Api.priority() => high,
            _ => low,
        };
        let source = place(band, &clients, priority).ok_or(FibError::TooManySources(clients.len()))?;
        clients.insert(source, (priority, name.to_owned()));
        Ok(source)
    }

    /// The sources that clients have named, best first.
    pub fn client_sources(&self) -> Vec<ClientSource> {
        let clients = self.clients.borrow();
        let one = |(source, (priority, name)): (&Source, &(u8, String))| ClientSource {
            source: *source,
            priority: *priority,
            name: name.clone(),
        };
        clients.iter().map(one).collect()
    }
}
