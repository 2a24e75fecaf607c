//! The control plane of plugins' devices: start drivers, open, attach, detach, watch links.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_graph::process::Processes;
use shoal_graph::{NoNext, NodeIndex, RxMode};
use shoal_interface::{
    Create, Device, Event, IfFlags, InterfaceError, Interfaces, Queue, SwIfIndex, TxPlacement,
};
use shoal_module::config::{Settings, TEXT, Value};
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;

use super::Error;
use super::opened::{check, wrong};
use super::port::Port;
use super::rx::{self, DeviceRx};
use super::tx::DeviceTx;
use crate::sys::{Driver, Link, MainThread, NewDevice, OpenDevice, Operator, Setting};

/// How often devices are asked for their links.
const LOOK: Duration = Duration::from_millis(250);
/// Most devices of a driver.
const MOST: u32 = 256;

/// A device as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its interface.
    pub index: SwIfIndex,
    /// The name the interface was made with.
    pub made_as: String,
    /// Its driver's name.
    pub driver: String,
    /// The words it was attached with; none for one of the start-up file.
    pub words: Option<String>,
}

/// A device until it is closed.
type Slot = Rc<RefCell<Option<OpenDevice>>>;

struct PluginDevice {
    port: Arc<Port>,
    main: MainThread<'static>,
    open: Slot,
    made_as: String,
    kind: &'static str,
    words: Option<String>,
    link: Cell<Link>,
    interfaces: Weak<Interfaces>,
}

struct OneDriver {
    code: Arc<Driver>,
    input: NodeIndex,
}

/// All drivers of plugins and their devices.
pub struct Devices {
    main: MainThread<'static>,
    /// Devices that are to be closed when the last thread has left them.
    closing: RefCell<Vec<OpenDevice>>,
    interfaces: Rc<Interfaces>,
    drivers: Vec<OneDriver>,
    commands: Vec<Operator>,
    all: RefCell<Vec<Rc<PluginDevice>>>,
    kinds: RefCell<BTreeSet<&'static str>>,
}

impl Devices {
    /// Nothing is opened yet; every driver gets its input node.
    pub(crate) fn new(
        control: &Control,
        drivers: Vec<Driver>,
        commands: Vec<Operator>,
    ) -> Result<Rc<Self>, InitError> {
        let interfaces = control.get::<Interfaces>()?;
        let graph = control.graph()?;
        let drivers = drivers
            .into_iter()
            .map(|driver| {
                let input = graph.add_input::<NoNext, rx::Error>(&format!("{}-input", driver.name))?;
                Ok(OneDriver { code: Arc::new(driver), input })
            })
            .collect::<Result<Vec<_>, InitError>>()?;
        let (all, kinds) = (RefCell::default(), RefCell::default());
        let (main, closing) = (MainThread::of(control), RefCell::default());
        let interfaces_too = Rc::clone(&interfaces);
        let devices =
            Rc::new(Devices { main, closing, interfaces: interfaces_too, drivers, commands, all, kinds });
        let weak = Rc::downgrade(&devices);
        interfaces.subscribe(move |_, event| {
            let Some(devices) = weak.upgrade() else { return };
            match event {
                // Not before the interface takes packets: a device may have some at once.
                Event::Admin(index, true) => devices.run(index),
                Event::Deleting(index) => devices.stop(index),
                // Its queues are back and its nodes gone. A thread that does not move may have them still.
                Event::Deleted(index) => devices.forget(index),
                _ => {}
            }
        });
        Ok(devices)
    }

    /// Starts the drivers and opens the devices of the start-up file.
    ///
    /// # Errors
    /// What a plugin says, with its driver's name in front.
    pub(crate) fn start(&self, control: &Rc<Control>) -> Result<(), InitError> {
        let sections = control.get::<BTreeMap<&'static str, Settings>>().ok();
        for driver in &self.drivers {
            let name = driver.code.name.as_str();
            let settings = sections.as_ref().and_then(|s| s.get(name)).map(text);
            let say = |why: String| InitError::Other(format!("{name}: {why}"));
            let count = driver.code.start(self.main, settings.as_deref()).map_err(say)?;
            if count > MOST {
                return Err(say(format!("{count} devices, expected at most {MOST}")));
            }
            for position in 0..count {
                let opened = driver.code.open(self.main, position).map_err(say)?;
                self.enter(driver, opened, None).map_err(|e| InitError::Other(e.to_string()))?;
            }
        }
        Ok(())
    }

    /// Opens a device that an operator names, and makes an interface of it. It starts admin down.
    ///
    /// # Errors
    /// There is no such driver, or the device cannot be opened, or it is no interface; nothing is left behind then.
    pub fn attach(&self, driver: &str, words: &str) -> Result<SwIfIndex, Error> {
        let driver = self.driver(driver)?;
        if self.of_driver(&driver.code.name).len() >= MOST as usize {
            let why = format!("it has {MOST} devices, which is the most");
            return Err(Error::Plugin(driver.code.name.clone(), why));
        }
        let opened = driver.code.attach(self.main, words);
        let opened = opened.map_err(|why| Error::Plugin(driver.code.name.clone(), why))?;
        self.enter(driver, opened, Some(words.to_owned()))
    }

    /// Takes a device's interface away and closes the device.
    ///
    /// # Errors
    /// The interface is no device of this driver.
    pub fn detach(&self, driver: &str, index: SwIfIndex) -> Result<(), Error> {
        // Not kept in hand: the device is closed when the last hold on it is gone.
        if self.of(index).is_none_or(|d| d.port.driver.name != driver) {
            let name = self.interfaces.name(index)?;
            return Err(Error::NotOurs { name, driver: driver.to_owned(), all: self.of_driver(driver) });
        }
        Ok(self.interfaces.delete(index)?)
    }

    /// All devices.
    pub fn list(&self) -> Vec<DeviceInfo> {
        let info = |d: &Rc<PluginDevice>| DeviceInfo {
            index: d.port.index(),
            made_as: d.made_as.clone(),
            driver: d.port.driver.name.clone(),
            words: d.words.clone(),
        };
        self.all.borrow().iter().map(info).collect()
    }

    /// Names of the drivers.
    pub(crate) fn drivers(&self) -> impl Iterator<Item = &str> {
        self.drivers.iter().map(|d| d.code.name.as_str())
    }

    /// The plugins' own commands.
    pub(crate) fn commands(&self) -> &[Operator] {
        &self.commands
    }

    fn driver(&self, name: &str) -> Result<&OneDriver, Error> {
        let found = self.drivers.iter().find(|d| d.code.name == name);
        found.ok_or_else(|| Error::NoDriver(name.to_owned()))
    }

    fn of(&self, index: SwIfIndex) -> Option<Rc<PluginDevice>> {
        self.all.borrow().iter().find(|d| d.port.index() == index).cloned()
    }

    /// Names of a driver's interfaces.
    fn of_driver(&self, driver: &str) -> Vec<String> {
        let all = self.all.borrow();
        let ours = all.iter().filter(|d| d.port.driver.name == driver);
        ours.filter_map(|d| self.interfaces.name(d.port.index()).ok()).collect()
    }

    /// Whether a device of this number is open.
    fn is_open(&self, driver: &OneDriver, number: u32) -> bool {
        let same = |open: &OpenDevice| open.number() == number && Arc::ptr_eq(open.driver(), &driver.code);
        let closing = self.closing.borrow().iter().any(same);
        closing || self.all.borrow().iter().any(|d| d.open.borrow().as_ref().is_some_and(same))
    }

    fn enter(
        &self,
        driver: &OneDriver,
        (opened, open): (NewDevice, OpenDevice),
        words: Option<String>,
    ) -> Result<SwIfIndex, Error> {
        let number = opened.number;
        if self.is_open(driver, number) {
            // Not closed: it is another's number.
            let expected = "one that no open device has";
            return Err(wrong(&driver.code.name, "the number", number.to_string(), expected));
        }
        let open: Slot = Rc::new(RefCell::new(Some(open)));
        let made = self.make(driver, opened, &open, words);
        if made.is_err() {
            self.end(&open);
        }
        made
    }

    /// Closes a device: now, or when the last thread has left it.
    fn end(&self, open: &Slot) {
        let Some(open) = open.borrow_mut().take() else { return };
        if let Err(open) = open.close(self.main) {
            self.closing.borrow_mut().push(open);
        }
    }

    fn make(
        &self,
        driver: &OneDriver,
        opened: NewDevice,
        open: &Slot,
        words: Option<String>,
    ) -> Result<SwIfIndex, Error> {
        check(&driver.code.name, &opened)?;
        let threads = self.interfaces.graph().threads().len();
        for worker in opened.rx_workers.iter().take(opened.rx_queues as usize).flatten() {
            if usize::from(*worker) + 1 >= threads {
                return Err(
                    InterfaceError::NoThread(usize::from(*worker) + 1, threads.saturating_sub(1)).into()
                );
            }
        }
        let NewDevice { checksum, tso, .. } = opened;
        let mut receive = Vec::new();
        let (port, link) = {
            let mut open = open.borrow_mut();
            let Some(open) = open.as_mut() else { unreachable!("the caller has put it there") };
            let port = Port::new(open, opened.rx_queues as usize, (checksum, tso), self.interfaces.table());
            receive.extend(std::iter::from_fn(|| open.next_rx()));
            port.ask_waits(self.main, open);
            (Arc::new(port), open.link(self.main).unwrap_or_default())
        };
        let device = Rc::new(PluginDevice {
            port: Arc::clone(&port),
            main: self.main,
            open: Rc::clone(open),
            made_as: opened.name.clone(),
            kind: self.kind(&opened.kind),
            words,
            link: Cell::new(link),
            interfaces: Rc::downgrade(&self.interfaces),
        });
        let flags = IfFlags::ETHERNET
            .set(IfFlags::TX_CHECKSUM, checksum)
            .set(IfFlags::TX_GSO, tso)
            .set(IfFlags::LINK_UP, link.up);
        let create = Create {
            name: &opened.name,
            mac: opened.mac,
            mtu: opened.mtu as u16,
            flags,
            rx_next: "ethernet-input",
            device: Rc::clone(&device) as Rc<dyn Device>,
        };
        let index = self.interfaces.create(&create, DeviceTx { port: Arc::clone(&port) })?;
        port.set_index(index);
        for (number, handle) in (0..).zip(receive) {
            let worker = opened.rx_workers.get(number as usize).copied().flatten();
            let queue = Queue {
                number,
                node: driver.input,
                queue: Box::new(DeviceRx::new(Arc::clone(&port), handle, number)),
                thread: worker.map(|w| usize::from(w) + 1),
            };
            if let Err(e) = self.interfaces.add_queue(index, queue) {
                // Closed by the caller: it is not in the list yet.
                let _ = self.interfaces.delete(index);
                return Err(e.into());
            }
        }
        self.all.borrow_mut().push(device);
        Ok(index)
    }

    /// A kind of device, as long as the process lives: there are few.
    fn kind(&self, kind: &str) -> &'static str {
        let mut kinds = self.kinds.borrow_mut();
        if let Some(known) = kinds.get(kind) {
            return known;
        }
        let kept: &'static str = Box::leak(kind.to_owned().into_boxed_str());
        kinds.insert(kept);
        kept
    }

    fn run(&self, index: SwIfIndex) {
        if let Some(device) = self.of(index) {
            device.port.set_running(true);
            device.wake();
        }
    }

    fn stop(&self, index: SwIfIndex) {
        if let Some(device) = self.of(index) {
            device.port.stop();
        }
    }

    fn forget(&self, index: SwIfIndex) {
        let Some(device) = self.of(index) else { return };
        self.all.borrow_mut().retain(|d| d.port.index() != index);
        let open = Rc::clone(&device.open);
        // Its handles go first.
        drop(device);
        self.end(&open);
    }

    /// Closes devices that threads have left, and asks the others for their links.
    fn look(&self) {
        let closing = self.closing.take();
        let left = closing.into_iter().filter_map(|open| open.close(self.main).err());
        // Collected first: closing may open others.
        let left: Vec<_> = left.collect();
        self.closing.borrow_mut().extend(left);
        let all: Vec<_> = self.all.borrow().clone();
        for device in all {
            device.look();
        }
    }
}

/// The process task that follows links.
pub(crate) async fn watch(processes: Weak<Processes>, devices: Weak<Devices>) {
    loop {
        let Some(sleep) = processes.upgrade().map(|p| p.sleep(LOOK)) else { return };
        sleep.await;
        let Some(devices) = devices.upgrade() else { return };
        devices.look();
    }
}

/// The inside of a stanza, all times it stands in the file.
fn text(settings: &Settings) -> String {
    let mut all = String::new();
    for setting in settings.all(TEXT) {
        if let Value::Text(text) = &setting.value {
            all.push_str(text);
            all.push('\n');
        }
    }
    all
}

impl PluginDevice {
    fn look(&self) {
        let link = self.open.borrow().as_ref().and_then(|open| open.link(self.main));
        let Some(link) = link else { return };
        self.port.missed.store(link.missed, Ordering::Relaxed);
        let old = self.link.replace(link);
        let Some(interfaces) = self.interfaces.upgrade() else { return };
        let index = self.port.index();
        if link.gone && !old.gone {
            self.port.set_running(false);
            let name = interfaces.name(index).unwrap_or_default();
            let what = format!("{name}: its device has gone");
            tracing::warn!("{what}");
            interfaces.graph().events().write(0, what);
        }
        let _ = interfaces.set_link(index, link.up && !link.gone);
    }

    /// A thread that sleeps looks at its queue again: what it armed may be another.
    fn set(&self, setting: Setting) -> Result<(), String> {
        let done = match &*self.open.borrow() {
            Some(open) => open.set(self.main, setting),
            None => Err("it is closed".into()),
        };
        self.wake();
        done
    }

    /// What the plugin says of the device; nothing when it is closed.
    fn ask<T: Default>(&self, what: impl FnOnce(&OpenDevice) -> T) -> T {
        self.open.borrow().as_ref().map(what).unwrap_or_default()
    }

    /// Whether all its receive queues have a descriptor.
    fn ask_waits(&self) -> bool {
        self.ask(|open| self.port.ask_waits(self.main, open))
    }

    /// Its receive queues are looked at again.
    fn wake(&self) {
        let Some(interfaces) = self.interfaces.upgrade() else { return };
        for queue in interfaces.queues(self.port.index()).unwrap_or_default() {
            interfaces.graph().wake(queue.thread);
        }
    }
}

impl Device for PluginDevice {
    fn class(&self) -> &'static str {
        self.kind
    }

    fn set_admin(&self, up: bool) -> Result<(), String> {
        if !up {
            self.port.set_running(false);
        }
        if up && self.link.get().gone {
            return Err("its device has gone, detach it".into());
        }
        self.set(Setting::Admin(up))?;
        if up {
            self.ask_waits();
        }
        self.look();
        Ok(())
    }

    fn set_promiscuous(&self, on: bool) -> Result<(), String> {
        self.set(Setting::Promiscuous(on))
    }

    fn set_mac(&self, mac: MacAddress) -> Result<(), String> {
        self.set(Setting::Mac(mac))
    }

    fn set_mtu(&self, mtu: u32) -> Result<(), String> {
        self.set(Setting::Mtu(mtu))
    }

    fn set_rx_mode(&self, mode: RxMode) -> Result<(), String> {
        match mode {
            RxMode::Interrupt if !self.ask_waits() => {
                Err("has no receive interrupts, expected polling or adaptive, which naps when idle".into())
            }
            _ => Ok(()),
        }
    }

    fn describe(&self) -> String {
        let mut lines = self.ask(|open| open.describe(self.main, false));
        if self.link.get().gone {
            let end = if lines.is_empty() { "" } else { "\n" };
            lines.push_str(end);
            lines.push_str("its device has gone");
        }
        lines
    }

    fn detail(&self) -> String {
        let mut lines = self.ask(|open| open.describe(self.main, true));
        if !lines.is_empty() {
            lines.push('\n');
        }
        lines.push_str(&self.ask(|open| self.port.describe_waits(self.main, open)));
        lines
    }

    fn speed_kbps(&self) -> u32 {
        self.link.get().speed.saturating_mul(1000)
    }

    fn tx_placement(&self) -> Option<&TxPlacement> {
        Some(&self.port.placement)
    }
}
