//! `ip4-local-full-reassembly`, `ip6-local-full-reassembly`: fragments that are for this router.
//! ip4-local -> **ip4-local-full-reassembly** -> ip4-full-reassembly, and the whole back to ip4-local

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::Packet;
use shoal_graph::{Cx, NoError, NodeIndex, PacketNode};

use super::Way;
use crate::family::Family;
use crate::state::Ticket;

/// The node that sees the whole; known once the graph is built.
#[derive(Clone, Debug, Default)]
pub struct Receiver(Arc<AtomicU32>);

impl Receiver {
    /// Says which.
    pub fn set(&self, node: NodeIndex) {
        self.0.store(node.number(), Ordering::Relaxed);
    }

    fn get(&self) -> NodeIndex {
        NodeIndex::from_number(self.0.load(Ordering::Relaxed))
    }
}

/// Tells where the whole goes.
pub struct LocalFull<F> {
    receiver: Receiver,
    family: PhantomData<F>,
}

impl<F> LocalFull<F> {
    /// The whole goes to the receiver.
    pub fn new(receiver: Receiver) -> Self {
        LocalFull { receiver, family: PhantomData }
    }
}

impl<F: Family> PacketNode for LocalFull<F> {
    const NAME: &'static str = F::NODES.local;
    type Next = Way<F, false>;
    type Error = NoError;
    type Trace = &'static str;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Self::Next, NoError> {
        cx.trace(pkt, || "fragment for this router");
        let ticket = Ticket::to(self.receiver.get(), cx.thread());
        Ticket { for_us: 1, ..ticket }.put(pkt);
        Ok(Way::FRAGMENT)
    }
}
