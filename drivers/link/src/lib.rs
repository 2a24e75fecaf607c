//! What drivers share: of the host's own interfaces, and of rings in memory that another process has, too.
//!
//! - [`Link`], [`LinkWatch`]: what the kernel says about an interface, now and whenever it changes;
//!   [`set_admin_state`], [`set_mtu`]; [`netlink::ask`] for everything else.
//! - [`AddressWatch`]: the kernel's own addresses, likewise. [`Announcements`]: its neighbours and routes, too.
//! - [`EventFd`], [`Doorbell`]: how one end of a shared ring waits for the other, and wakes it.
//! - [`Listener`]: how peers come. [`PeerFd`]: what they send, and how it is closed.
//! - [`Stations`]: which frames an interface of the kernel passes on.
//! - [`mac_or_random`]: the router's MAC address on a new interface.
//! - [`Intake`]: the way from received frames into the graph, counted and traced alike for all of them.
//!
//! What is not here: queues. How frames are read and sent is what makes a driver.
#![deny(unsafe_code)]

mod addresses;
mod announce;
mod error;
mod event;
mod facts;
mod inbox;
mod intake;
mod listener;
mod mac;
pub mod netlink;
mod peer_fd;
mod reader;
mod stations;
#[allow(unsafe_code)]
mod sys;
mod watch;

pub use addresses::AddressWatch;
pub use announce::{Announcement, Announcements, MULTICAST_ROUTES};
pub use error::Error;
pub use event::{Doorbell, EventError, EventFd};
pub use facts::{AdminState, IfIndex, Link, set_admin_state, set_mtu};
pub use intake::{Intake, Layer, NotIp, Refused, packet};
pub use listener::Listener;
pub use mac::mac_or_random;
pub use peer_fd::{PeerFd, check_closing};
pub use stations::Stations;
pub use watch::{LinkChange, LinkEvent, LinkWatch};
