//! What an operator can ask of an interface, checked before anything is made.

use shoal_wire::MacAddress;

use crate::Error;
use crate::filter::MOST_QUEUES;
use crate::pinhole::{Pinhole, Rule, RuleError};
use crate::sys::{BusyPoll, Copying, PacketMemory, XskConfig};

/// Default entries of a ring, as in VPP.
const RING: u32 = 1024;

/// The router's MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mac {
    /// Drawn, as VPP does: the router is a station of its own.
    #[default]
    Random,
    /// Given.
    Given(MacAddress),
    /// The kernel's (`mac-reuse`): for networks that know one station behind a port.
    Kernels,
}

/// How many queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// So many, from the first.
    Count(u32),
    /// As many as the kernel's interface has. Unlike in VPP this is the default: a queue without a socket would leave
    /// its frames to the host.
    All,
}

/// An interface to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateXdp {
    /// The kernel's name of it.
    pub host_if: String,
    /// Its name in the router; the kernel's with a number if none.
    pub name: Option<String>,
    /// The router's MAC address.
    pub mac: Mac,
    /// How many queues.
    pub queues: Queues,
    /// Entries of each receive ring; 1024 if none.
    pub rx_size: Option<u32>,
    /// Entries of each transmit ring; 1024 if none.
    pub tx_size: Option<u32>,
    /// Who copies.
    pub copying: Copying,
    /// Where packets are while the kernel has them.
    pub memory: PacketMemory,
    /// Whether frames may take several chunks.
    pub multi_buffer: bool,
    /// Busy polling.
    pub busy_poll: Option<BusyPoll>,
    /// VPP's `no-syscall-lock`: accepted without effect, because calls are never made under a lock that others wait
    /// for.
    pub no_syscall_lock: bool,
    /// A program of the operator's own: refused.
    pub prog: Option<String>,
    /// The network namespace it is in: `NAME`, `/PATH` or `pid:N`; the router's if none.
    pub netns: Option<String>,
    /// What the host keeps.
    pub pinhole: Pinhole,
    /// Take it even if it carries the default route.
    pub force: bool,
}

impl Default for CreateXdp {
    /// As `create interface af_xdp` without further words.
    fn default() -> Self {
        CreateXdp {
            host_if: String::new(),
            name: None,
            mac: Mac::default(),
            queues: Queues::All,
            rx_size: None,
            tx_size: None,
            copying: Copying::default(),
            memory: PacketMemory::default(),
            multi_buffer: false,
            busy_poll: None,
            no_syscall_lock: false,
            prog: None,
            netns: None,
            pinhole: Pinhole::default(),
            force: false,
        }
    }
}

fn ring(what: &'static str, asked: Option<u32>) -> Result<u32, Error> {
    let size = asked.unwrap_or(RING);
    if size.is_power_of_two() && (64..=16_384).contains(&size) {
        Ok(size)
    } else {
        Err(Error::Config { what, value: size.into(), rule: "a power of two from 64 to 16384" })
    }
}

impl CreateXdp {
    /// How its queues are opened.
    pub(crate) fn check(&self) -> Result<XskConfig, Error> {
        if let Some(prog) = &self.prog {
            return Err(Error::Prog(prog.clone()));
        }
        if let Queues::Count(n) = self.queues {
            check_queues(n, "from 1 to 64, or all")?;
        }
        if let Some(BusyPoll { budget, .. }) = self.busy_poll
            && !(1..=u32::from(u16::MAX)).contains(&budget)
        {
            let (what, rule) = ("busy-poll-budget", "from 1 to 65535");
            return Err(Error::Config { what, value: budget.into(), rule });
        }
        if let Mac::Given(mac) = self.mac
            && (mac.is_multicast() || mac.is_zero())
        {
            return Err(Error::NotAStation(mac));
        }
        check_pinhole(self.mac, &self.pinhole)?;
        Ok(XskConfig {
            rx_size: ring("rx-queue-size", self.rx_size)?,
            tx_size: ring("tx-queue-size", self.tx_size)?,
            copying: self.copying,
            memory: self.memory,
            multi_buffer: self.multi_buffer,
            busy_poll: self.busy_poll,
        })
    }
}

/// A number of queues is one that the program's map has room for.
pub(crate) fn check_queues(queues: u32, rule: &'static str) -> Result<(), Error> {
    if (1..=MOST_QUEUES).contains(&queues) {
        return Ok(());
    }
    Err(Error::Config { what: "number of receive queues", value: queues.into(), rule })
}

/// Rules that need a MAC address of the router's own have one.
pub(crate) fn check_pinhole(mac: Mac, pinhole: &Pinhole) -> Result<(), Error> {
    if mac == Mac::Kernels && pinhole.has(Rule::Others) {
        return Err(RuleError::OthersNeedsOwnMac.into());
    }
    Ok(())
}
