//! Next hops whose session is not up are not used by routes.

use std::net::IpAddr;

use shoal_fib::{Fib, Reach};
use shoal_interface::SwIfIndex;

/// Tells the forwarding table of a neighbour's session; `None`: there is none any more.
pub(crate) fn tell(fib: &Fib, interface: Option<SwIfIndex>, peer: IpAddr, is_up: Option<bool>) {
    let reach = if is_up == Some(false) { Reach::Down } else { Reach::Up };
    fib.set_watched(interface, peer, reach);
}
