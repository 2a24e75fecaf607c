//! HTTP on a thread of its own. What a client may take is bounded: so many connections, so many bytes of a request,
//! so much time; one answer per connection.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, oneshot};

use crate::scrape::{Format, Scraper};

/// Connections at a time.
pub const MOST_CLIENTS: usize = 16;
/// Bytes of a request's head.
pub const MOST_HEAD: usize = 16 << 10;
/// How long a client may take for its request.
pub const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a client may take altogether.
pub const WHOLE_TIME: Duration = Duration::from_secs(30);

/// What the endpoint counts of itself.
#[derive(Debug, Default)]
pub struct Figures {
    pub(crate) scrapes: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// Microseconds of the last reading.
    pub(crate) last: AtomicU64,
}

impl Figures {
    /// Answers, refused connections, microseconds of the last reading.
    pub fn all(&self) -> (u64, u64, u64) {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (of(&self.scrapes), of(&self.refused), of(&self.last))
    }
}

/// The thread that serves. It ends when this is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the thread; the listener must not block.
    ///
    /// # Errors
    /// The system refuses.
    pub fn start(listener: TcpListener, scraper: Scraper, figures: Arc<Figures>) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(move || {
            let serve = serve(listener, scraper, figures);
            runtime.block_on(async {
                // Nothing is ever sent: the channel closes when the server is dropped.
                futures_lite::future::or(serve, async { drop(stopped.await) }).await;
            });
        })?;
        Ok(Server { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends between two requests; a reading takes milliseconds.
            let _ = thread.join();
        }
    }
}

type Shared = Arc<Mutex<Scraper>>;

async fn serve(listener: tokio::net::TcpListener, scraper: Scraper, figures: Arc<Figures>) {
    let router = Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(Mutex::new(scraper)));
    let places = Arc::new(Semaphore::new(MOST_CLIENTS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely: trying at once again would spin.
                tracing::debug!(%error, "metrics cannot take a client");
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            figures.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .keep_alive(false)
                .max_buf_size(MOST_HEAD)
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .serve_connection(TokioIo::new(stream), service);
            // How a client fails is its own business.
            let _ = tokio::time::timeout(WHOLE_TIME, connection).await;
            drop(place);
        });
    }
}

async fn index() -> &'static str {
    "Counters of this router: /metrics, or /metrics?format=vpp by the names of VPP's exporter.\n"
}

/// The words behind the question mark.
async fn metrics(State(scraper): State<Shared>, Query(query): Query<Vec<(String, String)>>) -> Response {
    let mut format = Format::Shoal;
    for (key, value) in query {
        format = match (key.as_str(), value.as_str()) {
            ("format", "shoal") => Format::Shoal,
            ("format", "vpp") => Format::Vpp,
            _ => return (StatusCode::BAD_REQUEST, "format is shoal or vpp\n").into_response(),
        };
    }
    let answer = scraper.lock().unwrap_or_else(PoisonError::into_inner).answer(format);
    match answer {
        Ok(bytes) => ([(header::CONTENT_TYPE, format.content_type())], bytes).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}
