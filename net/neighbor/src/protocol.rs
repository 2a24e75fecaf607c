//! What a family's protocol does for its table.

use std::time::Duration;

use shoal_adj::{Family, Link};
use shoal_buffer::{Buffer, Cache, SwIfIndex};
use shoal_fib::{FibError, FibIndex};
use shoal_graph::NodeIndex;
use shoal_interface::IfData;
use shoal_wire::MacAddress;

use crate::Address;
use crate::counters::Messages;
use crate::table::Key;

/// A question to a link: who has this address?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question<A> {
    /// The link.
    pub interface: SwIfIndex,
    /// What it is like: our station's address there, and tags.
    pub data: IfData,
    /// Our own address to ask with.
    pub source: A,
    /// The neighbour that may have gone; `None` asks everybody.
    pub to: Option<MacAddress>,
    /// The address asked for.
    pub target: A,
}

/// Times of a protocol that doubts its neighbours (RFC 4861 section 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// How long a confirmed neighbour is taken to be there, at least and at most; each one's lies between.
    pub reachable: (Duration, Duration),
    /// How long a neighbour whose packets are sent without a confirmation may take to confirm.
    pub delay: Duration,
    /// What becomes of one that does not answer.
    pub silent: SilentPolicy,
}

/// What becomes of a neighbour that is known and does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SilentPolicy {
    /// It is forgotten (RFC 4861 7.3.3).
    Goes,
    /// It stays while entries do not age: there are stations that speak IPv4 and answer no ARP.
    Stays,
}

/// What a family's protocol does for its table.
pub trait Protocol: Sized + 'static {
    /// Its addresses.
    type Addr: Address;
    /// Their family.
    const FAMILY: Family;
    /// What it is called where its messages are counted.
    const NAME: &'static str;
    /// Whether neighbours must confirm from time to time that they are there, and how soon.
    const TIMING: Option<Timing>;

    /// The forwarding table of the family that an interface belongs to.
    fn fib_of(data: &IfData) -> FibIndex;
    /// The node that packets go to which waited in vain.
    fn failed_node(link: Link) -> &'static str;
    /// The node that puts rewrites in front of such packets.
    fn rewrite_node(link: Link) -> &'static str;
    /// The node that asks for a neighbour, for lookup nodes that do not name it themselves.
    fn asker(&self) -> Option<NodeIndex>;
    /// Our address to ask a neighbour with.
    fn source_for(&self, key: Key<Self::Addr>) -> Option<Self::Addr>;
    /// A question as a packet for `interface-output`, counted; `None` when there is no buffer.
    fn question(&self, question: &Question<Self::Addr>, cache: &mut Cache) -> Option<Buffer>;
    /// How many messages of the protocol came in and went out on an interface.
    fn messages(&self, interface: SwIfIndex) -> Vec<Messages>;
    /// The interface that lends an unnumbered one its addresses.
    fn lender(&self, interface: SwIfIndex) -> Option<SwIfIndex>;
    /// Enters a neighbour's host route.
    ///
    /// # Errors
    /// The table refuses it.
    fn announce(&self, fib: FibIndex, key: Key<Self::Addr>) -> Result<(), FibError>;
    /// Takes a neighbour's host route away.
    ///
    /// # Errors
    /// There is none.
    fn withdraw(&self, fib: FibIndex, key: Key<Self::Addr>) -> Result<(), FibError>;
}
