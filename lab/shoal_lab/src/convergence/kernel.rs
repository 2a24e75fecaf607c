//! The kernel's table, through its socket: when it changed last, and writing into it.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt,
    socket, sockopt,
};
use shoal_lab_engine::run_in;

/// RTMGRP_IPV4_ROUTE and RTMGRP_IPV6_ROUTE (linux/rtnetlink.h).
const ROUTES: u32 = 0x40 | 0x400;
/// A small one: what does not fit is thrown away by the kernel, which costs the least. That something came is enough.
const SMALL: usize = 4096;
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(10);
/// NLMSG_ERROR (linux/netlink.h).
const ERROR: [u8; 2] = 2_u16.to_ne_bytes();

fn open(namespace: &Path, groups: u32, flags: SockFlag) -> Result<OwnedFd, String> {
    let opened = run_in(Some(namespace), || {
        let opened = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | flags,
            SockProtocol::NetlinkRoute,
        );
        Ok(opened.and_then(|fd| bind(fd.as_raw_fd(), &NetlinkAddr::new(0, groups)).map(|()| fd)))
    });
    opened.map_err(|e| e.to_string())?.map_err(|e| format!("netlink: {e}"))
}

/// Watches a namespace's tables.
pub struct KernelWatch {
    /// Nanoseconds since the clock, plus one; 0: nothing changed yet.
    changed: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl KernelWatch {
    /// From now on.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn start(namespace: &Path, clock: Instant) -> Result<Self, String> {
        let fd = open(namespace, ROUTES, SockFlag::SOCK_NONBLOCK)?;
        let _ = setsockopt(&fd, sockopt::RcvBuf, &SMALL);
        let (changed, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, over) = (changed.clone(), ends.clone());
        let thread = thread::Builder::new()
            .name("lab-kernel".into())
            .spawn(move || {
                let mut bytes = vec![0; 64 << 10];
                while !over.load(Ordering::Relaxed) {
                    let now = clock.elapsed().as_nanos() as u64 + 1;
                    let mut any = false;
                    // What is thrown away for want of room was there, too.
                    while let Ok(_) | Err(Errno::ENOBUFS) =
                        recv(fd.as_raw_fd(), &mut bytes, MsgFlags::empty())
                    {
                        any = true;
                    }
                    if any {
                        seen.store(now, Ordering::Relaxed);
                    }
                    thread::sleep(LOOK);
                }
            })
            .map_err(|e| e.to_string())?;
        Ok(KernelWatch { changed, ends, thread: Some(thread) })
    }

    /// When a route changed last, in seconds since the clock, to 10 ms.
    pub fn last(&self) -> Option<f64> {
        match self.changed.load(Ordering::Relaxed) {
            0 => None,
            at => Some(at as f64 / 1e9),
        }
    }
}

impl Drop for KernelWatch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes into a namespace's tables.
pub struct KernelTable(OwnedFd);

impl KernelTable {
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn open(namespace: &Path) -> Result<Self, String> {
        open(namespace, 0, SockFlag::empty()).map(KernelTable)
    }

    /// Gives the kernel messages; it has done what they say when this returns. None of them asks for an answer, so what comes is an
    /// error.
    ///
    /// # Errors
    ///
    /// The first one that the kernel tells.
    pub fn write(&self, pieces: &[Vec<u8>]) -> Result<(), String> {
        let fd = self.0.as_raw_fd();
        let mut bytes = vec![0; 64 << 10];
        let mut wrong = 0_u64;
        let mut first = None;
        for piece in pieces {
            send(fd, piece, MsgFlags::empty()).map_err(|e| format!("netlink: {e}"))?;
            while let Ok(n) = recv(fd, &mut bytes, MsgFlags::MSG_DONTWAIT) {
                let answer = bytes.get(..n).unwrap_or_default();
                if answer.get(4..6) == Some(&ERROR) {
                    let number =
                        answer.get(16..20).and_then(|b| b.try_into().ok()).map_or(0, i32::from_ne_bytes);
                    first = first.or(Some(Errno::from_raw(-number)));
                    wrong += 1;
                }
            }
        }
        match first {
            None => Ok(()),
            Some(first) => Err(format!("the kernel refused {wrong} messages: {first}")),
        }
    }
}
