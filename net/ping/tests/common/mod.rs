//! A router, a client that runs commands there, and what the client was shown.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shoal_module::cli::{CliError, ClientGone, Reader, Sink};
use shoal_ping::{Detail, Ping, Target, Traceroute};
use shoal_testkit::{PEER, PEER_MAC, Port, Router, STACK};

/// A client: what it was shown, and whether it has left.
#[derive(Default)]
pub struct Screen {
    text: RefCell<String>,
    gone: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Screen {
    pub fn leave(&self) {
        self.gone.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub fn take(&self) -> String {
        self.text.take()
    }
}

impl Reader for Screen {
    fn write(&self, text: &str) -> Result<(), ClientGone> {
        if self.gone.get() {
            return Err(ClientGone);
        }
        self.text.borrow_mut().push_str(text);
        Ok(())
    }

    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.gone.get() {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    fn is_gone(&self) -> bool {
        self.gone.get()
    }
}

pub type Ended = Rc<RefCell<Option<Result<(), CliError>>>>;

pub struct Bench {
    pub router: Router,
    pub port: Port,
    pub screen: Rc<Screen>,
    pub ended: Ended,
}

/// A router with 10.0.0.1/24 on pg0, where 10.0.0.2 is known.
pub fn bench() -> Bench {
    let mut router = Router::new(&[STACK, &[&shoal_ip6_nd::MODULE, &shoal_ping::MODULE]].concat());
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    router.set_neighbour(&port, PEER, PEER_MAC);
    router.run();
    Bench { router, port, screen: Rc::default(), ended: Rc::default() }
}

impl Bench {
    pub fn spawn(&mut self, command: impl Future<Output = Result<(), CliError>> + 'static) {
        let ended = Rc::clone(&self.ended);
        self.router.control().processes().unwrap().spawn_unlisted(async move {
            *ended.borrow_mut() = Some(command.await);
        });
        self.router.run();
    }

    pub fn sink(&self) -> Sink {
        Sink::new(Rc::clone(&self.screen) as Rc<dyn Reader>)
    }

    pub fn ping(&mut self, ping: Ping) {
        let command = ping.run(Rc::clone(self.router.control()), self.sink());
        self.spawn(command);
    }

    pub fn trace(&mut self, traceroute: Traceroute) {
        let command = traceroute.run(Rc::clone(self.router.control()), self.sink());
        self.spawn(command);
    }

    pub fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }
}

pub fn target(address: impl Into<IpAddr>) -> Target {
    Target { address: address.into(), source: None, table: 0, size: 100 }
}

pub fn ping(address: impl Into<IpAddr>, repeat: u32) -> Ping {
    let interval = Duration::from_secs(1);
    Ping { target: target(address), repeat, burst: 1, interval, detail: Detail::Normal }
}

pub fn traceroute(address: impl Into<IpAddr>, probes: u8) -> Traceroute {
    let patience = Duration::from_secs(1);
    Traceroute { target: target(address), max_hops: 30, probes, patience }
}
