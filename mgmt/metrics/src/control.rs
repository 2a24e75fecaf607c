//! Who listens where.

use std::cell::RefCell;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;

use shoal_graph::Graph;
use shoal_stats_client::Client;

use crate::scrape::Scraper;
use crate::server::{Figures, Server};

/// Why it cannot listen there; the previous listener stays.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The address cannot be had.
    #[error("metrics cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// Port 0 would be another port after each start.
    #[error("metrics cannot listen on {0}: port 0 is none; {usual} is usual", usual = crate::USUAL)]
    NoPort(SocketAddr),
    /// The counters cannot be read.
    #[error("metrics: {0}")]
    Segment(#[from] shoal_stats_client::Error),
    /// The thread cannot be had.
    #[error("metrics: {0}")]
    Thread(std::io::Error),
}

/// What `show metrics` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Where somebody listens.
    pub address: Option<SocketAddr>,
    /// Answers given.
    pub scrapes: u64,
    /// Connections that were closed at once, because there were too many.
    pub refused: u64,
    /// How long the last reading of all counters took, in microseconds.
    pub last_microseconds: u64,
}

/// The endpoint.
pub struct Metrics {
    graph: Rc<Graph>,
    figures: Arc<Figures>,
    server: RefCell<Option<Server>>,
}

impl Metrics {
    pub(crate) fn new(graph: Rc<Graph>) -> Self {
        Metrics { graph, figures: Arc::default(), server: RefCell::default() }
    }

    /// Listens there, and nowhere else any more.
    ///
    /// # Errors
    /// The address cannot be had, or the counters cannot be read; nothing is changed then.
    pub fn listen(&self, address: SocketAddr) -> Result<(), MetricsError> {
        if address.port() == 0 {
            return Err(MetricsError::NoPort(address));
        }
        if self.state().address == Some(address) {
            return Ok(());
        }
        let refused = |e| MetricsError::Listen(address, e);
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let segment = self.graph.counters().segment().read_only_fd().map_err(MetricsError::Thread)?;
        let scraper = Scraper::new(Client::of(segment)?, Arc::clone(&self.figures));
        let server =
            Server::start(listener, scraper, Arc::clone(&self.figures)).map_err(MetricsError::Thread)?;
        if !address.ip().to_canonical().is_loopback() {
            tracing::warn!(
                "metrics on {address}: every host that can reach this address can read all counters"
            );
        }
        *self.server.borrow_mut() = Some(server);
        Ok(())
    }

    /// Listens no more.
    pub fn disable(&self) {
        self.server.borrow_mut().take();
    }

    /// What there is to say.
    pub fn state(&self) -> State {
        let (scrapes, refused, last_microseconds) = self.figures.all();
        let address = self.server.borrow().as_ref().map(Server::address);
        State { address, scrapes, refused, last_microseconds }
    }
}
