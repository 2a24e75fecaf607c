//! A driver's functions of the main thread, and an operator's commands.

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use shoal_plugin_abi as abi;
use shoal_wire::MacAddress;

use super::library::printable;
use super::{MainThread, OpenDevice, RxHandle};

/// Most bytes that a function of a plugin answers.
const ROOM: usize = 64 << 10;

const _: () = assert!(abi::SHOAL_MAX_QUEUES == 64 && abi::SHOAL_NAME_SIZE == 64);

type SayFn = unsafe extern "C" fn(*mut c_void, u32, u32, *mut abi::Text) -> c_int;
type OpenAt = unsafe extern "C" fn(*mut c_void, u32, *mut abi::Device, *mut abi::Text) -> c_int;
type OpenNamed =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut abi::Device, *mut abi::Text) -> c_int;
type Start = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut u32, *mut abi::Text) -> c_int;
type Set = unsafe extern "C" fn(*mut c_void, u32, u32, u64, *mut abi::Text) -> c_int;

/// The functions by which receive queues wake their threads: a driver has all of them or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waking {
    pub(super) wait: unsafe extern "C" fn(*mut c_void, u32, u32) -> c_int,
    pub(super) arm: unsafe extern "C" fn(*mut c_void, u32, u32, u32) -> c_int,
    pub(super) disarm: unsafe extern "C" fn(*mut c_void, u32, u32, u32),
}

/// What became of a queue that was to wake its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arm {
    Armed,
    /// There are packets already.
    Packets,
    Cannot,
}

/// A kind of devices.
#[derive(Debug, Clone)]
pub(crate) struct Driver {
    pub(crate) name: String,
    pub(super) context: *mut c_void,
    pub(super) start: Start,
    pub(super) open: OpenAt,
    pub(super) attach: OpenNamed,
    pub(super) close: unsafe extern "C" fn(*mut c_void, u32),
    pub(super) set: Set,
    pub(super) link: unsafe extern "C" fn(*mut c_void, u32, *mut abi::Link) -> c_int,
    pub(super) describe: SayFn,
    pub(super) poll: unsafe extern "C" fn(*mut c_void, u32, u32, u32) -> u32,
    pub(super) receive: unsafe extern "C" fn(*mut c_void, *mut abi::Burst),
    pub(super) send: unsafe extern "C" fn(*mut c_void, *mut abi::Burst),
    pub(super) waking: Option<Waking>,
}

// SAFETY: the ABI says which functions are called from which threads, and that they get the same context.
unsafe impl Send for Driver {}
// SAFETY: as above.
unsafe impl Sync for Driver {}

/// A command of the CLI.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    pub(crate) path: String,
    pub(crate) help: String,
    /// Whether words may follow.
    pub(crate) words: bool,
    pub(super) context: *mut c_void,
    pub(super) run: unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut abi::Text) -> c_int,
}

/// What is changed of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Admin(bool),
    Promiscuous(bool),
    Mtu(u32),
    Mac(MacAddress),
}

/// A device that a plugin has opened: unchecked numbers.
#[derive(Debug, Clone)]
pub(crate) struct NewDevice {
    pub(crate) number: u32,
    pub(crate) checksum: bool,
    pub(crate) tso: bool,
    pub(crate) mtu: u32,
    pub(crate) rx_queues: u32,
    pub(crate) tx_queues: u32,
    pub(crate) mac: MacAddress,
    pub(crate) rx_workers: Vec<Option<u16>>,
    pub(crate) name: String,
    pub(crate) kind: String,
}

/// A device's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// The other end is there.
    pub up: bool,
    /// Mbit/s; 0 when unknown.
    pub speed: u32,
    /// The device has gone and does not come back.
    pub gone: bool,
    /// Packets that the device itself lost for lack of descriptors, since it was opened.
    pub missed: u64,
}

/// Calls a function that answers with text: what it returned, and the text.
fn answered(call: impl FnOnce(*mut abi::Text) -> c_int) -> (c_int, String) {
    let mut bytes = vec![0u8; ROOM];
    let mut text = abi::Text {
        size: size_of::<abi::Text>() as u32,
        room: ROOM as u32,
        length: 0,
        reserved: 0,
        bytes: bytes.as_mut_ptr().cast(),
    };
    let code = call(&raw mut text);
    (code, printable(bytes.get(..text.length as usize).unwrap_or_default()))
}

/// A function that succeeds with a text or fails with one, which is one line.
fn tried(call: impl FnOnce(*mut abi::Text) -> c_int) -> Result<String, String> {
    match answered(call) {
        (0, text) => Ok(text),
        (code, text) if text.is_empty() => Err(format!("the plugin's function returned {code}, expected 0")),
        (_, text) => Err(text.replace('\n', " ")),
    }
}

/// A text in an array that a zero ends.
fn name(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|c| c.cast_unsigned()).take_while(|c| *c != 0).collect();
    printable(&bytes)
}

fn device(open: impl FnOnce(*mut abi::Device, *mut abi::Text) -> c_int) -> Result<NewDevice, String> {
    let mut opened = abi::Device {
        size: size_of::<abi::Device>() as u32,
        number: 0,
        flags: 0,
        mtu: 0,
        rx_queues: 0,
        tx_queues: 0,
        mac: [0; 6],
        rx_workers: [abi::SHOAL_ANY_WORKER; 64],
        name: [0; 64],
        kind: [0; 64],
    };
    let shown = &raw mut opened;
    tried(|why| open(shown, why))?;
    let has = |flag| opened.flags & flag != 0;
    Ok(NewDevice {
        number: opened.number,
        checksum: has(abi::SHOAL_DEVICE_CHECKSUM),
        tso: has(abi::SHOAL_DEVICE_CHECKSUM) && has(abi::SHOAL_DEVICE_TSO),
        mtu: opened.mtu,
        rx_queues: opened.rx_queues,
        tx_queues: opened.tx_queues,
        mac: MacAddress(opened.mac),
        rx_workers: opened.rx_workers.iter().map(|w| (*w != abi::SHOAL_ANY_WORKER).then_some(*w)).collect(),
        name: name(&opened.name),
        kind: name(&opened.kind),
    })
}

impl Driver {
    /// Starts the driver; tells how many devices of the start-up file are to be opened.
    pub(crate) fn start(&self, _: MainThread<'_>, settings: Option<&str>) -> Result<u32, String> {
        let (text, length) = settings.map_or((std::ptr::null(), 0), |s| (s.as_ptr().cast(), s.len()));
        let mut count = 0;
        let shown = &raw mut count;
        // SAFETY: the plugin's function for this context, on the main thread; the text is as long as is told, and all
        // of it lives until the call ends.
        tried(|why| unsafe { (self.start)(self.context, text, length, shown, why) })?;
        Ok(count)
    }

    /// Opens a device of the start-up file.
    pub(crate) fn open(
        self: &Arc<Self>,
        _: MainThread<'_>,
        position: u32,
    ) -> Result<(NewDevice, OpenDevice), String> {
        // SAFETY: as above; a device is integers, whatever is written there.
        let new = device(|shown, why| unsafe { (self.open)(self.context, position, shown, why) })?;
        let open = OpenDevice::new(self, &new);
        Ok((new, open))
    }

    /// Opens a device that an operator names.
    pub(crate) fn attach(
        self: &Arc<Self>,
        _: MainThread<'_>,
        words: &str,
    ) -> Result<(NewDevice, OpenDevice), String> {
        // SAFETY: as above.
        let new = device(|shown, why| unsafe {
            (self.attach)(self.context, words.as_ptr().cast(), words.len(), shown, why)
        })?;
        let open = OpenDevice::new(self, &new);
        Ok((new, open))
    }

    /// Closes a device of which no handle is left.
    pub(super) fn close(&self, _: MainThread<'_>, number: u32) {
        // SAFETY: the plugin's function for this context, on the main thread.
        unsafe { (self.close)(self.context, number) };
    }
}

impl OpenDevice {
    /// Changes the device.
    pub(crate) fn set(&self, _: MainThread<'_>, setting: Setting) -> Result<(), String> {
        let (driver, number) = (self.driver(), self.number());
        let (what, value) = match setting {
            Setting::Admin(up) => (abi::SHOAL_SET_ADMIN, up.into()),
            Setting::Promiscuous(on) => (abi::SHOAL_SET_PROMISCUOUS, on.into()),
            Setting::Mtu(mtu) => (abi::SHOAL_SET_MTU, mtu.into()),
            Setting::Mac(mac) => (abi::SHOAL_SET_MAC, mac.to_u64()),
        };
        // SAFETY: the plugin's function for this context, on the main thread.
        tried(|why| unsafe { (driver.set)(driver.context, number, what, value, why) }).map(drop)
    }

    /// The device's link; `None` if the plugin does not say.
    pub(crate) fn link(&self, _: MainThread<'_>) -> Option<Link> {
        let driver = self.driver();
        let mut link = abi::Link { size: size_of::<abi::Link>() as u32, up: 0, speed: 0, gone: 0, missed: 0 };
        // SAFETY: as above; a link is integers.
        let code = unsafe { (driver.link)(driver.context, self.number(), &raw mut link) };
        let abi::Link { up, speed, gone, missed, .. } = link;
        (code == 0).then_some(Link { up: up != 0, speed, gone: gone != 0, missed })
    }

    /// Lines about the device; or those for `detail`.
    pub(crate) fn describe(&self, _: MainThread<'_>, detail: bool) -> String {
        let (driver, number) = (self.driver(), self.number());
        // SAFETY: as above.
        answered(|text| unsafe { (driver.describe)(driver.context, number, detail.into(), text) }).1
    }

    /// The descriptor of a receive queue, the plugin's own; `None` if it has none.
    pub(crate) fn wait(&self, _: MainThread<'_>, queue: u32) -> Option<RawFd> {
        let driver = self.driver();
        let waking = driver.waking?;
        // SAFETY: as above.
        let fd = unsafe { (waking.wait)(driver.context, self.number(), queue) };
        (fd >= 0).then_some(fd)
    }
}

impl RxHandle {
    /// Before the queue's thread, this one, sleeps.
    pub(crate) fn arm(&self, thread: usize) -> Arm {
        let (driver, number) = (&*self.opened.driver, self.opened.number);
        let Some(waking) = driver.waking else { return Arm::Cannot };
        // SAFETY: the plugin's function for this context; the handle is this thread's.
        match unsafe { (waking.arm)(driver.context, number, self.queue, thread as u32) } {
            abi::SHOAL_ARMED => Arm::Armed,
            abi::SHOAL_ARM_PACKETS => Arm::Packets,
            _ => Arm::Cannot,
        }
    }

    /// After its sleep.
    pub(crate) fn disarm(&self, thread: usize) {
        let (driver, number) = (&*self.opened.driver, self.opened.number);
        let Some(waking) = driver.waking else { return };
        // SAFETY: as above.
        unsafe { (waking.disarm)(driver.context, number, self.queue, thread as u32) };
    }
}

/// A descriptor of our own for what a plugin's stands for; `None` if it is not open.
pub(crate) fn copy(fd: RawFd) -> Option<OwnedFd> {
    if fd < 0 {
        return None;
    }
    // SAFETY: not -1; it is only handed to fcntl(2), which answers EBADF for one that is not open.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned().ok()
}

impl Operator {
    /// Runs the command with the words that follow it.
    pub(crate) fn run(&self, _: MainThread<'_>, words: &str) -> Result<String, String> {
        // SAFETY: the plugin's function for this context, on the main thread; the text is as long as is told.
        tried(|text| unsafe { (self.run)(self.context, words.as_ptr().cast(), words.len(), text) })
    }
}
