//! What a vhost-user front end may say: messages of any kind in any order, with memory, eventfds and other descriptors.
//! Each message is two bytes (its kind; how many descriptors and of what) and words of which each is a byte of the input: a
//! ring, a size, a place in or near the guest's memory. A message of kind 255 has its body from the input as it is.
#![no_main]

use std::cell::RefCell;
use std::os::fd::OwnedFd;

use libfuzzer_sys::fuzz_target;
use rustix::event::EventfdFlags;
use rustix::fs::MemfdFlags;
use shoal_vhost_user::{
    FEATURES, Features, Gate, HEADER_BYTES, Header, MOST_RINGS, Message, PeerFd, Queue, Rings, Session, Trust,
};

const LEN: u64 = 256 << 10;
/// Where the front end says that it has mapped the memory.
const USER: u64 = 0x7f00_0000_0000;

/// Rings that go nowhere, but are counted.
struct DetachedRings(RefCell<Vec<Option<Queue>>>);

impl Rings for DetachedRings {
    fn start(&self, ring: u32, queue: Queue, _: Gate) -> Result<(), String> {
        let old = self.0.borrow_mut()[ring as usize].replace(queue);
        assert!(old.is_none(), "ring {ring} is started twice");
        Ok(())
    }

    fn stop(&self, ring: u32) {
        assert!(self.0.borrow_mut()[ring as usize].take().is_some(), "ring {ring} is not started");
    }
}

fn memory() -> OwnedFd {
    let fd =
        rustix::fs::memfd_create("guest", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).expect("memory");
    rustix::fs::ftruncate(&fd, LEN).expect("memory");
    fd
}

/// A word of the body: what stands there in messages that are nearly right.
fn word(request: u32, at: usize, byte: u8) -> u64 {
    let near = u64::from(byte & 7);
    match (request, at) {
        (2, _) => FEATURES
            .iter()
            .fold(1 << 32, |all, (bit, _)| if byte & 1 << (bit % 8) != 0 { all | 1 << bit } else { all }),
        (16, _) => [9, 1, 8, 0, 1 << near][usize::from(byte % 5)],
        (5, 0) => near,
        // Guest's place, size, place of the front end, place in the file.
        (5, n) => match n % 4 {
            1 => near << 16,
            2 => [LEN, 65_536, 4096, 0, LEN + 1, u64::MAX, 100, 1 << 40][usize::from(byte & 7)],
            3 => USER + (near << 16),
            _ => [0, 4096, 65_536, 1, LEN, u64::MAX & !4095, 0, 0][usize::from(byte & 7)],
        },
        (8, _) => near | [256, 8, 1, 32_768, 65_536, 0, 7, 64][usize::from(byte >> 5)] << 32,
        (9, 0) => near,
        (9, _) => USER + (u64::from(byte) << 10) - u64::from(byte == 255),
        _ => near | u64::from(byte >> 5) << 32 | u64::from(byte & 8) << 5,
    }
}

fuzz_target!(|data: &[u8]| {
    if let Some((head, _)) = data.split_first_chunk::<HEADER_BYTES>()
        && let Ok(header) = Header::decode(*head)
    {
        assert_eq!(Header::decode(header.encode()), Ok(header));
    }
    let guest = memory();
    let nowhere = DetachedRings(RefCell::new((0..MOST_RINGS).map(|_| None).collect()));
    let mut session = Session::new(Features::offered(u64::MAX), Trust::NoGuest);
    let mut rest = data;
    while let Some(([kind, about], more)) = rest.split_first_chunk::<2>() {
        let (request, words) = match kind {
            255 => (u32::from(*about), 0),
            _ => (u32::from(kind % 20), usize::from(about >> 4)),
        };
        let (body, more): (Vec<u8>, _) = if *kind == 255 {
            let n = more.len().min(64);
            (more[..n].to_vec(), &more[n..])
        } else {
            let n = more.len().min(words);
            let words = more[..n].iter().enumerate().map(|(i, byte)| word(request, i, *byte));
            (words.flat_map(u64::to_le_bytes).collect(), &more[n..])
        };
        rest = more;
        let count = usize::from(about & 3) + if request == 5 { usize::from(about & 4) } else { 0 };
        let fds: Vec<OwnedFd> = (0..count)
            .map(|_| match (request, about & 8) {
                (5, 0) => guest.try_clone().expect("a descriptor"),
                (_, 0) => rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor"),
                _ => std::fs::File::open("/dev/null").expect("it is there").into(),
            })
            .collect();
        let _ = Message::decode(request, &body, count);
        let header = Header { request, need_reply: about & 1 != 0, size: body.len() };
        let heard = session.hear(header, &body, fds.into_iter().map(PeerFd::from).collect(), &nowhere);
        let running = session.rings().iter().filter(|r| r.running.is_some()).count();
        assert_eq!(running, nowhere.0.borrow().iter().flatten().count());
        if heard.is_err() {
            break;
        }
    }
    session.stop_all(&nowhere);
    assert!(nowhere.0.borrow().iter().all(Option::is_none));
});
