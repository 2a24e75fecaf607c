//! `ip4-local-end-of-arc`, `ip6-local-end-of-arc`: after the last feature of packets for this router.
//! the last feature of `ip4-local` -> **ip4-local-end-of-arc** -> where ip4-local would have sent them

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_graph::{Cx, PacketNode};

use crate::{Headers, IpFamily, Listeners};

/// A family's node for packets to this router, as far as the end of its arc goes on where it stopped.
pub trait LocalDelivery: PacketNode {
    /// The family.
    type Family: IpFamily;

    /// Where a packet goes that was found in order. Features may have made another packet of it.
    ///
    /// # Errors
    /// Why it is dropped.
    fn deliver<N: PacketNode<Error = Self::Error>>(
        listeners: &Listeners,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, N>,
    ) -> Result<Self::Next, Self::Error>;
}

/// Delivers packets that `L` has checked. It has the edges of that node.
pub struct LocalEnd<L> {
    listeners: Arc<Listeners>,
    local: std::marker::PhantomData<fn() -> L>,
}

impl<L: LocalDelivery> LocalEnd<L> {
    /// `listeners` are those of `L`.
    pub fn new(listeners: Arc<Listeners>) -> Self {
        LocalEnd { listeners, local: std::marker::PhantomData }
    }
}

impl<L: LocalDelivery> PacketNode for LocalEnd<L> {
    const NAME: &'static str = L::Family::NODES.local_end;
    type Next = L::Next;
    type Error = L::Error;
    type Trace = Headers<L::Family>;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<L::Next, L::Error> {
        cx.trace(pkt, || Headers::<L::Family>::of(pkt));
        L::deliver(&self.listeners, pkt, cx)
    }
}
