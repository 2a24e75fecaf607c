//! Makes and deletes pipes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use shoal_interface::{Create, Device, Event, IfFlags, InterfaceError, Interfaces, Match, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;

use crate::node::rx::PipeRx;
use crate::node::tx::{PipeEnds, PipeTx};

/// Pipes are numbered below this, as in VPP.
pub(crate) const MOST: u32 = 16 * 1024;
const MTU: u16 = 9000;

/// Why a pipe cannot be; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PipeError {
    /// The number is taken.
    #[error("pipe{0} exists already")]
    Exists(u32),
    /// There are no such numbers.
    #[error("no pipe has the number {0}: choose one from 0 to {most}", most = MOST - 1)]
    Number(u32),
    /// Another kind of interface.
    #[error("{0} is not a pipe")]
    NotPipe(String),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

/// A pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pipe {
    /// The interface that has the ends.
    pub index: SwIfIndex,
    /// What goes out of one comes in by the other.
    pub ends: [SwIfIndex; 2],
    /// Its number.
    pub instance: u32,
}

struct PipeDevice;

impl Device for PipeDevice {
    fn class(&self) -> &'static str {
        "Pipe"
    }
}

/// All pipes.
pub struct Pipes {
    interfaces: Rc<Interfaces>,
    all: RefCell<BTreeMap<SwIfIndex, Pipe>>,
}

impl Pipes {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let interfaces = control.get::<Interfaces>()?;
        control.graph()?.add_packet(PipeRx { interfaces: interfaces.table() })?;
        Ok(Rc::new_cyclic(|weak: &Weak<Pipes>| {
            let weak = weak.clone();
            interfaces.subscribe(move |_, event| {
                if let (Some(pipes), Event::Deleted(index)) = (weak.upgrade(), event) {
                    pipes.all.borrow_mut().remove(&index);
                }
            });
            Pipes { interfaces, all: RefCell::default() }
        }))
    }

    /// All of them, by index.
    pub fn list(&self) -> Vec<Pipe> {
        self.all.borrow().values().copied().collect()
    }

    /// Creates a pipe, `pipe<instance>`, with its two ends, which start admin down; the first free number if none is given.
    ///
    /// # Errors
    /// The number is taken or too large, or there are too many interfaces.
    pub fn create(&self, instance: Option<u32>) -> Result<Pipe, PipeError> {
        let taken: Vec<u32> = self.list().iter().map(|pipe| pipe.instance).collect();
        let is_free = |n: &u32| !taken.contains(n) && self.interfaces.by_name(&format!("pipe{n}")).is_none();
        let instance = match instance {
            Some(instance) if instance >= MOST => return Err(PipeError::Number(instance)),
            Some(instance) if !is_free(&instance) => return Err(PipeError::Exists(instance)),
            Some(instance) => instance,
            None => (0..MOST).find(is_free).ok_or(PipeError::Number(MOST))?,
        };
        let ends = PipeEnds::default();
        let [_, _, high, low] = instance.to_be_bytes();
        let create = Create {
            name: &format!("pipe{instance}"),
            mac: MacAddress([0x22, 0, 0, 0, high, low]),
            mtu: MTU,
            flags: IfFlags::ETHERNET.set(IfFlags::LINK_UP, true).set(IfFlags::POINT_TO_POINT, true),
            rx_next: "pipe-rx",
            device: Rc::new(PipeDevice),
        };
        let index = self.interfaces.create(&create, PipeTx { ends: ends.clone() })?;
        let made = self.make_ends(index);
        if made.is_err() {
            self.interfaces.delete(index)?;
        }
        let of = made?;
        ends.set(of);
        let pipe = Pipe { index, ends: of, instance };
        self.all.borrow_mut().insert(index, pipe);
        Ok(pipe)
    }

    fn make_ends(&self, index: SwIfIndex) -> Result<[SwIfIndex; 2], InterfaceError> {
        // The pipe itself is always up: its ends go up and down.
        self.interfaces.set_admin(index, true)?;
        let end = |number| self.interfaces.create_sub(index, number, Match::End);
        Ok([end(0)?, end(1)?])
    }

    /// Deletes a pipe, which is named by itself or by one of its ends.
    ///
    /// # Errors
    /// There is no such interface, or it is no pipe.
    pub fn delete(&self, index: SwIfIndex) -> Result<(), PipeError> {
        let name = self.interfaces.name(index)?;
        let pipe = self.interfaces.port_of(index);
        if !self.all.borrow().contains_key(&pipe) {
            return Err(PipeError::NotPipe(name));
        }
        Ok(self.interfaces.delete(pipe)?)
    }
}
