//! What a driver is, and how it is called. Unsafe, because the router calls by pointer.

use core::ffi::{c_char, c_int, c_void};
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use shoal_plugin_abi as abi;

use crate::command::{say, text};
use crate::log::c_string;

/// A device as it is when it becomes an interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opened {
    /// The plugin's number of it.
    pub number: u32,
    /// The interface's name.
    pub name: String,
    /// What it is, in a line.
    pub kind: String,
    /// The MAC address.
    pub mac: [u8; 6],
    /// The largest packet without its Ethernet header.
    pub mtu: u32,
    /// Receive queues, and for each the worker that polls it if it matters.
    pub rx_workers: Vec<Option<u16>>,
    /// Transmit queues.
    pub tx_queues: u32,
    /// It completes layer-4 checksums.
    pub checksum: bool,
    /// It cuts large TCP packets.
    pub tso: bool,
}

/// What is changed of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// It sends and receives, or does not.
    Admin(bool),
    /// Frames for all stations, or for its own.
    Promiscuous(bool),
    /// The largest packet without its Ethernet header.
    Mtu(u32),
    /// The MAC address.
    Mac([u8; 6]),
}

/// What a device says of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// The other end is there.
    pub up: bool,
    /// Mbit/s; 0 when unknown.
    pub speed: u32,
    /// The device has gone and does not come back.
    pub gone: bool,
    /// Packets that the device itself lost, since it was opened.
    pub missed: u64,
}

/// What became of a queue that is to wake its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// Packets make its descriptor readable.
    Armed,
    /// There are packets already.
    Packets,
    /// It wakes no thread now.
    Cannot,
}

/// A kind of devices: see `struct shoal_driver`. Errors are one line, for operators.
pub trait Driver: Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;

    /// Starts, with the inside of the driver's stanza if there is one; tells how many devices are to be opened.
    ///
    /// # Errors
    /// What is wrong with the settings, or why the driver cannot start.
    fn start(&self, settings: Option<&str>) -> Result<u32, String>;

    /// Opens a device of the start-up file.
    ///
    /// # Errors
    /// Why it cannot.
    fn open(&self, position: u32) -> Result<Opened, String>;

    /// Opens a device that an operator names.
    ///
    /// # Errors
    /// Why it cannot.
    fn attach(&self, words: &str) -> Result<Opened, String>;

    /// Closes a device.
    fn close(&self, device: u32);

    /// Changes a device while its queues are called.
    ///
    /// # Errors
    /// Why it cannot.
    fn set(&self, device: u32, setting: Setting) -> Result<(), String>;

    /// A device's link.
    fn link(&self, device: u32) -> Option<Link>;

    /// Lines about a device; or those for `detail`.
    fn describe(&self, device: u32, detail: bool) -> String;

    /// Takes packets from a queue and keeps them; tells how many slots they need.
    fn poll(&self, device: u32, queue: u32, thread: u32) -> u32;

    /// Copies what was taken into slots.
    fn receive(&self, burst: &mut Burst<'_>);

    /// Copies packets out of slots and sends them.
    fn send(&self, burst: &mut Burst<'_>);

    /// A descriptor that becomes readable when packets come to a queue that is armed, the same until the device is closed.
    /// Without one its thread looks at the queue once in a millisecond when it is idle.
    fn wait(&self, _device: u32, _queue: u32) -> Option<RawFd> {
        None
    }

    /// Before the queue's thread sleeps.
    fn arm(&self, _device: u32, _queue: u32, _thread: u32) -> Arm {
        Arm::Cannot
    }

    /// After its sleep, before it polls: the descriptor is not readable any more.
    fn disarm(&self, _device: u32, _queue: u32, _thread: u32) {}
}

/// Packets between the router and a queue.
#[derive(Debug)]
pub struct Burst<'a>(&'a mut abi::Burst);

impl Burst<'_> {
    /// The device's number.
    pub fn device(&self) -> u32 {
        self.0.device
    }

    /// The queue.
    pub fn queue(&self) -> u32 {
        self.0.queue
    }

    /// The structure itself, for code that is not Rust.
    pub fn as_raw(&mut self) -> *mut abi::Burst {
        self.0
    }

    /// Receive: puts a packet into as many slots as it needs; `false`, and it is counted as lost, when there are too few.
    pub fn put(&mut self, packet: &[u8]) -> bool {
        let (first, mut at, mut rest) = (self.0.used as usize, self.0.used as usize, packet);
        // SAFETY: `count` slots that are this call's.
        let slots = unsafe { core::slice::from_raw_parts_mut(self.0.slots, self.0.count as usize) };
        while !rest.is_empty() {
            let Some(slot) = slots.get_mut(at) else {
                self.0.lost += 1;
                return false;
            };
            let n = rest.len().min(slot.capacity as usize);
            // SAFETY: `capacity` bytes are this call's, and no other slot has them.
            unsafe { core::ptr::copy_nonoverlapping(rest.as_ptr(), slot.bytes, n) };
            rest = rest.get(n..).unwrap_or_default();
            slot.length = n as u32;
            slot.flags = if rest.is_empty() { 0 } else { abi::SHOAL_SLOT_MORE };
            at += 1;
        }
        self.0.used = at as u32;
        at > first
    }

    /// Send: takes packets, from the first on, as long as `take` returns true; it is given one part after another, and
    /// whether the packet goes on.
    pub fn each(&mut self, mut take: impl FnMut(&[u8], bool) -> bool) {
        // SAFETY: `count` slots that are this call's.
        let slots = unsafe { core::slice::from_raw_parts(self.0.slots, self.0.count as usize) };
        for slot in slots {
            // SAFETY: `length` bytes that are not written while this call lasts.
            let bytes = unsafe { core::slice::from_raw_parts(slot.bytes, slot.length as usize) };
            let more = slot.flags & abi::SHOAL_SLOT_MORE != 0;
            if !take(bytes, more) {
                return;
            }
            self.0.used += u32::from(!more);
        }
    }
}

pub(crate) fn describe_driver<D: Driver>(driver: &'static D) -> abi::Driver {
    abi::Driver {
        size: size_of::<abi::Driver>() as u32,
        reserved: 0,
        name: c_string(D::NAME).as_ptr(),
        context: (&raw const *driver).cast_mut().cast(),
        start: Some(start::<D>),
        open: Some(open::<D>),
        attach: Some(attach::<D>),
        close: Some(close::<D>),
        set: Some(set::<D>),
        link: Some(link::<D>),
        describe: Some(describe::<D>),
        poll: Some(poll::<D>),
        receive: Some(receive::<D>),
        send: Some(send::<D>),
        wait: Some(wait::<D>),
        arm: Some(arm::<D>),
        disarm: Some(disarm::<D>),
    }
}

/// # Safety
/// The context of a descriptor that `describe_driver` has made.
unsafe fn of<D: Driver>(context: *mut c_void) -> &'static D {
    // SAFETY: the caller's; a driver is static, and only ever borrowed.
    unsafe { &*context.cast::<D>() }
}

fn tried<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| Err("the plugin panicked".to_owned()))
}

unsafe extern "C" fn start<D: Driver>(
    context: *mut c_void,
    settings: *const c_char,
    length: usize,
    count: *mut u32,
    why: *mut abi::Text,
) -> c_int {
    // SAFETY: the router's text of that length, or null; the context is the descriptor's.
    let (settings, driver) = unsafe { (text(settings, length), of::<D>(context)) };
    let done = tried(|| driver.start(settings.as_deref())).map(|n| {
        // SAFETY: the router's number.
        unsafe { *count = n };
        String::new()
    });
    // SAFETY: the router's room.
    unsafe { say(why, done) }
}

fn name(text: &str) -> [c_char; 64] {
    let mut name = [0; 64];
    for (to, from) in name.iter_mut().take(63).zip(text.bytes()) {
        *to = from.cast_signed();
    }
    name
}

/// # Safety
/// `device` and `why` are the router's.
unsafe fn opened(device: *mut abi::Device, why: *mut abi::Text, done: Result<Opened, String>) -> c_int {
    let done = done.map(|o| {
        let mut rx_workers = [abi::SHOAL_ANY_WORKER; 64];
        for (to, from) in rx_workers.iter_mut().zip(&o.rx_workers) {
            *to = from.unwrap_or(abi::SHOAL_ANY_WORKER);
        }
        let flag = |on, flag| if on { flag } else { 0 };
        let made = abi::Device {
            size: size_of::<abi::Device>() as u32,
            number: o.number,
            flags: flag(o.checksum, abi::SHOAL_DEVICE_CHECKSUM) | flag(o.tso, abi::SHOAL_DEVICE_TSO),
            mtu: o.mtu,
            rx_queues: o.rx_workers.len() as u32,
            tx_queues: o.tx_queues,
            mac: o.mac,
            rx_workers,
            name: name(&o.name),
            kind: name(&o.kind),
        };
        // SAFETY: the router's.
        unsafe { device.write(made) };
        String::new()
    });
    // SAFETY: the router's.
    unsafe { say(why, done) }
}

unsafe extern "C" fn open<D: Driver>(
    context: *mut c_void,
    position: u32,
    device: *mut abi::Device,
    why: *mut abi::Text,
) -> c_int {
    // SAFETY: the context is the descriptor's.
    let driver = unsafe { of::<D>(context) };
    // SAFETY: the router's.
    unsafe { opened(device, why, tried(|| driver.open(position))) }
}

unsafe extern "C" fn attach<D: Driver>(
    context: *mut c_void,
    words: *const c_char,
    length: usize,
    device: *mut abi::Device,
    why: *mut abi::Text,
) -> c_int {
    // SAFETY: the router's text of that length; the context is the descriptor's.
    let (words, driver) = unsafe { (text(words, length).unwrap_or_default(), of::<D>(context)) };
    // SAFETY: the router's.
    unsafe { opened(device, why, tried(|| driver.attach(&words))) }
}

unsafe extern "C" fn close<D: Driver>(context: *mut c_void, device: u32) {
    // SAFETY: the context is the descriptor's.
    let driver = unsafe { of::<D>(context) };
    let _ = catch_unwind(AssertUnwindSafe(|| driver.close(device)));
}

unsafe extern "C" fn set<D: Driver>(
    context: *mut c_void,
    device: u32,
    what: u32,
    value: u64,
    why: *mut abi::Text,
) -> c_int {
    // SAFETY: the context is the descriptor's.
    let driver = unsafe { of::<D>(context) };
    let [_, _, mac @ ..] = value.to_be_bytes();
    let setting = match what {
        abi::SHOAL_SET_ADMIN => Some(Setting::Admin(value != 0)),
        abi::SHOAL_SET_PROMISCUOUS => Some(Setting::Promiscuous(value != 0)),
        abi::SHOAL_SET_MTU => Some(Setting::Mtu(value as u32)),
        abi::SHOAL_SET_MAC => Some(Setting::Mac(mac)),
        _ => None,
    };
    let done = setting.ok_or_else(|| format!("there is no setting {what}, expected 1 to 4"));
    let done = done.and_then(|setting| tried(|| driver.set(device, setting)));
    // SAFETY: the router's room.
    unsafe { say(why, done.map(|()| String::new())) }
}

unsafe extern "C" fn link<D: Driver>(context: *mut c_void, device: u32, link: *mut abi::Link) -> c_int {
    // SAFETY: the context is the descriptor's.
    let driver = unsafe { of::<D>(context) };
    let Ok(Some(found)) = catch_unwind(AssertUnwindSafe(|| driver.link(device))) else { return 1 };
    let made = abi::Link {
        size: size_of::<abi::Link>() as u32,
        up: found.up.into(),
        speed: found.speed,
        gone: found.gone.into(),
        missed: found.missed,
    };
    // SAFETY: the router's.
    unsafe { link.write(made) };
    0
}

unsafe extern "C" fn describe<D: Driver>(
    context: *mut c_void,
    device: u32,
    detail: u32,
    text: *mut abi::Text,
) -> c_int {
    // SAFETY: the context is the descriptor's.
    let driver = unsafe { of::<D>(context) };
    let said = tried(|| Ok(driver.describe(device, detail != 0)));
    // SAFETY: the router's room.
    unsafe { say(text, said) }
}

unsafe extern "C" fn poll<D: Driver>(context: *mut c_void, device: u32, queue: u32, thread: u32) -> u32 {
    // SAFETY: the context is the descriptor's.
    let driver = unsafe { of::<D>(context) };
    catch_unwind(AssertUnwindSafe(|| driver.poll(device, queue, thread))).unwrap_or(0)
}

unsafe extern "C" fn receive<D: Driver>(context: *mut c_void, burst: *mut abi::Burst) {
    // SAFETY: the context is the descriptor's, the burst this call's.
    let (driver, burst) = unsafe { (of::<D>(context), &mut *burst) };
    let _ = catch_unwind(AssertUnwindSafe(|| driver.receive(&mut Burst(burst))));
}

unsafe extern "C" fn send<D: Driver>(context: *mut c_void, burst: *mut abi::Burst) {
    // SAFETY: the context is the descriptor's, the burst this call's.
    let (driver, burst) = unsafe { (of::<D>(context), &mut *burst) };
    let _ = catch_unwind(AssertUnwindSafe(|| driver.send(&mut Burst(burst))));
}

unsafe extern "C" fn wait<D: Driver>(context: *mut c_void, device: u32, queue: u32) -> c_int {
    // SAFETY: the context is the descriptor's.
    let driver = unsafe { of::<D>(context) };
    let fd = catch_unwind(AssertUnwindSafe(|| driver.wait(device, queue)));
    fd.ok().flatten().unwrap_or(-1)
}

unsafe extern "C" fn arm<D: Driver>(context: *mut c_void, device: u32, queue: u32, thread: u32) -> c_int {
    // SAFETY: the context is the descriptor's.
    let driver = unsafe { of::<D>(context) };
    match catch_unwind(AssertUnwindSafe(|| driver.arm(device, queue, thread))) {
        Ok(Arm::Armed) => abi::SHOAL_ARMED,
        Ok(Arm::Packets) => abi::SHOAL_ARM_PACKETS,
        Ok(Arm::Cannot) | Err(_) => -1,
    }
}

unsafe extern "C" fn disarm<D: Driver>(context: *mut c_void, device: u32, queue: u32, thread: u32) {
    // SAFETY: the context is the descriptor's.
    let driver = unsafe { of::<D>(context) };
    let _ = catch_unwind(AssertUnwindSafe(|| driver.disarm(device, queue, thread)));
}
