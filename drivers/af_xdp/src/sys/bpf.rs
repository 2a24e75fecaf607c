//! `bpf(2)`: maps, programs, and the link that ties a program to an interface.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

use shoal_link::IfIndex;

use crate::Error;
use crate::asm::Insn;

const MAP_CREATE: i64 = 0;
const MAP_LOOKUP: i64 = 1;
const MAP_UPDATE: i64 = 2;
const MAP_DELETE: i64 = 3;
const PROG_LOAD: i64 = 5;
#[cfg(test)]
const PROG_TEST_RUN: i64 = 10;
const LINK_CREATE: i64 = 28;
const LINK_DETACH: i64 = 34;

const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// The program takes frames in several pieces.
const XDP_HAS_FRAGS: u32 = 1 << 5;
/// No memory for entries that are not there: what the kernel asks of prefix tables.
const NO_PREALLOC: u32 = 1;
/// What the verifier says is at most this long.
const LOG: usize = 64 << 10;

/// How often a call is made that a signal ends: the verifier gives up when one is waiting, and some drivers of DPDK's send
/// one for each packet.
const TRIES: usize = 50;

/// What a map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapKind {
    Hash = 1,
    Array = 2,
    PerCpuArray = 6,
    Prefixes = 11,
    Sockets = 17,
}

/// Calls `bpf`.
///
/// # Safety
/// `attr` is the structure of `command`, without padding. What its addresses lead to is as long as the command takes it to be,
/// writable where the command writes, and stays for the call.
unsafe fn bpf<T>(command: i64, attr: &mut T) -> io::Result<i32> {
    let size = size_of::<T>();
    again_after_signals(|| {
        // SAFETY: `attr` is `size` bytes that we hold by `&mut`; the caller vouches for what its addresses lead to.
        let rc = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attr), size) };
        if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc as i32) }
    })
}

/// Calls `bpf` to make something.
///
/// # Safety
/// As [`bpf`]; `command` is one that makes a descriptor.
unsafe fn bpf_new<T>(command: i64, attr: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller vouches for the first; the second is a descriptor that the kernel has just made for us.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(command, attr)?)) }
}

/// Makes a call again that was ended by a signal, so many times.
fn again_after_signals(mut call: impl FnMut() -> io::Result<i32>) -> io::Result<i32> {
    let mut result = call();
    for _ in 1..TRIES {
        match &result {
            Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => result = call(),
            _ => break,
        }
    }
    result
}

#[repr(C)]
struct MapAttr {
    kind: u32,
    key: u32,
    value: u32,
    most: u32,
    flags: u32,
    inner: u32,
    numa: u32,
    name: [u8; 16],
}

#[repr(C)]
struct ElementAttr {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct LoadAttr {
    kind: u32,
    count: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach: u32,
}

#[cfg(test)]
#[repr(C)]
struct TestAttr {
    program: u32,
    result: u32,
    data_in_size: u32,
    data_out_size: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
}

#[repr(C)]
struct DetachAttr {
    link: u32,
}

#[repr(C)]
struct LinkAttr {
    program: u32,
    ifindex: u32,
    attach: u32,
    flags: u32,
}

/// Names are letters, digits and `_`, at most 15 of them.
fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name.iter_mut().zip(text.bytes().take(15)).for_each(|(to, from)| *to = from);
    name
}

/// A table that the program and the router share.
pub(crate) struct Map {
    fd: OwnedFd,
    key: usize,
    value: usize,
    kind: MapKind,
}

impl Map {
    /// A map of `most` entries; keys and values have so many bytes.
    pub(crate) fn create(
        kind: MapKind,
        text: &str,
        key: usize,
        value: usize,
        most: u32,
    ) -> Result<Self, Error> {
        let flags = if kind == MapKind::Prefixes { NO_PREALLOC } else { 0 };
        let mut attr = MapAttr {
            kind: kind as u32,
            key: key as u32,
            value: value as u32,
            most,
            flags,
            inner: 0,
            numa: 0,
            name: name(text),
        };
        // SAFETY: BPF_MAP_CREATE makes a descriptor; its structure has no addresses.
        let fd = unsafe { bpf_new(MAP_CREATE, &mut attr) }.map_err(Error::os("bpf(BPF_MAP_CREATE)"))?;
        Ok(Self { fd, key, value, kind })
    }

    /// Its descriptor, for the program's instructions.
    pub(crate) fn descriptor(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    fn element(&self, key: &[u8]) -> Result<ElementAttr, Error> {
        if key.len() != self.key {
            let (what, rule) = ("length of a map's key", "that of its map");
            return Err(Error::Config { what, value: key.len() as u64, rule });
        }
        Ok(ElementAttr {
            map: self.fd.as_raw_fd() as u32,
            pad: 0,
            key: key.as_ptr() as u64,
            value: 0,
            flags: 0,
        })
    }

    /// Writes an entry, new or not.
    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let mut attr = self.element(key)?;
        if value.len() != self.value || self.kind == MapKind::PerCpuArray {
            let (what, rule) = ("length of a map's value", "that of its map");
            return Err(Error::Config { what, value: value.len() as u64, rule });
        }
        attr.value = value.as_ptr() as u64;
        // SAFETY: the key is as long as the map's (`element`), the value too; both are borrowed and only read.
        unsafe { bpf(MAP_UPDATE, &mut attr) }.map(drop).map_err(Error::os("bpf(BPF_MAP_UPDATE_ELEM)"))
    }

    /// Removes an entry; one that is not there is no error.
    pub(crate) fn remove(&self, key: &[u8]) -> Result<(), Error> {
        // SAFETY: the key is as long as the map's (`element`), borrowed and only read.
        match unsafe { bpf(MAP_DELETE, &mut self.element(key)?) } {
            Err(e) if e.raw_os_error() != Some(libc::ENOENT) => Err(Error::os("bpf(BPF_MAP_DELETE_ELEM)")(e)),
            _ => Ok(()),
        }
    }

    /// The sum of a counter over all processors.
    pub(crate) fn sum(&self, index: u32) -> Result<u64, Error> {
        let key = index.to_ne_bytes();
        let mut attr = self.element(&key)?;
        if self.kind != MapKind::PerCpuArray || self.value != 8 {
            let (what, rule) = ("length of a map's value", "that of a counter for each processor");
            return Err(Error::Config { what, value: self.value as u64, rule });
        }
        // The kernel writes eight bytes for each processor that could be there, and does not ask how much room there is.
        let mut values = vec![0u64; possible_processors()];
        attr.value = values.as_mut_ptr() as u64;
        // SAFETY: the key is as long as the map's (`element`); the values have room for each processor that could be there.
        unsafe { bpf(MAP_LOOKUP, &mut attr) }.map_err(Error::os("bpf(BPF_MAP_LOOKUP_ELEM)"))?;
        Ok(values.iter().fold(0, |sum, n| sum.wrapping_add(*n)))
    }
}

/// Processors that could be there, which is what the kernel counts for; more than any kernel takes if it does not say.
fn possible_processors() -> usize {
    static POSSIBLE: OnceLock<usize> = OnceLock::new();
    *POSSIBLE.get_or_init(|| {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        let last = text.trim().rsplit([',', '-']).next().and_then(|n| n.parse::<usize>().ok());
        last.map_or(8192, |last| last + 1)
    })
}

/// A program that the kernel has accepted.
pub(crate) struct Program(OwnedFd);

/// How a program sees frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before the kernel makes packets of them.
    Native,
    /// In the kernel's stack: any driver, more work for each frame.
    Generic,
}

impl Program {
    /// Loads an XDP program; `frags` says that it takes frames in several pieces.
    pub(crate) fn load(code: &[Insn], text: &str, frags: bool) -> Result<Self, Error> {
        let load = |log: &mut [u8]| {
            let mut attr = LoadAttr {
                kind: PROG_TYPE_XDP,
                count: code.len() as u32,
                code: code.as_ptr() as u64,
                license: c"Apache-2.0".as_ptr() as u64,
                log_level: u32::from(!log.is_empty()),
                log_size: log.len() as u32,
                log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
                kernel: 0,
                flags: if frags { XDP_HAS_FRAGS } else { 0 },
                name: name(text),
                ifindex: 0,
                attach: ATTACH_XDP,
            };
            // SAFETY: BPF_PROG_LOAD makes a descriptor; code, licence and log are borrowed, and have the lengths given
            // here.
            unsafe { bpf_new(PROG_LOAD, &mut attr) }
        };
        match load(&mut []) {
            Ok(fd) => Ok(Self(fd)),
            Err(source) if source.raw_os_error() == Some(libc::EPERM) => {
                Err(Error::os("bpf(BPF_PROG_LOAD), which needs CAP_BPF and CAP_NET_ADMIN")(source))
            }
            Err(source) => {
                // Once more, for its reasons.
                let mut log = vec![0; LOG];
                let _ = load(&mut log);
                let text = String::from_utf8_lossy(&log);
                let lines: Vec<_> = text.trim_end_matches('\0').trim().lines().rev().take(4).collect();
                let log = lines.iter().rev().fold(String::new(), |log, line| log + "; " + line);
                Err(Error::Program { source, log })
            }
        }
    }

    /// Ties the program to an interface, until the link is dropped or the process ends.
    pub(crate) fn attach(&self, ifindex: IfIndex, mode: XdpMode) -> Result<XdpLink, Error> {
        let flags = if mode == XdpMode::Native { 1 << 2 } else { 1 << 1 };
        let program = self.0.as_raw_fd() as u32;
        let mut attr = LinkAttr { program, ifindex: ifindex.get(), attach: ATTACH_XDP, flags };
        // SAFETY: BPF_LINK_CREATE makes a descriptor; its structure has no addresses.
        let fd = unsafe { bpf_new(LINK_CREATE, &mut attr) }.map_err(Error::os("bpf(BPF_LINK_CREATE)"))?;
        Ok(XdpLink { fd, mode })
    }

    /// Runs the program over a frame: what it decides.
    #[cfg(test)]
    pub(crate) fn run(&self, frame: &[u8]) -> Result<u32, Error> {
        let mut attr = TestAttr {
            program: self.0.as_raw_fd() as u32,
            result: 0,
            data_in_size: frame.len() as u32,
            data_out_size: 0,
            data_in: frame.as_ptr() as u64,
            data_out: 0,
            repeat: 1,
            duration: 0,
        };
        // SAFETY: both frames are borrowed, and have the lengths given here.
        unsafe { bpf(PROG_TEST_RUN, &mut attr) }.map_err(Error::os("bpf(BPF_PROG_TEST_RUN)"))?;
        Ok(attr.result)
    }
}

/// A program on an interface. It is taken away when this is dropped, by the kernel when the process ends.
pub(crate) struct XdpLink {
    fd: OwnedFd,
    mode: XdpMode,
}

impl XdpLink {
    /// How it sees frames.
    pub(crate) fn mode(&self) -> XdpMode {
        self.mode
    }
}

impl Drop for XdpLink {
    /// Closing the descriptor is not enough: the interface is free only when the last copy of it is closed, and a child
    /// of this process that has not started its program yet has one.
    fn drop(&mut self) {
        let mut attr = DetachAttr { link: self.fd.as_raw_fd() as u32 };
        // An interface that is gone has no program, and a kernel that does not know the command detaches on close.
        // SAFETY: the structure of BPF_LINK_DETACH has no addresses.
        let _ = unsafe { bpf(LINK_DETACH, &mut attr) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_signals_end_is_made_again_and_no_other() {
        let calls = |errors: &[i32]| {
            let mut made = 0;
            let result = again_after_signals(|| {
                made += 1;
                errors.get(made - 1).map_or(Ok(7), |e| Err(io::Error::from_raw_os_error(*e)))
            });
            (made, result.map_err(|e| e.raw_os_error()))
        };
        assert_eq!(calls(&[]), (1, Ok(7)));
        assert_eq!(calls(&[libc::EAGAIN, libc::EINTR, libc::EAGAIN]), (4, Ok(7)));
        assert_eq!(calls(&[libc::EAGAIN, libc::EACCES]), (2, Err(Some(libc::EACCES))));
        assert_eq!(calls(&[libc::EAGAIN; 100]), (50, Err(Some(libc::EAGAIN))));
    }
}
