//! The tester's ports at a synthetic device.

use std::cell::RefCell;
use std::rc::Rc;

use shoal_lab_plan::Side;

use super::behaviour::{Behaviour, BehaviourCounts};
use super::device::Device;
use crate::clock::Clock;
use crate::port::{Drops, Flushed, PortError, Received, Transport};

/// Any number: the device's frames wait in the device.
const RING: u32 = 1 << 20;
/// Longest frame.
const LONGEST: usize = 65_535;

/// One of two ports.
#[derive(Debug)]
pub struct SyntheticPort<C> {
    device: Rc<RefCell<Device>>,
    side: Side,
    clock: C,
    written: usize,
}

/// Changes a device while an engine has its ports: a table is emptied between trials, a device dies in the middle of one.
#[derive(Clone, Debug)]
pub struct Control(Rc<RefCell<Device>>);

impl Control {
    /// As [`SyntheticPort::told`].
    pub fn told(&self) -> [BehaviourCounts; 2] {
        self.0.borrow().told()
    }

    /// As [`SyntheticPort::behave`].
    pub fn behave(&self, behaviour: Behaviour) {
        self.0.borrow_mut().behave(behaviour);
    }

    /// As [`SyntheticPort::flush_nat`].
    pub fn flush_nat(&self) {
        self.0.borrow_mut().flush_nat();
    }

    /// As [`SyntheticPort::flush_addresses`].
    pub fn flush_addresses(&self) {
        self.0.borrow_mut().flush_addresses();
    }
}

impl<C: Clock> SyntheticPort<C> {
    /// What changes the device when an engine has the ports.
    pub fn control(&self) -> Control {
        Control(Rc::clone(&self.device))
    }

    /// Both ports of one device.
    pub fn pair(behaviour: Behaviour, clock: C) -> [SyntheticPort<C>; 2] {
        let device = Rc::new(RefCell::new(Device::new(behaviour)));
        Side::BOTH.map(|side| SyntheticPort {
            device: Rc::clone(&device),
            side,
            clock: clock.clone(),
            written: 0,
        })
    }

    /// What the device did since the trial's start to frames that came in at left and right.
    pub fn told(&self) -> [BehaviourCounts; 2] {
        self.device.borrow().told()
    }

    /// From now on the device does something else.
    pub fn behave(&self, behaviour: Behaviour) {
        self.device.borrow_mut().behave(behaviour);
    }

    /// The device's NAT forgets all flows.
    pub fn flush_nat(&self) {
        self.device.borrow_mut().flush_nat();
    }

    /// The device forgets all addresses that it learnt as a bridge.
    pub fn flush_addresses(&self) {
        self.device.borrow_mut().flush_addresses();
    }
}

impl<C: Clock> Transport for SyntheticPort<C> {
    fn kind(&self) -> &'static str {
        "synthetic"
    }

    fn name(&self) -> String {
        format!("synthetic {}", if self.side == Side::Left { "left" } else { "right" })
    }

    fn ring(&self) -> u32 {
        RING
    }

    fn most_frame(&self) -> usize {
        LONGEST
    }

    fn receive(&mut self, most: usize, take: &mut impl FnMut(Received<'_>)) -> Result<usize, PortError> {
        let (now, mut device) = (self.clock.now(), self.device.borrow_mut());
        Ok(device.give(self.side, now, most, &mut |bytes| take(Received { bytes, stamp: None })))
    }

    fn send(
        &mut self,
        length: usize,
        most: usize,
        write: &mut impl FnMut(&mut [u8]),
    ) -> Result<usize, PortError> {
        let (now, mut device) = (self.clock.now(), self.device.borrow_mut());
        for _ in 0..most {
            device.take(self.side, now, length, write);
        }
        self.written += most;
        Ok(most)
    }

    fn flush(&mut self) -> Result<Flushed, PortError> {
        Ok(Flushed { accepted: std::mem::take(&mut self.written), refused: 0 })
    }

    fn drops(&mut self) -> Result<Drops, PortError> {
        Ok(Drops::default())
    }

    fn begin(&mut self, moment: u64) {
        // Both ports say so, of the same moment.
        self.device.borrow_mut().begin(moment);
    }

    fn next_event(&self) -> Option<u64> {
        self.device.borrow().next_moment(self.side)
    }
}
