//! The data plane: two features of the punt arcs, for both families, and the nodes of punt sockets.

mod dispatch;
mod policer;
mod redirect;
mod socket;
mod socket_rx;

pub(crate) use dispatch::{DISPATCH, Dispatch};
pub(crate) use policer::Policer;
pub(crate) use redirect::Redirector;
pub(crate) use socket::{Error as TxError, Item, PuntKey, ToSocket};
pub(crate) use socket_rx::{RxError, SOCKET_RX, SocketRx};

/// What differs between the families.
pub(crate) trait Kind: Copy + Send + Sync + 'static {
    /// The arc.
    const ARC: &'static str;
    /// The policer's node.
    const POLICER: &'static str;
    /// The redirect's node.
    const REDIRECT: &'static str;
    /// The node that follows an adjacency.
    const BALANCE: &'static str;
    /// The nodes that hand packets to the host.
    const HOST: &'static [&'static str];
    /// What the policer comes before.
    const BEFORE_HOST: &'static [&'static str];
}

/// IPv4.
#[derive(Clone, Copy)]
pub(crate) struct V4;
/// IPv6.
#[derive(Clone, Copy)]
pub(crate) struct V6;

impl Kind for V4 {
    const ARC: &'static str = shoal_ip4::PUNT_ARC;
    const POLICER: &'static str = "ip4-punt-policer";
    const REDIRECT: &'static str = "ip4-punt-redirect";
    const BALANCE: &'static str = "ip4-load-balance";
    const HOST: &'static [&'static str] = &["linux-cp-punt-ip4"];
    const BEFORE_HOST: &'static [&'static str] = &["ip4-punt-redirect", "linux-cp-punt-ip4"];
}

impl Kind for V6 {
    const ARC: &'static str = shoal_ip6::PUNT_ARC;
    const POLICER: &'static str = "ip6-punt-policer";
    const REDIRECT: &'static str = "ip6-punt-redirect";
    const BALANCE: &'static str = "ip6-load-balance";
    const HOST: &'static [&'static str] = &["linux-cp-punt-ip6"];
    const BEFORE_HOST: &'static [&'static str] = &["ip6-punt-redirect", "linux-cp-punt-ip6"];
}
