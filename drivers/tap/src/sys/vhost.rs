//! `/dev/vhost-net` (linux/vhost.h): a thread of the kernel that moves frames between a queue of a TAP and two rings in
//! this process's memory.

use std::fs::OpenOptions;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

use shoal_link::EventFd;

use shoal_shm::Mapping;

use crate::Error;
use crate::vring::Addresses;

/// `VHOST_VIRTIO`.
const KIND: u8 = 0xaf;
/// Where it is.
const DEVICE: &str = "/dev/vhost-net";

/// virtio 1.2, 5.1.3: packets to this end go over as many buffers as they need.
const MRG_RXBUF: u64 = 1 << 15;
/// virtio 1.2, 6: the ring is that of virtio 1.
const VERSION_1: u64 = 1 << 32;
const FEATURES: u64 = MRG_RXBUF | VERSION_1;

/// The kernel's numbers of the two rings.
const RX: u32 = 0;
const TX: u32 = 1;

/// `struct vhost_vring_state`.
#[repr(C)]
pub struct VringState {
    index: u32,
    num: u32,
}

/// `struct vhost_vring_file`.
#[repr(C)]
pub struct VringFile {
    index: u32,
    fd: i32,
}

/// `struct vhost_vring_addr`.
#[repr(C)]
pub struct VringAddr {
    index: u32,
    flags: u32,
    desc: u64,
    used: u64,
    avail: u64,
    log: u64,
}

/// `struct vhost_memory` with one region.
#[repr(C)]
pub struct MemoryTable {
    regions: u32,
    padding: u32,
    guest: u64,
    size: u64,
    user: u64,
    flags: u64,
}

nix::ioctl_read!(vhost_get_features, KIND, 0x00, u64);
nix::ioctl_write_ptr!(vhost_set_features, KIND, 0x00, u64);
nix::ioctl_none!(vhost_set_owner, KIND, 0x01);
// The number is that of the table's head, whose length says how many regions follow.
nix::ioctl_write_ptr_bad!(vhost_set_mem_table, nix::request_code_write!(KIND, 0x03, 8), MemoryTable);
nix::ioctl_write_ptr!(vhost_set_vring_num, KIND, 0x10, VringState);
nix::ioctl_write_ptr!(vhost_set_vring_addr, KIND, 0x11, VringAddr);
nix::ioctl_write_ptr!(vhost_set_vring_base, KIND, 0x12, VringState);
nix::ioctl_write_ptr!(vhost_set_vring_kick, KIND, 0x20, VringFile);
nix::ioctl_write_ptr!(vhost_set_vring_call, KIND, 0x21, VringFile);
nix::ioctl_write_ptr!(vhost_net_set_backend, KIND, 0x30, VringFile);

/// One of the two rings, as described to the kernel.
pub(crate) struct Ring<'a> {
    pub(crate) place: Addresses,
    /// What wakes the kernel.
    pub(crate) kick: &'a EventFd,
    /// What wakes this end, if anything.
    pub(crate) call: Option<&'a EventFd>,
}

/// A queue pair in the kernel's hands. Dropping it stops the kernel's thread.
pub(crate) struct Vhost {
    fd: OwnedFd,
    /// The kernel's thread may be in the rings.
    started: bool,
    /// Given back when the kernel is known to have let go of it.
    memory: ManuallyDrop<Arc<Mapping>>,
}

fn check(what: &'static str, result: nix::Result<i32>) -> Result<(), Error> {
    result.map(drop).map_err(|e| Error::os(what)(e.into()))
}

/// Whether this kernel, and the user who runs the router, can do it.
pub(crate) fn probe() -> Result<(), Error> {
    open().map(drop)
}

/// Opens the device, if it has what is needed.
fn open() -> Result<OwnedFd, Error> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(DEVICE);
    let fd = OwnedFd::from(file.map_err(Error::os("open(/dev/vhost-net)"))?);
    let mut features = 0;
    // SAFETY: VHOST_GET_FEATURES writes 64 bits.
    check("VHOST_GET_FEATURES", unsafe { vhost_get_features(fd.as_raw_fd(), &raw mut features) })?;
    if features & FEATURES != FEATURES {
        let missing = format!("the kernel has {features:#x}, {FEATURES:#x} is needed");
        return Err(Error::os("VHOST_GET_FEATURES")(io::Error::other(missing)));
    }
    Ok(fd)
}

impl Vhost {
    /// Lets the kernel move frames between `tap` and the rings, receive and transmit, which lie in `memory`.
    ///
    /// Its thread inherits the processors and the namespaces of the calling one.
    pub(crate) fn start(
        tap: BorrowedFd<'_>,
        memory: &Arc<Mapping>,
        [rx, tx]: &[Ring<'_>; 2],
    ) -> Result<Self, Error> {
        let mut vhost = Vhost { fd: open()?, started: false, memory: ManuallyDrop::new(Arc::clone(memory)) };
        let fd = vhost.fd.as_raw_fd();
        // SAFETY: VHOST_SET_OWNER takes no argument.
        check("VHOST_SET_OWNER", unsafe { vhost_set_owner(fd) })?;
        let features = FEATURES;
        // SAFETY: VHOST_SET_FEATURES reads 64 bits.
        check("VHOST_SET_FEATURES", unsafe { vhost_set_features(fd, &raw const features) })?;
        // Addresses in descriptors are those of this process.
        let (start, size) = (memory.address(), memory.len() as u64);
        let table = MemoryTable { regions: 1, padding: 0, guest: start, size, user: start, flags: 0 };
        // SAFETY: VHOST_SET_MEM_TABLE reads a head that says one region, and that region.
        check("VHOST_SET_MEM_TABLE", unsafe { vhost_set_mem_table(fd, &raw const table) })?;
        for (index, ring) in [(RX, rx), (TX, tx)] {
            vhost.tell(index, ring)?;
        }
        vhost.started = true;
        for index in [RX, TX] {
            vhost.set_backend(index, tap.as_raw_fd())?;
        }
        Ok(vhost)
    }

    fn tell(&self, index: u32, ring: &Ring<'_>) -> Result<(), Error> {
        let (fd, place) = (self.fd.as_raw_fd(), ring.place);
        let num = VringState { index, num: place.size.into() };
        // SAFETY: VHOST_SET_VRING_NUM reads a vhost_vring_state.
        check("VHOST_SET_VRING_NUM", unsafe { vhost_set_vring_num(fd, &raw const num) })?;
        let base = VringState { index, num: 0 };
        // SAFETY: VHOST_SET_VRING_BASE reads a vhost_vring_state.
        check("VHOST_SET_VRING_BASE", unsafe { vhost_set_vring_base(fd, &raw const base) })?;
        let Addresses { desc, avail, used, .. } = place;
        let addr = VringAddr { index, flags: 0, desc, used, avail, log: 0 };
        // SAFETY: VHOST_SET_VRING_ADDR reads a vhost_vring_addr; the addresses are those of a ring in the memory that was
        // told, which this value keeps mapped until the kernel has let go of it.
        check("VHOST_SET_VRING_ADDR", unsafe { vhost_set_vring_addr(fd, &raw const addr) })?;
        let kick = VringFile { index, fd: ring.kick.raw() };
        // SAFETY: VHOST_SET_VRING_KICK reads a vhost_vring_file.
        check("VHOST_SET_VRING_KICK", unsafe { vhost_set_vring_kick(fd, &raw const kick) })?;
        let call = VringFile { index, fd: ring.call.map_or(-1, EventFd::raw) };
        // SAFETY: VHOST_SET_VRING_CALL reads a vhost_vring_file.
        check("VHOST_SET_VRING_CALL", unsafe { vhost_set_vring_call(fd, &raw const call) })
    }

    /// Attaches a ring to a TAP's queue; with -1 takes it away, and waits until the kernel's thread has left the ring.
    fn set_backend(&self, index: u32, fd: RawFd) -> Result<(), Error> {
        let backend = VringFile { index, fd };
        // SAFETY: VHOST_NET_SET_BACKEND reads a vhost_vring_file; what the kernel then reads and writes is the memory
        // set up before, which is kept by this value.
        let set = unsafe { vhost_net_set_backend(self.fd.as_raw_fd(), &raw const backend) };
        check("VHOST_NET_SET_BACKEND", set)
    }
}

impl Drop for Vhost {
    fn drop(&mut self) {
        // Closing would do, if no other process could have the descriptor: one that was forked has it until it runs its
        // program.
        let stop = |index| if self.started { self.set_backend(index, -1) } else { Ok(()) };
        if let [Err(error), _] | [_, Err(error)] = [RX, TX].map(stop) {
            // Memory that the kernel may still write is never used again.
            tracing::error!(%error, "vhost-net does not stop; its memory is kept");
            return;
        }
        // SAFETY: it is dropped once, here, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_and_requests_are_those_of_the_kernels_header() {
        assert_eq!((size_of::<VringState>(), size_of::<VringFile>()), (8, 8));
        assert_eq!((size_of::<VringAddr>(), size_of::<MemoryTable>()), (40, 40));
        let write = |number, size| nix::request_code_write!(KIND, number, size);
        assert_eq!(nix::request_code_read!(KIND, 0x00, 8), 0x8008_af00);
        assert_eq!((write(0x00, 8), write(0x03, 8)), (0x4008_af00, 0x4008_af03));
        assert_eq!((write(0x11, size_of::<VringAddr>()), write(0x30, 8)), (0x4028_af11, 0x4008_af30));
    }
}
