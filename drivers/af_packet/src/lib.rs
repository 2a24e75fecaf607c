//! AF_PACKET: the interfaces the kernel already has.
//!
//! The lowest layer, which everything else of the driver rests on:
//!
//! - [`RxRing`]: one receive queue, a TPACKET_V3 ring read in place.
//! - [`TxQueue`]: one transmit queue, frames gathered from segments and sent by the batch.
//! - [`Link`], [`LinkWatch`]: what the kernel says about an interface, now and whenever it changes.
//!
//! Checksum-offloaded frames and superframes cross both queues with their `virtio_net_hdr`
//! ([`shoal_vnet`]), so local TCP with default offloads works.
#![deny(unsafe_code)]

mod error;
mod link;
mod link_watch;
mod netlink;
#[allow(unsafe_code)]
mod sys;

pub use error::Error;
pub use link::{AdminState, IfIndex, Link, set_admin_state};
pub use link_watch::{LinkChange, LinkEvent, LinkWatch};
pub use sys::{
    Fanout, Promiscuous, Qdisc, RingFault, RxConfig, RxFrame, RxRing, RxStats, TxBatch, TxConfig, TxQueue,
    TxRefused, TxReport, VlanTag,
};
