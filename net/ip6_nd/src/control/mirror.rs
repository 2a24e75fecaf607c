//! Interfaces whose hosts are answered for everybody: they use this router's own addresses.

use shoal_interface::SwIfIndex;

use super::Nd;
use crate::{NdError, Proxy};

/// The arcs, the nodes that answer there, and the features before them.
pub(crate) const MIRRORS: [(&str, &str, &[&str]); 2] = [
    (shoal_ip6::UNICAST_ARC, "ip6-unicast-nd-proxy", &[]),
    (shoal_ip6::MULTICAST_ARC, "ip6-multicast-nd-proxy", &[]),
];

impl Nd {
    /// Answers the solicitations of an interface's hosts for every address, or no longer.
    ///
    /// # Errors
    /// There is no such interface; nothing is changed.
    pub fn set_mirror(&self, interface: SwIfIndex, on: Proxy) -> Result<(), NdError> {
        self.interfaces.data(interface)?;
        let on = on == Proxy::Answer;
        if self.mirrors.borrow().contains(&interface) == on {
            return Ok(());
        }
        for (arc, node, _) in MIRRORS {
            self.interfaces.enable_feature(arc, node, interface, on)?;
        }
        let mut mirrors = self.mirrors.borrow_mut();
        if on {
            mirrors.insert(interface)
        } else {
            mirrors.remove(&interface)
        };
        Ok(())
    }

    /// Whether an interface's hosts are answered for everybody.
    pub fn is_mirror(&self, interface: SwIfIndex) -> bool {
        self.mirrors.borrow().contains(&interface)
    }
}
