//! The queues of one interface, opened together behind its program.

use std::ops::Range;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shoal_buffer::Pool;
use shoal_link::{Link, Stations};
use shoal_wire::MacAddress;

use crate::Error;
use crate::config::Queues;
use crate::filter::{Filter, MOST_QUEUES};
use crate::queue_memory::{Rx, Tx};
use crate::rx::Senders;
use crate::sys::bpf::XdpLink;
use crate::sys::lent::{self, LONGEST_BUFFER, LONGEST_CHAIN};
use crate::sys::queue::{self, LONGEST, LONGEST_SINGLE, XskHandle};
use crate::sys::{Copying, PacketMemory, XdpMode, XskConfig};

/// How long a queue's former socket may take to leave it: the kernel takes it off later than it is closed.
const PATIENCE: Duration = Duration::from_millis(300);
/// The same of a socket that was our own a moment ago: the kernel does take it off, however busy the machine is.
const PATIENCE_WITH_OWN: Duration = Duration::from_secs(3);
/// Ethernet and two tags.
const HEADERS: u32 = 14 + 8;

/// Largest MTU whose frames fit memory of a queue's own, or buffers.
pub(crate) fn most_mtu(multi_buffer: bool, memory: PacketMemory) -> u32 {
    let longest = match (memory, multi_buffer) {
        (PacketMemory::Pool, false) => LONGEST_BUFFER,
        (PacketMemory::Pool, true) => LONGEST_CHAIN,
        (_, false) => LONGEST_SINGLE,
        (_, true) => LONGEST.min(65_535),
    };
    longest as u32 - HEADERS
}

/// Everything that is open on the kernel's interface. Dropped in this order: first frames go to the host again.
pub(crate) struct Attached {
    link: XdpLink,
    /// Open queues, from the first.
    pub(crate) queues: Vec<OpenQueue>,
    pub(crate) stations: Stations,
    multi_buffer: bool,
}

/// What the control plane keeps of a queue.
pub(crate) struct OpenQueue {
    pub(crate) handle: XskHandle,
    zero_copy: bool,
    lent: bool,
}

impl OpenQueue {
    fn of(rx: &Rx) -> Self {
        OpenQueue { handle: rx.handle(), zero_copy: rx.is_zero_copy(), lent: rx.is_lent() }
    }
}

impl Attached {
    /// Whether packets are not copied, on any queue.
    pub(crate) fn is_zero_copy(&self) -> bool {
        self.queues.iter().all(|q| q.zero_copy)
    }

    /// Queues whose packet memory is the router's buffers.
    fn lent(&self) -> usize {
        self.queues.iter().filter(|q| q.lent).count()
    }

    pub(crate) fn mode(&self) -> XdpMode {
        self.link.mode()
    }

    /// Largest MTU whose frames fit all queues.
    pub(crate) fn most_mtu(&self) -> u32 {
        let memory = if self.lent() > 0 { PacketMemory::Pool } else { PacketMemory::Own };
        most_mtu(self.multi_buffer, memory)
    }

    /// Where packets are, in a word.
    pub(crate) fn memory(&self) -> &'static str {
        match self.lent() {
            0 => "own",
            n if n == self.queues.len() => "pool",
            _ => "pool and own",
        }
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

/// Of each queue, from the first, what receives and what sends.
type QueuePairs = Vec<(Rx, Tx)>;

/// What is open, the halves of its queues, and what an operator should know.
pub(crate) type Opened = (Attached, QueuePairs, Vec<String>);

/// Opens all queues of an interface, or none, in the network namespace of the calling thread; on the buffers of a pool, if
/// there is one and the configuration allows it.
pub(crate) fn open(
    link: &Link,
    filter: &Filter,
    config: &XskConfig,
    queues: Queues,
    own_mac: Option<MacAddress>,
    pool: Option<&Arc<Pool>>,
) -> Result<Opened, Error> {
    let most = most_mtu(config.multi_buffer, config.memory);
    if link.mtu > most {
        return Err(Error::MtuTooLarge { name: link.name.clone(), mtu: link.mtu, most });
    }
    let mut remarks = Vec::new();
    let mut memory = Memory::choose(link, config, pool, &mut remarks);
    let link_of = attach(link, filter, config, &mut remarks)?;
    let mut stations = Stations::open(link.index)?;
    stations.set_own(own_mac)?;
    let multi_buffer = config.multi_buffer;
    let mut attached = Attached { link: link_of, queues: Vec::new(), stations, multi_buffer };
    let opened = attached.extend(link, filter, config, queues, &mut memory, &mut remarks)?;
    Ok((attached, opened, remarks))
}

/// Opens as many queues more as are missing to so many, or none of them; their halves, and what an operator should know.
pub(crate) fn open_more(
    attached: &mut Attached,
    link: &Link,
    filter: &Filter,
    config: &XskConfig,
    queues: u32,
    pool: Option<&Arc<Pool>>,
) -> Result<(QueuePairs, Vec<String>), Error> {
    let mut remarks = Vec::new();
    let mut memory = Memory::choose(link, config, pool, &mut remarks);
    let queues = Queues::Count(queues);
    let opened = attached.extend(link, filter, config, queues, &mut memory, &mut remarks)?;
    Ok((opened, remarks))
}

impl Attached {
    /// Opens what is missing to so many queues, or nothing, and has their frames go to their sockets.
    fn extend(
        &mut self,
        link: &Link,
        filter: &Filter,
        config: &XskConfig,
        queues: Queues,
        memory: &mut Memory<'_>,
        remarks: &mut Vec<String>,
    ) -> Result<QueuePairs, Error> {
        let first = self.queues.len() as u32;
        let end = match queues {
            Queues::Count(n) => n,
            Queues::All => link.rx_queues.clamp(1, MOST_QUEUES),
        };
        let opened = open_range(link, first..end, &as_attached(config, self.mode()), memory, remarks)?;
        let has = first + opened.len() as u32;
        // Of all that could be, fewer may be in use.
        if let Queues::Count(asked) = queues
            && has < asked
        {
            return Err(Error::TooManyQueues { name: link.name.clone(), has, asked });
        }
        for (number, (rx, _)) in (first..).zip(&opened) {
            filter.put_socket(number, rx.as_fd())?;
        }
        self.queues.extend(opened.iter().map(|(rx, _)| OpenQueue::of(rx)));
        if queues != Queues::All {
            remarks.extend(left_to_the_host(link, self.queues.len()));
        }
        Ok(opened)
    }
}

/// In generic mode there is no driver that could copy nothing.
fn as_attached(config: &XskConfig, mode: XdpMode) -> XskConfig {
    let copying = if mode == XdpMode::Generic { Copying::Copy } else { config.copying };
    XskConfig { copying, ..*config }
}

/// What to report when there are unopened queues.
pub(crate) fn left_to_the_host(link: &Link, used: usize) -> Option<String> {
    let (name, has) = (&link.name, link.rx_queues);
    let said = || format!("{name} has up to {has} queues, {used} in use: frames of others go to the host");
    (used < has as usize).then(said)
}

/// Opens queues, up to the first that is not there.
fn open_range(
    link: &Link,
    numbers: Range<u32>,
    config: &XskConfig,
    memory: &mut Memory<'_>,
    remarks: &mut Vec<String>,
) -> Result<QueuePairs, Error> {
    let mut opened = Vec::new();
    for number in numbers {
        match open_one(link, number, config, memory, remarks) {
            Ok(halves) => opened.push(halves),
            Err(e) if e.errno() == Some(libc::EINVAL) && number > 0 => break,
            Err(e) => return Err(e),
        }
    }
    Ok(opened)
}

/// Where packets of the next queue are to be.
enum Memory<'a> {
    /// In buffers of this pool; if that cannot be, in memory of its own or nowhere.
    Pool(&'a Arc<Pool>, PacketMemory),
    Own,
}

impl<'a> Memory<'a> {
    fn choose(
        link: &Link,
        config: &XskConfig,
        pool: Option<&'a Arc<Pool>>,
        remarks: &mut Vec<String>,
    ) -> Self {
        let most = most_mtu(config.multi_buffer, PacketMemory::Pool);
        match (pool, config.memory) {
            (Some(pool), PacketMemory::Pool) => Memory::Pool(pool, PacketMemory::Pool),
            (Some(pool), PacketMemory::Auto) if link.mtu <= most => Memory::Pool(pool, PacketMemory::Auto),
            (Some(_), PacketMemory::Auto) => {
                let (name, mtu) = (&link.name, link.mtu);
                remarks.push(format!(
                    "{name}: packets are copied: frames of MTU {mtu} do not fit buffers, up to {most} do"
                ));
                Memory::Own
            }
            _ => Memory::Own,
        }
    }
}

/// In the driver if it can, else in the kernel's stack, with a notice.
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

fn open_one(
    link: &Link,
    number: u32,
    config: &XskConfig,
    memory: &mut Memory<'_>,
    remarks: &mut Vec<String>,
) -> Result<(Rx, Tx), Error> {
    let mut until = Instant::now() + PATIENCE;
    loop {
        let opened = match *memory {
            Memory::Pool(pool, _) => {
                lent::open(link.index, number, config, pool).map(|(rx, tx)| (Rx::Lent(rx), Tx::Lent(tx)))
            }
            Memory::Own => queue::open(link.index, number, config).map(|(rx, tx)| (Rx::Own(rx), Tx::Own(tx))),
        };
        match (opened, &*memory) {
            (Err(Error::NoSharing(why)), Memory::Pool(_, PacketMemory::Auto)) => {
                remarks.push(format!("{}: packets of queue {number} are copied: {why}", link.name));
                *memory = Memory::Own;
                until = Instant::now() + PATIENCE_WITH_OWN;
            }
            (Err(e), _) if e.errno() == Some(libc::EBUSY) => {
                if Instant::now() >= until {
                    return Err(Error::QueueBusy { name: link.name.clone(), queue: number });
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            (Err(e), _) if e.errno() == Some(libc::EOPNOTSUPP) && config.copying == Copying::ZeroCopy => {
                return Err(Error::NoZeroCopy(link.name.clone()));
            }
            (opened, _) => return opened,
        }
    }
}
