//! The border to the shim: its functions with safe signatures.
//!
//! Every function of the main thread takes the number of a port, which the shim checks. Those of the data path get the
//! router's burst, as the ABI describes it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::RawFd;

use shoal_plugin_sdk::{Arm, Burst, Level, abi, log};

/// Bytes of a name in the shim.
const NAME: usize = 64;

/// `struct dpdk_info`.
#[repr(C)]
#[derive(Clone)]
struct RawInfo {
    device: [c_char; NAME],
    driver: [c_char; NAME],
    mac: [u8; 6],
    started: u8,
    multi_segs: u8,
    max_rx_queues: u16,
    max_tx_queues: u16,
    min_mtu: u16,
    max_mtu: u16,
    mtu: u16,
    rx_desc_min: u16,
    rx_desc_max: u16,
    tx_desc_min: u16,
    tx_desc_max: u16,
    numa: i32,
    speed_capa: u32,
    rx_capa: u64,
    tx_capa: u64,
    rx_offloads: u64,
    tx_offloads: u64,
    rss_capa: u64,
    rss: u64,
    interrupts: i32,
    no_interrupts: i32,
}

/// `struct dpdk_config`: how a port is set up.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) rx_queues: u16,
    pub(crate) tx_queues: u16,
    /// 0: the driver's choice.
    pub(crate) rx_desc: u16,
    pub(crate) tx_desc: u16,
    /// 0: what it has.
    pub(crate) mtu: u16,
    pub(crate) multi_segs: u8,
    pub(crate) tx_checksum: u8,
    pub(crate) rx_checksum: u8,
    pub(crate) tso: u8,
    pub(crate) jumbo: u8,
    pub(crate) mbufs: u32,
    pub(crate) interrupts: u8,
}

/// `struct dpdk_link`.
#[repr(C)]
#[derive(Default)]
struct RawLink {
    up: u8,
    gone: u8,
    mbps: u32,
    missed: u64,
}

type RawLog = unsafe extern "C" fn(u32, *const c_char, usize);
type RawStat = unsafe extern "C" fn(*mut c_void, *const c_char, u64);

unsafe extern "C" {
    fn dpdk_start(argc: c_int, argv: *mut *mut c_char, log: RawLog) -> c_int;
    fn dpdk_cpus(text: *mut c_char, room: usize);
    fn dpdk_version() -> *const c_char;
    fn dpdk_error(error: c_int) -> *const c_char;
    fn dpdk_probe(devargs: *const c_char, port: *mut u16) -> c_int;
    fn dpdk_next(port: u16) -> c_int;
    fn dpdk_info(port: u16, info: *mut RawInfo) -> c_int;
    fn dpdk_configure(port: u16, config: *const Setup) -> c_int;
    fn dpdk_set_mtu(port: u16, mtu: u16) -> c_int;
    fn dpdk_up(port: u16) -> c_int;
    fn dpdk_down(port: u16) -> c_int;
    fn dpdk_set_mac(port: u16, mac: *const u8) -> c_int;
    fn dpdk_set_promiscuous(port: u16, on: c_int) -> c_int;
    fn dpdk_link(port: u16, link: *mut RawLink) -> c_int;
    fn dpdk_xstats(port: u16, tell: RawStat, to: *mut c_void) -> c_int;
    fn dpdk_close(port: u16) -> c_int;
    fn dpdk_wait(port: u16, queue: u16) -> c_int;
    fn dpdk_pool(position: u32, name: *mut c_char, room: usize, numbers: *mut u32) -> c_int;
    fn dpdk_poll(port: u32, queue: u32) -> u32;
    fn dpdk_arm(port: u32, queue: u32) -> c_int;
    fn dpdk_disarm(port: u32, queue: u32);
    fn dpdk_receive(burst: *mut abi::Burst);
    fn dpdk_send(burst: *mut abi::Burst);
}

/// What DPDK's numbers of errors mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(c_int);

impl Errno {
    /// The device is there already.
    pub(crate) fn is_exists(self) -> bool {
        self.0 == -17
    }

    /// There is no such device, or no driver for it.
    pub(crate) fn is_absent(self) -> bool {
        matches!(self.0, -19 | -2)
    }

    /// The driver does not do that.
    pub(crate) fn is_unsupported(self) -> bool {
        self.0 == -95
    }
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: a function that takes a number and returns a text of the calling thread, which is copied at once.
        let text = unsafe { CStr::from_ptr(dpdk_error(self.0)) };
        f.write_str(&text.to_string_lossy())
    }
}

fn done(code: c_int) -> Result<(), Errno> {
    if code < 0 { Err(Errno(code)) } else { Ok(()) }
}

/// A port as DPDK describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Info {
    pub(crate) device: String,
    pub(crate) driver: String,
    pub(crate) mac: [u8; 6],
    pub(crate) started: bool,
    pub(crate) multi_segs: bool,
    pub(crate) max_rx_queues: u16,
    pub(crate) max_tx_queues: u16,
    pub(crate) min_mtu: u16,
    pub(crate) max_mtu: u16,
    pub(crate) mtu: u16,
    pub(crate) rx_desc: (u16, u16),
    pub(crate) tx_desc: (u16, u16),
    pub(crate) numa: i32,
    pub(crate) speed_capa: u32,
    pub(crate) rx_capa: u64,
    pub(crate) tx_capa: u64,
    pub(crate) rx_offloads: u64,
    pub(crate) tx_offloads: u64,
    pub(crate) rss_capa: u64,
    pub(crate) rss: u64,
    /// Receive queues that have interrupts; `None` before the port was started.
    pub(crate) interrupts: Option<u16>,
    /// Why some have none.
    pub(crate) no_interrupts: Option<String>,
}

/// A port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Link {
    pub(crate) up: bool,
    pub(crate) gone: bool,
    pub(crate) mbps: u32,
    pub(crate) missed: u64,
}

/// A pool of packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) name: String,
    /// Bytes of a packet in one part.
    pub(crate) room: u32,
    /// All of them; 0 until the pool is needed.
    pub(crate) size: u32,
    pub(crate) free: u32,
    pub(crate) used: u32,
}

fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|c| c.cast_unsigned()).take_while(|b| *b != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("`{}' has a zero in it, expected text", text.escape_debug()))
}

unsafe extern "C" fn log_line(level: u32, text: *const c_char, length: usize) {
    if text.is_null() {
        return;
    }
    // SAFETY: the shim's text of that length.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    // DPDK's numbers are those of syslog, one higher.
    let level = match level {
        0..=4 => Level::Err,
        5 => Level::Warn,
        6 => Level::Notice,
        _ => Level::Debug,
    };
    for line in String::from_utf8_lossy(bytes).lines().filter(|l| !l.trim().is_empty()) {
        log(level, line);
    }
}

/// Starts the EAL with these arguments, the program's name first.
pub(crate) fn start(arguments: &[String]) -> Result<(), String> {
    // It keeps pointers into them.
    let mut kept = Vec::new();
    for argument in arguments {
        kept.push(c_string(argument)?.into_raw());
    }
    kept.push(std::ptr::null_mut());
    let kept: &'static mut [*mut c_char] = kept.leak();
    let count = kept.len() - 1;
    // SAFETY: texts and their array are never freed; there is a null pointer behind the last; the function lives as long
    // as the library.
    let code = unsafe { dpdk_start(count as c_int, kept.as_mut_ptr(), log_line) };
    done(code).map_err(|e| e.to_string())
}

/// The processors that this process may use: `0,1,4`.
pub(crate) fn cpus() -> String {
    let mut room = [0; 1024];
    // SAFETY: `room` is as long as its length; the text ends with a zero.
    unsafe { dpdk_cpus(room.as_mut_ptr(), room.len()) };
    text(&room)
}

/// DPDK's version.
pub(crate) fn version() -> String {
    // SAFETY: a constant text.
    unsafe { CStr::from_ptr(dpdk_version()) }.to_string_lossy().into_owned()
}

/// Probes a device: the port it became.
pub(crate) fn probe(devargs: &str) -> Result<u16, Result<Errno, String>> {
    let devargs = c_string(devargs).map_err(Err)?;
    let mut port = 0;
    // SAFETY: a text that ends, and a number to write.
    done(unsafe { dpdk_probe(devargs.as_ptr(), &raw mut port) }).map_err(Ok)?;
    Ok(port)
}

/// All ports.
pub(crate) fn ports() -> Vec<u16> {
    let mut all = Vec::new();
    let mut from = 0;
    // SAFETY: a function that takes a number.
    while let Ok(port) = u16::try_from(unsafe { dpdk_next(from) }) {
        all.push(port);
        from = port + 1;
    }
    all
}

/// What DPDK knows of a port.
pub(crate) fn info(port: u16) -> Result<Info, Errno> {
    let mut raw = std::mem::MaybeUninit::<RawInfo>::zeroed();
    // SAFETY: the shim fills the structure, or leaves it zero.
    done(unsafe { dpdk_info(port, raw.as_mut_ptr()) })?;
    // SAFETY: integers and arrays of them.
    let raw = unsafe { raw.assume_init() };
    Ok(Info {
        device: text(&raw.device),
        driver: text(&raw.driver),
        mac: raw.mac,
        started: raw.started != 0,
        multi_segs: raw.multi_segs != 0,
        max_rx_queues: raw.max_rx_queues,
        max_tx_queues: raw.max_tx_queues,
        min_mtu: raw.min_mtu,
        max_mtu: raw.max_mtu,
        mtu: raw.mtu,
        rx_desc: (raw.rx_desc_min, raw.rx_desc_max),
        tx_desc: (raw.tx_desc_min, raw.tx_desc_max),
        numa: raw.numa,
        speed_capa: raw.speed_capa,
        rx_capa: raw.rx_capa,
        tx_capa: raw.tx_capa,
        rx_offloads: raw.rx_offloads,
        tx_offloads: raw.tx_offloads,
        rss_capa: raw.rss_capa,
        rss: raw.rss,
        interrupts: u16::try_from(raw.interrupts).ok(),
        no_interrupts: (raw.no_interrupts != 0).then(|| Errno(-raw.no_interrupts).to_string()),
    })
}

/// Sets a port up.
pub(crate) fn configure(port: u16, setup: &Setup) -> Result<(), Errno> {
    // SAFETY: a structure that the shim reads.
    done(unsafe { dpdk_configure(port, setup) })
}

/// Changes a port's MTU; what cannot be leaves it as it was.
pub(crate) fn set_mtu(port: u16, mtu: u16) -> Result<(), Errno> {
    // SAFETY: a function that takes numbers.
    done(unsafe { dpdk_set_mtu(port, mtu) })
}

/// Starts or stops a port.
pub(crate) fn set_admin(port: u16, up: bool) -> Result<(), Errno> {
    // SAFETY: a function that takes a number.
    done(unsafe { if up { dpdk_up(port) } else { dpdk_down(port) } })
}

/// Gives a port another address.
pub(crate) fn set_mac(port: u16, mac: [u8; 6]) -> Result<(), Errno> {
    // SAFETY: six bytes that the shim reads.
    done(unsafe { dpdk_set_mac(port, mac.as_ptr()) })
}

/// Whether a port takes all frames.
pub(crate) fn set_promiscuous(port: u16, on: bool) -> Result<(), Errno> {
    // SAFETY: a function that takes numbers.
    done(unsafe { dpdk_set_promiscuous(port, on.into()) })
}

/// A port's link.
pub(crate) fn link(port: u16) -> Option<Link> {
    let mut raw = RawLink::default();
    // SAFETY: a structure that the shim writes.
    done(unsafe { dpdk_link(port, &raw mut raw) }).ok()?;
    let RawLink { up, gone, mbps, missed } = raw;
    Some(Link { up: up != 0, gone: gone != 0, mbps, missed })
}

unsafe extern "C" fn add_stat(to: *mut c_void, name: *const c_char, value: u64) {
    // SAFETY: the list of `xstats`, which has no other user while the shim runs; the name ends with a zero.
    unsafe {
        let name = CStr::from_ptr(name).to_string_lossy().into_owned();
        (*to.cast::<Vec<(String, u64)>>()).push((name, value));
    }
}

/// A port's own counters.
pub(crate) fn xstats(port: u16) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    // SAFETY: the function gets the list back and nothing else has it.
    let code = unsafe { dpdk_xstats(port, add_stat, (&raw mut all).cast()) };
    if code < 0 { Vec::new() } else { all }
}

/// Closes a port and lets its device go.
pub(crate) fn close(port: u16) -> Result<(), Errno> {
    // SAFETY: a function that takes a number; the router does not call the data path for the port any more.
    done(unsafe { dpdk_close(port) })
}

/// The pools.
pub(crate) fn pools() -> Vec<Pool> {
    let mut all = Vec::new();
    loop {
        let (mut name, mut numbers) = ([0; NAME], [0; 4]);
        // SAFETY: as much room as is told, and four numbers.
        if unsafe { dpdk_pool(all.len() as u32, name.as_mut_ptr(), name.len(), numbers.as_mut_ptr()) } < 0 {
            return all;
        }
        let [room, size, free, used] = numbers;
        all.push(Pool { name: text(&name), room, size, free, used });
    }
}

/// Takes packets from a queue.
pub(crate) fn poll(port: u32, queue: u32) -> u32 {
    // SAFETY: the shim checks the numbers; one thread at a time calls it for a queue, says the ABI.
    unsafe { dpdk_poll(port, queue) }
}

/// What tells of packets of a queue that is armed.
pub(crate) fn wait(port: u16, queue: u16) -> Option<RawFd> {
    // SAFETY: a function that takes numbers, which it checks.
    let fd = unsafe { dpdk_wait(port, queue) };
    (fd >= 0).then_some(fd)
}

/// Before the queue's thread sleeps.
pub(crate) fn arm(port: u32, queue: u32) -> Arm {
    // SAFETY: as `poll`.
    match unsafe { dpdk_arm(port, queue) } {
        0 => Arm::Armed,
        1 => Arm::Packets,
        _ => Arm::Cannot,
    }
}

/// After its sleep.
pub(crate) fn disarm(port: u32, queue: u32) {
    // SAFETY: as `poll`.
    unsafe { dpdk_disarm(port, queue) };
}

/// Copies them into slots.
pub(crate) fn receive(burst: &mut Burst<'_>) {
    // SAFETY: the router's burst.
    unsafe { dpdk_receive(burst.as_raw()) };
}

/// Sends what is in slots.
pub(crate) fn send(burst: &mut Burst<'_>) {
    // SAFETY: as above.
    unsafe { dpdk_send(burst.as_raw()) };
}
