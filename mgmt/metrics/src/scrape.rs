//! Reads the counters for a request, or gives the answer of a moment ago again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use shoal_stats_client::{Client, Error};

use crate::server::Figures;
use crate::{families, vpp};

/// An answer is good for so long, so that many who ask do not keep a core busy.
const FRESH: Duration = Duration::from_millis(250);

/// The names that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `shoal_...`, as Prometheus has them elsewhere.
    Shoal,
    /// Those of VPP's exporter.
    Vpp,
}

impl Format {
    /// What the answer is, for HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Shoal => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Vpp => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Reads and remembers.
pub struct Scraper {
    client: Client,
    figures: Arc<Figures>,
    /// By format.
    answers: [Option<(Instant, Arc<[u8]>)>; 2],
}

impl Scraper {
    /// Reads by this client.
    pub fn new(client: Client, figures: Arc<Figures>) -> Self {
        Scraper { client, figures, answers: [None, None] }
    }

    /// All counters.
    ///
    /// # Errors
    /// The segment cannot be read.
    pub fn answer(&mut self, format: Format) -> Result<Arc<[u8]>, Error> {
        self.figures.scrapes.fetch_add(1, Ordering::Relaxed);
        let Scraper { client, figures, answers: [shoal, vpp] } = self;
        let slot = match format {
            Format::Shoal => shoal,
            Format::Vpp => vpp,
        };
        if let Some((at, bytes)) = slot
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(bytes));
        }
        let begun = Instant::now();
        let text = match format {
            // Links show what their tables have; the errors' are the only way to names of errors.
            Format::Shoal => {
                let wanted = |name: &str| !name.starts_with("/interfaces/") && !name.starts_with("/nodes/");
                families::render(client.read(wanted)?, figures.all())
            }
            Format::Vpp => vpp::render(&client.read(|_| true)?),
        };
        figures.last.store(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
        let bytes: Arc<[u8]> = Arc::from(text.into_bytes());
        *slot = Some((Instant::now(), Arc::clone(&bytes)));
        Ok(bytes)
    }
}
