//! HTTP on a thread of its own. What a client may take is bounded: so many connections, so many bytes of a request,
//! so much time; one answer per connection.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use async_executor::LocalExecutor;
use async_io::{Async, Timer};
use futures_lite::future::or;
use futures_lite::{AsyncReadExt, AsyncWriteExt};

use crate::http::{self, Page, Refusal, Request};
use crate::scrape::Scraper;

/// Connections at a time.
pub const MOST_CLIENTS: usize = 16;
/// Bytes of a request's head.
pub const MOST_HEAD: usize = 16 << 10;
/// How long a client may take for its request.
pub const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a client may take altogether.
pub const WHOLE_TIME: Duration = Duration::from_secs(30);
/// How long what a client still sends is read and dropped, so that it sees its answer.
const LAST_TIME: Duration = Duration::from_secs(1);

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
    stop: Option<async_channel::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system refuses.
    pub fn start(listener: TcpListener, scraper: Scraper, figures: Arc<Figures>) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let listener = Async::new(listener)?;
        let (stop, stopped) = async_channel::bounded(1);
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(move || {
            let executor = LocalExecutor::new();
            let serve = serve(&executor, listener, scraper, figures);
            // Nothing is ever sent: the channel closes when the server is dropped.
            let stopped = async move {
                let _ = stopped.recv().await;
            };
            async_io::block_on(executor.run(or(stopped, serve)));
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

async fn serve(
    executor: &LocalExecutor<'_>,
    listener: Async<TcpListener>,
    scraper: Scraper,
    figures: Arc<Figures>,
) {
    let scraper = Rc::new(RefCell::new(scraper));
    // Each client holds a clone.
    let place = Rc::new(());
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely: trying at once again would spin.
                tracing::debug!(%error, "metrics cannot take a client");
                Timer::after(Duration::from_millis(200)).await;
                continue;
            }
        };
        if Rc::strong_count(&place) > MOST_CLIENTS {
            figures.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let (place, scraper) = (Rc::clone(&place), Rc::clone(&scraper));
        executor
            .spawn(async move {
                // How a client fails is its own business.
                let _ = within(WHOLE_TIME, io::ErrorKind::TimedOut.into(), client(stream, &scraper)).await;
                drop(place);
            })
            .detach();
    }
}

/// What comes of it in time, or else the error.
async fn within<T, E>(limit: Duration, late: E, what: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let timer = async {
        Timer::after(limit).await;
        Err(late)
    };
    or(what, timer).await
}

async fn client(mut stream: Async<TcpStream>, scraper: &RefCell<Scraper>) -> io::Result<()> {
    let request = match within(HEAD_TIME, Refusal::TooSlow, request(&mut stream)).await {
        Ok(None) => return Ok(()),
        Ok(Some(request)) => Ok(request),
        Err(why) => Err(why),
    };
    match request.and_then(|request| answer(request, scraper)) {
        Ok((head, body)) => {
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body).await?;
        }
        Err(why) => stream.write_all(http::refusal(why).as_bytes()).await?,
    }
    // What came and was not read would make the system reset the connection, and the client lose its answer.
    stream.get_ref().shutdown(Shutdown::Write)?;
    let rest = async {
        let mut rest = vec![0; 4096];
        while stream.read(&mut rest).await? > 0 {}
        Ok(())
    };
    within(LAST_TIME, io::ErrorKind::TimedOut.into(), rest).await
}

/// The next request; nothing if the client left.
async fn request(stream: &mut Async<TcpStream>) -> Result<Option<Request>, Refusal> {
    let mut head = vec![0; MOST_HEAD];
    let mut filled = 0;
    loop {
        let Some(room) = head.get_mut(filled..).filter(|room| !room.is_empty()) else {
            return Err(Refusal::TooLong);
        };
        let Ok(read @ 1..) = stream.read(room).await else { return Ok(None) };
        let before = filled;
        filled += read;
        // Only an empty line can end it: a client that sends byte by byte does not make this read all again each time.
        let tail = head.get(before.saturating_sub(2)..filled).unwrap_or_default();
        if tail.windows(2).any(|end| end == b"\n\n" || end == b"\n\r")
            && let Some(request) = http::parse(head.get(..filled).unwrap_or_default())?
        {
            return Ok(Some(request));
        }
    }
}

fn answer(request: Request, scraper: &RefCell<Scraper>) -> Result<(String, Arc<[u8]>), Refusal> {
    let (content_type, body) = match request.page {
        Page::Index => (http::TEXT, Arc::from(INDEX.as_bytes())),
        Page::Counters(format) => {
            let body = scraper.borrow_mut().answer(format).map_err(|error| {
                tracing::debug!(%error, "metrics cannot read the counters");
                Refusal::Unreadable
            })?;
            (format.content_type(), body)
        }
    };
    let head = http::head(content_type, body.len());
    Ok((head, if request.only_head { Arc::default() } else { body }))
}

const INDEX: &str =
    "Counters of this router: /metrics, or /metrics?format=vpp by the names of VPP's exporter.\n";
