//! The queues of one interface, opened together behind its program.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use shoal_link::Link;

use crate::Error;
use crate::config::Queues;
use crate::filter::{Filter, MOST_QUEUES};
use crate::rx::Senders;
use crate::sys::bpf::XdpLink;
use crate::sys::promiscuous::Promiscuous;
use crate::sys::queue::{self, LONGEST, LONGEST_SINGLE, XskHandle, XskRx, XskTx};
use crate::sys::{Copying, XdpMode, XskConfig};

/// How long a queue's former socket may take to leave it: the kernel takes it off later than it is closed.
const PATIENCE: Duration = Duration::from_millis(300);
/// Ethernet and two tags.
const HEADERS: u32 = 14 + 8;

/// Largest MTU whose frames fit.
pub(crate) fn most_mtu(multi_buffer: bool) -> u32 {
    (if multi_buffer { LONGEST.min(65_535) } else { LONGEST_SINGLE }) as u32 - HEADERS
}

/// Everything that is open on the kernel's interface. Dropped in this order: first frames go to the host again.
pub(crate) struct Attached {
    link: XdpLink,
    pub(crate) handles: Vec<XskHandle>,
    _promiscuous: Option<Promiscuous>,
    pub(crate) zero_copy: bool,
}

impl Attached {
    pub(crate) fn mode(&self) -> XdpMode {
        self.link.mode()
    }

    /// Whether senders may leave checksums open to us.
    pub(crate) fn senders(&self, link: &Link) -> Senders {
        if link.kind.is_some() || self.mode() == XdpMode::Generic {
            Senders::LeaveOpen
        } else {
            Senders::Finish
        }
    }
}

/// What is open, the halves of its queues, and what an operator should know.
pub(crate) type Opened = (Attached, Vec<(XskRx, XskTx)>, Vec<String>);

/// Opens all queues of an interface, or none, in the network namespace of the calling thread.
pub(crate) fn open(
    link: &Link,
    filter: &Filter,
    config: &XskConfig,
    queues: Queues,
    own_mac: bool,
) -> Result<Opened, Error> {
    let most = most_mtu(config.multi_buffer);
    if link.mtu > most {
        return Err(Error::MtuTooLarge { name: link.name.clone(), mtu: link.mtu, most });
    }
    let mut remarks = Vec::new();
    let attached = attach(link, filter, config, &mut remarks)?;
    // In generic mode there is no driver that could copy nothing.
    let copying = if attached.mode() == XdpMode::Generic { Copying::Copy } else { config.copying };
    let config = XskConfig { copying, ..*config };
    let wanted = match queues {
        Queues::Count(n) => n,
        Queues::All => link.rx_queues.clamp(1, MOST_QUEUES),
    };
    let mut opened = Vec::new();
    for number in 0..wanted {
        match open_one(link, number, &config) {
            Ok(halves) => opened.push(halves),
            // Fewer queues are in use than there could be.
            Err(e) if e.errno() == Some(libc::EINVAL) && number > 0 => match queues {
                Queues::All => break,
                Queues::Count(asked) => {
                    return Err(Error::TooManyQueues { name: link.name.clone(), has: number, asked });
                }
            },
            Err(e) => return Err(e),
        }
    }
    for (number, (rx, _)) in (0..).zip(&opened) {
        filter.put_socket(number, rx.as_fd())?;
    }
    if opened.len() < link.rx_queues as usize && queues != Queues::All {
        let (has, used) = (link.rx_queues, opened.len());
        let name = &link.name;
        remarks
            .push(format!("{name} has up to {has} queues, {used} in use: frames of others go to the host"));
    }
    let promiscuous = if own_mac { Some(Promiscuous::set(link.index)?) } else { None };
    let handles = opened.iter().map(|(rx, _)| rx.handle()).collect();
    let zero_copy = opened.iter().all(|(rx, _)| rx.is_zero_copy());
    Ok((Attached { link: attached, handles, _promiscuous: promiscuous, zero_copy }, opened, remarks))
}

/// In the driver if it can, else in the kernel's stack, which is said.
fn attach(
    link: &Link,
    filter: &Filter,
    config: &XskConfig,
    remarks: &mut Vec<String>,
) -> Result<XdpLink, Error> {
    let name = || link.name.clone();
    let why = match filter.attach(link.index, XdpMode::Native) {
        Ok(attached) => return Ok(attached),
        Err(e) => e,
    };
    match why.errno() {
        Some(libc::EBUSY | libc::EEXIST) => return Err(Error::Busy(name())),
        Some(libc::EPERM | libc::EACCES | libc::ENODEV) => return Err(why),
        _ if config.copying == Copying::ZeroCopy => return Err(Error::NoZeroCopy(name())),
        _ => {}
    }
    let attached = filter.attach(link.index, XdpMode::Generic).map_err(|e| match e.errno() {
        Some(libc::EBUSY | libc::EEXIST) => Error::Busy(name()),
        _ => e,
    })?;
    let reason = match why {
        Error::Os { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    remarks.push(format!("{}: XDP in generic mode, its driver says: {reason}", link.name));
    Ok(attached)
}

fn open_one(link: &Link, number: u32, config: &XskConfig) -> Result<(XskRx, XskTx), Error> {
    let until = Instant::now() + PATIENCE;
    loop {
        match queue::open(link.index, number, config) {
            Err(e) if e.errno() == Some(libc::EBUSY) => {
                if Instant::now() >= until {
                    return Err(Error::QueueBusy { name: link.name.clone(), queue: number });
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(e) if e.errno() == Some(libc::EOPNOTSUPP) && config.copying == Copying::ZeroCopy => {
                return Err(Error::NoZeroCopy(link.name.clone()));
            }
            opened => return opened,
        }
    }
}
