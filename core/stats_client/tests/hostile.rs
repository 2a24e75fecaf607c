//! Segments that lie: whatever a file holds, reading it ends, in time and with a value or an error.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, accept, bind, listen, sendmsg, socket_with,
};
use shoal_infra::{SharedSegment, U64Slice};
use shoal_stats_client::{Client, Error, Value};

const BASE: u64 = 1 << 32;

/// A socket that gives away one file, to each who asks.
struct Server {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Server {
    fn new(file: OwnedFd, clients: usize) -> Server {
        Self::saying(clients, move |socket| {
            let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let fds = [file.as_fd()];
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
            sendmsg(socket, &[], &mut control, SendFlags::empty()).unwrap();
        })
    }

    fn saying(clients: usize, say: impl Fn(&OwnedFd) + Send + 'static) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats.sock");
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&socket, 5).unwrap();
        std::thread::spawn(move || {
            for _ in 0..clients {
                say(&accept(&socket).unwrap());
            }
        });
        Server { path, _folder: folder }
    }
}

/// Words of a segment with a table of two threads, names, a link and numbers.
fn good() -> Vec<u64> {
    let mut words = vec![0u64; 512];
    let vector = |words: &mut Vec<u64>, elements: &[u64], len: u64| {
        words.push(len | 1 << 32);
        let at = words.len() as u64 * 8 + BASE;
        words.extend(elements);
        at
    };
    let rows = [vector(&mut words, &[1, 2, 3], 3), vector(&mut words, &[4, 5, 6], 3)];
    let simple = vector(&mut words, &rows, 2);
    let pairs = vector(&mut words, &[7, 70, 8, 80], 2);
    let combined = vector(&mut words, &[pairs], 1);
    let text = vector(&mut words, &[u64::from_ne_bytes(*b"pg0\0\0\0\0\0")], 4);
    let names = vector(&mut words, &[0, text], 2);
    let histogram = vector(&mut words, &[simple - BASE + BASE], 1);
    let mut directory = Vec::new();
    for (kind, value, name) in [
        (1, 9, "/sys/heartbeat"),
        (2, simple, "/if/drops"),
        (3, combined, "/if/rx"),
        (4, names, "/if/names"),
        (6, 1 | 2 << 32, "/interfaces/pg0/drops"),
        (7, histogram, "/sizes"),
        (9, 11, "/gauge"),
        (5, 0, "/removed"),
        (8, simple, "/ring"),
    ] {
        let mut name = name.as_bytes().to_vec();
        name.resize(128, 0);
        directory.extend([kind, value]);
        directory.extend(name.chunks_exact(8).map(|c| u64::from_ne_bytes(c.try_into().unwrap())));
    }
    let len = directory.len() as u64 / 18;
    let at = vector(&mut words, &directory, len);
    words.extend([0; 16]);
    words[..6].copy_from_slice(&[2, BASE, 1, 0, at, 0]);
    words
}

fn file_of(words: &[u64]) -> OwnedFd {
    let mut file = tempfile::tempfile().unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
    file.write_all(&bytes).unwrap();
    file.into()
}

/// The same in memory that is mapped, not read as a file.
fn memory_of(words: &[u64]) -> (SharedSegment, U64Slice) {
    let segment = SharedSegment::create("hostile", words.len() * 8 + 64).unwrap();
    let piece = segment.alloc_u64s(words.len()).unwrap();
    piece.iter().zip(words).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
    (segment, piece)
}

fn values_of(client: &mut Client) -> Vec<(String, Value)> {
    client.read(|_| true).unwrap().into_iter().map(|c| (c.name.to_string(), c.value)).collect()
}

#[test]
fn a_segment_is_read_the_same_mapped_or_as_a_file() {
    let words = good();
    let (segment, _piece) = memory_of(&words);
    let mapped = Server::new(segment.read_only_fd().unwrap(), 1);
    let file = Server::new(file_of(&words), 1);
    let (mut one, mut other) = (Client::connect(&mapped.path).unwrap(), Client::connect(&file.path).unwrap());
    let values = values_of(&mut one);
    assert_eq!(values, values_of(&mut other));
    let value = |name: &str| values.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    assert_eq!(value("/if/drops"), Some(Value::Simple(vec![vec![1, 2, 3], vec![4, 5, 6]])));
    assert_eq!(value("/interfaces/pg0/drops"), Some(Value::SimpleLink(vec![3, 6])));
    assert_eq!(value("/if/rx").unwrap().sum(), 15);
    assert_eq!(value("/if/names"), Some(Value::Names(vec![None, Some("pg0".into())])));
    assert_eq!((value("/removed"), value("/ring")), (None, Some(Value::Other(8))));
}

/// Every word of the segment in turn becomes something else.
#[test]
fn one_wrong_word_is_an_error_or_another_value() {
    let words = good();
    let (segment, piece) = memory_of(&words);
    let lies = [0, 1, 7, 8, u64::MAX, BASE, BASE + 8, BASE + 0xffff_fff8, 0xffff_ffff, 1 << 63, BASE + 4099];
    let server = Server::new(segment.read_only_fd().unwrap(), words.len() * lies.len());
    for at in (0..words.len()).filter(|at| *at < 8 || *at >= 512) {
        for lie in lies {
            // A writer that never finishes is the next test's.
            if at == 3 {
                continue;
            }
            piece[at].store(lie, Ordering::Relaxed);
            if let Ok(mut client) = Client::connect(&server.path) {
                let _ = client.read(|_| true);
                let _ = client.list();
            }
            piece[at].store(words[at], Ordering::Relaxed);
        }
    }
    let mut client = Client::connect(&server.path).unwrap();
    assert_eq!(values_of(&mut client).len(), 8);
}

#[test]
fn a_writer_that_died_in_the_middle_is_an_error_after_a_while() {
    let (segment, piece) = memory_of(&good());
    let server = Server::new(segment.read_only_fd().unwrap(), 1);
    let mut client = Client::connect(&server.path).unwrap();
    piece[3].store(1, Ordering::Relaxed);
    let begun = Instant::now();
    assert!(matches!(client.read(|_| true), Err(Error::Busy)));
    assert!(begun.elapsed() < Duration::from_secs(30));
    piece[3].store(0, Ordering::Relaxed);
    assert_eq!(values_of(&mut client).len(), 8);
}

/// A few words that claim to be many: each row is within the segment, all of them together are not within reason.
#[test]
fn a_counter_that_would_fill_the_readers_memory_is_refused() {
    let segment = SharedSegment::create("hostile", 1 << 30).unwrap();
    let piece = segment.alloc_u64s(1 << 26).unwrap();
    let put = |at: usize, word: u64| piece[at].store(word, Ordering::Relaxed);
    put(599, 60_000_000);
    put(511, 100);
    (512..612).for_each(|at| put(at, BASE + 600 * 8));
    put(599, 60_000_000);
    put(700, 1);
    put(701, 2);
    put(702, BASE + 512 * 8);
    put(703, u64::from_ne_bytes(*b"/if/rx\0\0"));
    for (at, word) in [2, BASE, 1, 0, BASE + 701 * 8].into_iter().enumerate() {
        put(at, word);
    }
    let server = Server::new(segment.read_only_fd().unwrap(), 1);
    let mut client = Client::connect(&server.path).unwrap();
    let error = client.read(|_| true).unwrap_err();
    assert!(matches!(error, Error::TooLarge | Error::Malformed(_)), "{error}");
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let file = File::from(file_of(&good()));
    let server = Server::new(file.try_clone().unwrap().into(), 1);
    let mut client = Client::connect(&server.path).unwrap();
    file.set_len(512).unwrap();
    assert!(matches!(client.read(|_| true), Err(Error::System(_))));
}

#[test]
fn a_server_that_says_something_else_is_named() {
    let bytes = Server::saying(1, |socket| {
        rustix::io::write(socket, b"220 hello").unwrap();
    });
    let closes = Server::saying(1, |_| ());
    let empty = Server::new(tempfile::tempfile().unwrap().into(), 1);
    for server in [&bytes, &closes] {
        let error = Client::connect(&server.path).unwrap_err();
        assert!(matches!(error, Error::Handshake { .. }), "{error}");
        assert!(error.to_string().contains("stats.sock"));
    }
    assert!(Client::connect(&empty.path).is_err());
    let mut other = good();
    other[0] = 3;
    let server = Server::new(file_of(&other), 1);
    assert!(matches!(Client::connect(&server.path), Err(Error::Version(3))));
}
