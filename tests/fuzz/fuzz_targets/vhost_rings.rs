//! What a guest may write: descriptors, tables, indices and packets of two rings, between looks at them. The first byte chooses
//! the features, each six bytes after it are one thing that the guest does, or this end.
#![no_main]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use rustix::fs::MemfdFlags;
use shoal_vhost_user::{
    Call, Features, FoundPackets, GuestMemory, Queue, Reader, RegionDescription, Sender, Trust, Vring,
    VringPlace,
};

const LEN: u64 = 64 << 10;
const HALF: u64 = LEN / 2;
const SIZE: u32 = 16;
/// Where the hypervisor sees the memory, and where the guest sees its second half.
const USER: u64 = 0x7f00_0000_0000;
const HIGH: u64 = 0x1_0000_0000;

/// Descriptors, available and used ring of each of the two.
const RINGS: [u64; 2] = [0, 0x400];
const AVAIL: u64 = 0x100;
const USED: u64 = 0x200;

fn vring(memory: &Arc<GuestMemory>, at: u64) -> Vring {
    let place = VringPlace { desc: USER + at, avail: USER + at + AVAIL, used: USER + at + USED };
    Vring::new(memory, place, SIZE).expect("it is all there")
}

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let fd =
        rustix::fs::memfd_create("guest", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).expect("memory");
    rustix::fs::ftruncate(&fd, LEN).expect("memory");
    let said = [
        RegionDescription { guest: 0, size: HALF, user: USER, offset: 0 },
        RegionDescription { guest: HIGH, size: HALF, user: USER + HALF, offset: HALF },
    ];
    let fds = [fd.try_clone().expect("a descriptor"), fd.try_clone().expect("a descriptor")];
    let memory = Arc::new(GuestMemory::open(&said, &fds, Trust::NoGuest).expect("it is all there"));
    let file = File::from(fd);
    let write = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at % (LEN - 16)).expect("memory");
    // Merged buffers, tables, event indices, the modern header.
    let features = [15, 28, 29, 32].iter().enumerate().filter(|(n, _)| first & 1 << n != 0);
    let features = Features(features.fold(1 << 30, |all, (_, bit)| all | 1 << bit));
    let queue = |at| Queue::new(vring(&memory, at), features, 0, Call::default(), None, Arc::default());
    let (mut queue, mut sender) = (queue(RINGS[0]), Sender::new(queue(RINGS[1])));
    let mut found = FoundPackets::default();
    let mut given = [0_u16; 2];
    for act in rest.chunks_exact(6) {
        let [kind, a, b, c, d, e] = *act else { unreachable!("six bytes") };
        let (low, high) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let which = usize::from(kind >> 7);
        let ring = RINGS[which];
        match kind & 7 {
            // A descriptor: place, length, flags, next.
            0 | 1 => {
                let addr = u64::from(low) << (kind >> 3 & 3) | if e & 0x80 == 0 { 0 } else { HIGH };
                let len = u32::from(high) << (e >> 5 & 1) * 8;
                let rest = u64::from(len) | u64::from(e & 7) << 32 | u64::from(c & 31) << 48;
                let bytes = (u128::from(addr) | u128::from(rest) << 64).to_le_bytes();
                // In the ring, or where a table might be.
                let at = if kind & 1 == 0 { ring } else { 0x800 };
                write(at + u64::from(kind >> 3 & 15) * 16, &bytes);
            }
            // A chain.
            2 => {
                write(
                    ring + AVAIL + 4 + u64::from(given[which] % SIZE as u16) * 2,
                    &u16::from(a & 31).to_le_bytes(),
                );
                given[which] = given[which].wrapping_add(1);
                write(ring + AVAIL + 2, &given[which].to_le_bytes());
            }
            // Whatever it likes.
            3 => write(low.into(), &[c, d, e]),
            4 => write(ring + AVAIL + 2, &low.to_le_bytes()),
            5 => {
                let packet = vec![a; usize::from(high) + usize::from(e & 1) * 8];
                let (one, two) = packet.split_at(packet.len() / 3);
                if sender.begin().is_err() {
                    return;
                }
                let _ = sender.send(&[b; 10], packet.len(), [one, two].into_iter());
                sender.show();
            }
            6 => {
                let _ = queue.arm();
                queue.disarm();
            }
            _ => {
                if queue.find(&mut found).is_err() {
                    return;
                }
                for i in 0..found.len() {
                    let (pieces, bytes) = found.packet(i);
                    let mut to = vec![0; bytes as usize];
                    let mut reader = Reader::new(queue.memory(), pieces);
                    reader.read(&mut to).expect("it was checked");
                    assert!(reader.read(&mut [0]).is_none(), "there is no more");
                    assert!((11..=12 + 65_535 + 22).contains(&bytes));
                }
                queue.release(&found);
            }
        }
    }
});
