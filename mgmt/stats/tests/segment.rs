//! A client's walk through the segment: connects as clients do and trusts nothing but the layout's description.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a test's failure, told at once"
)]

use crate::router;

use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, connect, recvmsg, socket,
};
use router::Router;
use shoal_stats::{Settings, Stats};

/// Connects, and waits for the descriptor while `turn` lets the server work.
fn receive(path: &Path, turn: impl Fn()) -> File {
    let fd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::empty(), None).unwrap();
    connect(fd.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        turn();
        let mut byte = [0; 8];
        let mut parts = [IoSliceMut::new(&mut byte)];
        let mut space = nix::cmsg_space!([RawFd; 1]);
        match recvmsg::<()>(fd.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::MSG_DONTWAIT) {
            Ok(message) => {
                assert_eq!(message.bytes, 0, "the message has no bytes");
                let ControlMessageOwned::ScmRights(fds) = message.cmsgs().unwrap().next().unwrap() else {
                    panic!("no descriptor")
                };
                let [fd] = fds[..] else { panic!("not one descriptor: {fds:?}") };
                return File::open(format!("/proc/self/fd/{fd}")).unwrap();
            }
            Err(nix::Error::EAGAIN) => assert!(Instant::now() < until, "no answer"),
            Err(e) => panic!("{e}"),
        }
    }
}

/// A client's view of the segment.
struct Reader {
    file: File,
}

trait Readable {
    fn reader(&self) -> Reader;
}

impl Readable for Router {
    fn reader(&self) -> Reader {
        Reader {
            file: receive(&self.socket, || {
                self.processes.run_until_idle();
            }),
        }
    }
}

#[derive(Debug, Clone)]
struct ReadEntry {
    kind: u32,
    value: u64,
}

impl Reader {
    fn bytes(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    fn u32(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.bytes(at, 4).try_into().unwrap())
    }

    fn u64(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.bytes(at, 8).try_into().unwrap())
    }

    fn epoch(&self) -> u64 {
        self.u64(16)
    }

    /// A vector's place in the file and its length.
    fn vector(&self, pointer: u64) -> (u64, u64) {
        let at = pointer - self.u64(8);
        let len = u64::from(self.u32(at - 8));
        assert!(at + len < self.file.metadata().unwrap().len());
        (at, len)
    }

    fn directory(&self) -> Vec<(String, ReadEntry)> {
        assert_eq!((self.u64(0), self.u64(24), self.u64(40)), (2, 0, 0), "version, in progress, unused");
        let (at, len) = self.vector(self.u64(32));
        let entry = |i: u64| {
            let name = self.bytes(at + i * 144 + 16, 128);
            let end = name.iter().position(|b| *b == 0).expect("names end with a zero");
            assert!(end > 0, "there are no holes");
            let found = ReadEntry { kind: self.u32(at + i * 144), value: self.u64(at + i * 144 + 8) };
            (String::from_utf8(name[..end].to_vec()).unwrap(), found)
        };
        (0..len).map(entry).collect()
    }

    fn find(&self, name: &str) -> ReadEntry {
        let all = self.directory();
        let found = all.iter().find(|(n, _)| n == name);
        found.unwrap_or_else(|| panic!("{name} is not among {all:?}")).1.clone()
    }

    /// Thread by thread, the words of a counter; `width` of them make one object.
    fn counter(&self, name: &str, width: u64) -> Vec<Vec<u64>> {
        let found = self.find(name);
        assert_eq!(found.kind, if width == 1 { 2 } else { 3 });
        let (at, threads) = self.vector(found.value);
        let row = |t: u64| {
            let (at, len) = self.vector(self.u64(at + t * 8));
            (0..len * width).map(|i| self.u64(at + i * 8)).collect()
        };
        (0..threads).map(row).collect()
    }

    /// A symlink's column of its target, thread by thread; simple counters only.
    fn symlink(&self, name: &str) -> Vec<u64> {
        let found = self.find(name);
        assert_eq!(found.kind, 6);
        let (target, column) = ((found.value & 0xffff_ffff) as usize, (found.value >> 32) as usize);
        let target = self.directory()[target].0.clone();
        self.counter(&target, 1).iter().map(|row| row[column]).collect()
    }

    fn names(&self, name: &str) -> Vec<Option<String>> {
        let found = self.find(name);
        assert_eq!(found.kind, 4);
        let (at, len) = self.vector(found.value);
        let one = |i: u64| match self.u64(at + i * 8) {
            0 => None,
            pointer => {
                let (at, len) = self.vector(pointer);
                let mut text = self.bytes(at, len as usize);
                assert_eq!(text.pop(), Some(0), "the length includes the zero");
                Some(String::from_utf8(text).unwrap())
            }
        };
        (0..len).map(one).collect()
    }
}

#[test]
fn the_first_three_entries_are_where_clients_expect_them() {
    let router = Router::new(false);
    let reader = router.reader();
    let directory = reader.directory();
    let first: Vec<_> = directory.iter().take(3).map(|(n, f)| (n.as_str(), f.kind)).collect();
    assert_eq!(first, [("/sys/heartbeat", 1), ("/sys/last_stats_clear", 1), ("/sys/boottime", 1)]);
}

#[test]
fn clients_see_the_words_that_workers_count_in() {
    let router = Router::new(false);
    let counters = router.graph.graph_counters();
    counters.rx.ensure(3);
    counters.drops.ensure(3);
    router.graph.if_names().set(0, "local0");
    router.graph.if_names().set(2, "host-eth0");
    router.graph.counters().symlink("/interfaces/host-eth0/drops", "/if/drops", 2);
    router.processes.run_until_idle();
    let reader = router.reader();
    let epoch = reader.epoch();
    counters.rx.add(0, 2, 5, 320);
    counters.drops.add(0, 2, 9);
    assert_eq!(reader.counter("/if/rx", 2), [[0, 0, 0, 0, 5, 320]]);
    assert_eq!(reader.symlink("/interfaces/host-eth0/drops"), [9]);
    assert_eq!(reader.names("/if/names"), [Some("local0".into()), None, Some("host-eth0".into())]);
    assert_eq!(reader.epoch(), epoch, "counting is no change of structure");
}

#[test]
fn every_error_has_a_symlink_from_the_start() {
    let router = Router::new(false);
    let reader = router.reader();
    let errors: Vec<String> =
        reader.directory().into_iter().map(|(n, _)| n).filter(|n| n.starts_with("/err/")).collect();
    assert_eq!(errors.len(), router.graph.error_counters().len());
    assert!(errors.iter().all(|e| reader.symlink(e) == [0]));
}

#[test]
fn a_new_thread_adds_rows_to_every_counter() {
    let router = Router::new(false);
    router.graph.graph_counters().rx.ensure(1);
    let worker = router.graph.add_worker(None).unwrap();
    router.processes.run_until_idle();
    router.graph.graph_counters().rx.add(worker, 0, 1, 60);
    let reader = router.reader();
    assert_eq!(reader.counter("/if/rx", 2), [[0, 0], [1, 60]]);
    assert_eq!(reader.counter("/node/errors", 1).len(), 2);
    router.graph.stop_workers().unwrap();
}

#[test]
fn an_old_directory_stays_readable_for_a_while_and_its_memory_is_used_again() {
    let router = Router::new(false);
    let counters = router.graph.counters();
    let reader = router.reader();
    let (old, epoch) = (reader.u64(32), reader.epoch());
    counters.gauge("/test/gauge").unwrap().set(7);
    router.processes.run_until_idle();
    assert_eq!(reader.epoch(), epoch + 1);
    assert_ne!(reader.u64(32), old);
    let (at, len) = reader.vector(old);
    assert!(len > 10 && reader.bytes(at + 16, 14) == b"/sys/heartbeat");
    let found = reader.find("/test/gauge");
    assert_eq!((found.kind, found.value), (9, 7));
    counters.remove_prefix("/test/");
    router.processes.run_until_idle();
    assert!(reader.directory().iter().all(|(n, _)| n != "/test/gauge"));
    router.pass(Duration::from_mins(1));
    let used = counters.segment().used();
    for round in 0..200 {
        counters.gauge("/test/gauge").unwrap().set(round);
        counters.remove_prefix("/test/");
        router.pass(Duration::from_mins(1));
    }
    assert_eq!(counters.segment().used(), used, "replaced directories use each other's memory");
}

#[test]
fn a_number_that_was_removed_writes_nowhere() {
    let router = Router::new(false);
    let counters = router.graph.counters();
    let gauge = counters.gauge("/test/gauge").unwrap();
    router.processes.run_until_idle();
    counters.remove_prefix("/test/");
    router.processes.run_until_idle();
    let reader = router.reader();
    let (before, after) = (reader.bytes(0, 1 << 20), gauge.set(u64::MAX));
    assert_eq!(after, ());
    assert!(before == reader.bytes(0, 1 << 20));
}

#[test]
fn names_no_client_could_read_are_left_out() {
    let router = Router::new(false);
    let counters = router.graph.counters();
    let long = format!("/{}", "x".repeat(127));
    counters.gauge(&long).unwrap();
    counters.gauge(&long[..127]).unwrap();
    counters.symlink("/dangling", "/no/such/counter", 0);
    counters.symlink("/beyond", "/if/rx", 1000);
    router.processes.run_until_idle();
    let names: Vec<String> = router.reader().directory().into_iter().map(|(n, _)| n).collect();
    assert!(names.contains(&long[..127].to_owned()));
    assert!(!names.iter().any(|n| *n == long || n == "/dangling" || n == "/beyond"));
}

#[test]
fn the_collector_beats_and_knows_the_buffers() {
    let router = Router::new(false);
    let reader = router.reader();
    let beat = reader.find("/sys/heartbeat").value;
    router.pass(Duration::from_secs(11));
    assert_eq!(reader.find("/sys/heartbeat").value, beat + 1);
    let stats = router.graph.pool().stats();
    assert_eq!(reader.find("/buffer-pools/default-numa-0/available").value, stats.available as u64);
    assert_eq!(reader.find("/sys/num_worker_threads").value, 0);
    assert_eq!(reader.find("/sys/last_update").value, 11);
    assert!(reader.symlink("/mem/stat segment/used")[0] > 0);
}

#[test]
fn counters_of_nodes_are_published_when_asked_for() {
    let reader = Router::new(false).reader();
    assert!(
        reader.directory().iter().all(|(n, _)| !n.starts_with("/sys/node/") && !n.starts_with("/nodes/"))
    );
    let router = Router::new(true);
    let reader = router.reader();
    let names = reader.names("/sys/node/names");
    let drop = names.iter().position(|n| n.as_deref() == Some("error-drop")).unwrap();
    router.graph.graph_counters().calls.add(0, drop, 3);
    assert_eq!(reader.symlink("/nodes/error-drop/calls"), [3]);
}

#[test]
fn clients_cannot_write() {
    let router = Router::new(false);
    let fd = router.reader().file;
    assert!(fd.write_at(b"x", 0).is_err());
    // The memfd's permissions allow this, its seal does not.
    let again = std::fs::OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    if let Ok(again) = again {
        assert!(again.write_at(b"x", 0).is_err());
    }
}

#[test]
fn the_socket_goes_with_the_router_and_is_not_stolen() {
    let router = Router::new(false);
    let other = Router::new(false);
    let settings = Settings {
        socket: router.socket.clone(),
        gid: None,
        per_node_counters: false,
        update_interval: Duration::from_secs(10),
    };
    other.control.put(settings.clone());
    let refused = (shoal_stats::MODULE.start)(&other.control).unwrap_err().to_string();
    assert!(refused.contains("another process serves this socket"), "{refused}");
    let stats = router.control.get::<Stats>().unwrap();
    assert!(stats.epoch() > 0);
    stats.close();
    assert!(!router.socket.exists());
    std::fs::write(&router.socket, "a file").unwrap();
    let refused = (shoal_stats::MODULE.start)(&other.control).unwrap_err().to_string();
    assert!(refused.contains("not a socket"), "{refused}");
}
