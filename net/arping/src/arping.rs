//! Sends, waits and counts.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use shoal_graph::Graph;
use shoal_interface::{IfFlags, InterfaceError, Interfaces, SwIfIndex};
use shoal_ip6_nd::Nd;
use shoal_module::cli::Sink;
use shoal_module::{Control, Missing};
use shoal_neighbor::{Answer, Answers, Protocol as _};
use shoal_wire::MacAddress;

/// Shortest and longest time between two questions, in seconds.
pub(crate) const INTERVALS: std::ops::RangeInclusive<f64> = 0.001..=3600.0;

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// Who has the address? From the address of this router in its network.
    WhoHas,
    /// I have it: an ARP request for the address from itself, or an unsolicited advertisement.
    Announce,
}

/// What `arping` is asked to do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arping {
    /// The link.
    pub interface: SwIfIndex,
    /// Whose address.
    pub address: IpAddr,
    /// What is sent.
    pub question: Question,
    /// How often.
    pub repeat: u32,
    /// Time from one to the next, and behind the last one.
    pub interval: Duration,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// Sent.
    pub sent: u32,
    /// Answers heard.
    pub received: u32,
    /// Who answered last.
    pub mac: Option<MacAddress>,
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum ArpingError {
    /// The interface is not there.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// It has no stations.
    #[error("{0} is not an Ethernet interface: it does not use ARP")]
    NotEthernet(String),
    /// No host can have the address.
    #[error("{0} cannot be the address of a host")]
    NoHost(IpAddr),
    /// The router has no address to ask with.
    #[error("{0} has no address to ask for {1} with")]
    NoSource(String, IpAddr),
    /// A module is missing.
    #[error(transparent)]
    Missing(#[from] Missing),
}

impl Arping {
    /// Asks until it has asked often enough. With a sink it says what it hears and ends when its reader leaves.
    ///
    /// # Errors
    /// Nothing can be sent at all.
    pub async fn run(self, control: Rc<Control>, sink: Option<&Sink>) -> Result<Counted, ArpingError> {
        let interfaces = control.get::<Interfaces>()?;
        let (name, data) = (interfaces.name(self.interface)?, interfaces.data(self.interface)?);
        if !data.flags().has(IfFlags::ETHERNET) {
            return Err(ArpingError::NotEthernet(name));
        }
        if self.address.is_unspecified() || self.address.is_multicast() {
            return Err(ArpingError::NoHost(self.address));
        }
        let (received, mac) = (Rc::new(Cell::new(0u32)), Rc::new(RefCell::new(Vec::new())));
        let (count, heard) = (Rc::clone(&received), Rc::clone(&mac));
        let (interface, address) = (self.interface, self.address);
        let _listening = Answers::of(&control).listen(move |answer: &Answer| {
            if answer.interface == interface && answer.address == address {
                count.set(count.get() + 1);
                heard.borrow_mut().push(answer.mac);
            }
        });
        let processes = control.processes()?;
        let (mut sent, mut last) = (0, None);
        for _ in 0..self.repeat {
            if self.send(&control, &interfaces)? {
                sent += 1;
            }
            let wait = processes.sleep(self.interval);
            let gone = async {
                match sink {
                    Some(sink) => sink.gone().await,
                    None => std::future::pending().await,
                }
                true
            };
            let gone = futures_lite::future::or(gone, async {
                wait.await;
                false
            });
            let gone = gone.await;
            for mac in mac.take() {
                last = Some(mac);
                if let Some(sink) = sink {
                    // A client that left is seen above.
                    let _ = sink.line(format_args!("Received arping reply from {address} [{mac}]"));
                }
            }
            if gone {
                break;
            }
        }
        Ok(Counted { sent, received: received.get(), mac: last })
    }

    /// Sends one; false when there is no buffer.
    fn send(self, control: &Rc<Control>, interfaces: &Interfaces) -> Result<bool, ArpingError> {
        let graph = control.graph()?;
        match (self.address, self.question) {
            (IpAddr::V4(target), question) => {
                let neighbours = control.get::<shoal_arp::Neighbours>()?;
                let source = match question {
                    Question::Announce => Some(target),
                    Question::WhoHas => neighbours.protocol().source_for((self.interface, target)),
                };
                self.ask(neighbours.protocol(), &graph, interfaces, source, target)
            }
            (IpAddr::V6(target), Question::WhoHas) => {
                let neighbours = control.get::<shoal_ip6_nd::Neighbours>()?;
                let source = neighbours.protocol().source_for((self.interface, target));
                self.ask(neighbours.protocol(), &graph, interfaces, source, target)
            }
            (IpAddr::V6(target), Question::Announce) => {
                Ok(control.get::<Nd>()?.announce(self.interface, target))
            }
        }
    }

    fn ask<P: shoal_neighbor::Protocol>(
        self,
        protocol: &P,
        graph: &Graph,
        interfaces: &Interfaces,
        source: Option<P::Addr>,
        target: P::Addr,
    ) -> Result<bool, ArpingError> {
        let name = || interfaces.name(self.interface).unwrap_or_default();
        let source = source.ok_or_else(|| ArpingError::NoSource(name(), self.address))?;
        let data = interfaces.data(self.interface)?;
        let question = shoal_neighbor::Question { interface: self.interface, data, source, to: None, target };
        let mut main = graph.main();
        let Some(buffer) = protocol.question(&question, main.cache()) else { return Ok(false) };
        main.inject(interfaces.output_node(), buffer);
        Ok(true)
    }
}
