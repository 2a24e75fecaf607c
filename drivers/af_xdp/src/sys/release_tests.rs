//! Buffers of closed sockets, with a real kernel.

use shoal_buffer::{Fresh, Pages, PoolConfig};
use shoal_link::Link;
use shoal_testkit::netns::{self, Namespace, wait_for};

use super::super::lent;
use super::super::queue::{Copying, PacketMemory, XskConfig, tie};
use super::*;

const LONG: Duration = Duration::from_secs(10);
const SMALL: XskConfig = XskConfig {
    rx_size: 64,
    tx_size: 64,
    copying: Copying::Auto,
    memory: PacketMemory::Auto,
    multi_buffer: false,
    busy_poll: None,
};

fn pool() -> Arc<Pool> {
    let (name, pages) = ("test".into(), Pages::Small);
    Pool::new(PoolConfig { name, buffers: 4096, most: 4096, pages }).unwrap()
}

/// Runs something in a namespace with a veth of two queues, `v0`.
fn with_veth(test: &str, tag: &str, run: impl FnOnce(&Namespace, IfIndex) + Send + 'static) {
    if !netns::can_run(test, &[]) {
        return;
    }
    let ns = Namespace::new(tag).unwrap();
    ns.ip("link add v0 numrxqueues 2 numtxqueues 2 type veth peer name v1 numrxqueues 2 numtxqueues 2");
    let ns = Arc::new(ns);
    let inside = Arc::clone(&ns);
    let thread = ns.spawn(move || {
        let index = Link::by_name("v0").unwrap().index;
        run(&inside, index);
    });
    thread.join().unwrap();
}

/// A queue whose driver claims to copy nothing, closed with ten buffers in its hands.
fn close_without_copy(index: IfIndex, pool: &Arc<Pool>) {
    let part = pool.part().unwrap();
    let open = || {
        let socket = XskSocket::open().unwrap();
        socket.register_buffers(&part).unwrap();
        let rings = tie(&socket, index, 1, &SMALL);
        rings.map(|rings| (rings, socket))
    };
    let (rings, socket) = soon(open);
    let ended = Ended::new(XskSocket::open().unwrap(), (index, 1), true, pool);
    let (mut loans, mut cache) = (Loans::new(pool, part), pool.cache());
    let mut outside = Vec::new();
    while loans.len() < 10 {
        if let Fresh::Outside(buffer) = loans.lend_fresh(&mut cache).unwrap() {
            outside.push(buffer);
        }
    }
    for buffer in outside {
        cache.free(buffer);
    }
    ended.keep_rx(loans);
    drop((rings, socket));
    drop(ended);
}

/// What succeeds once the queue's former socket has left it.
fn soon<T>(mut open: impl FnMut() -> Result<T, Error>) -> T {
    let mut opened = None;
    assert!(wait_for(LONG, || {
        opened = open().ok();
        opened.is_some()
    }));
    opened.unwrap()
}

fn comes_back(pool: &Pool) -> bool {
    wait_for(LONG, || {
        sweep();
        pool.stats().used == 0
    })
}

#[test]
fn with_a_driver_that_copies_received_buffers_are_free_when_the_socket_is_closed() {
    let name = "with_a_driver_that_copies_received_buffers_are_free_when_the_socket_is_closed";
    with_veth(name, "xrelc", |_, index| {
        let pool = pool();
        let config = XskConfig { rx_size: 256, ..SMALL };
        let opened = lent::open(index, 0, &config, &pool).unwrap();
        assert!(pool.stats().used >= 256, "{:?}", pool.stats());
        assert!(!opened.0.rings.is_zero_copy());
        drop(opened);
        assert_eq!(pool.stats().used, 0);
        let greedy = XskConfig { rx_size: 8192, ..config };
        let why = lent::open(index, 1, &greedy, &pool).map(drop).unwrap_err();
        let Error::NoSharing(why) = why else { panic!("{why}") };
        assert!(why.starts_with("8192 buffers are to be lent for each queue, "), "{why}");
        assert_eq!(pool.stats().used, 0, "nothing half done");
    });
}

#[test]
fn with_one_that_does_not_they_are_kept_until_the_queue_is_free() {
    with_veth("with_one_that_does_not_they_are_kept_until_the_queue_is_free", "xrelz", |ns, index| {
        let pool = pool();
        close_without_copy(index, &pool);
        assert!(comes_back(&pool), "{:?}", pool.stats());
        // As long as another socket has the queue, that cannot be told.
        close_without_copy(index, &pool);
        let other = soon(|| super::super::queue::open(index, 1, &SMALL));
        sweep();
        assert_eq!(pool.stats().used, 10, "the queue is taken");
        drop(other);
        assert!(comes_back(&pool), "{:?}", pool.stats());
        close_without_copy(index, &pool);
        ns.ip("link del v0");
        assert!(comes_back(&pool), "the interface is gone: {:?}", pool.stats());
    });
}
