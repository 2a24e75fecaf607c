//! What does a frame from the kernel still owe, and how is the debt paid?
//!
//! Linux hands frames over *unfinished*: a TCP segment leaves a local socket without its checksum, and
//! as a superframe of up to 64 KB that a device is expected to cut. AF_PACKET (`PACKET_VNET_HDR`), TAP
//! (`IFF_VNET_HDR`) and vhost-user describe the unfinished work in the same ten bytes in front of the
//! frame, `struct virtio_net_hdr` (virtio 1.2, 5.1.6). This crate is that header, once, for all drivers:
//!
//! - [`VnetHdr`]: the ten bytes as they lie in memory, little-endian.
//! - [`VnetHdr::validate`] turns them into an [`Offload`] that cannot be wrong for the frame it came
//!   with: a header is input, and a hostile peer writes it.
//! - [`Offload::store`], [`Offload::load`]: the same in a packet's metadata; [`fill`], [`fill_with`], [`insert_tag`]: a frame
//!   becomes a packet.
//! - [`finish_checksum`], [`complete_checksum`]: does the checksum of a frame, or of a packet, in software, for an
//!   output that does not offload.
//! - [`Segments`]: cuts a superframe in software, for an output without GSO; into bytes or into packets.
//! - [`coalesce`]: makes superframes of TCP segments that follow each other, for an output that takes them.
//!
//! A frame is a slice of segments (`&[&[u8]]`), because a superframe is a chain of 2 KB buffers.
//! Nothing here allocates but buffers.
//!
//! Deliberately absent: UDP fragmentation offload (`gso_type` 3), which Linux stopped producing in
//! 4.14; it is refused as [`VnetError::UnknownGso`]. Tunnel GSO (virtio 1.3) is refused likewise.
#![forbid(unsafe_code)]

mod bytes;
mod checksum;
mod gro;
mod hdr;
mod packet;
mod segment;

pub use bytes::ethernet_payload;
pub use checksum::{Sum, finish_checksum};
pub use gro::{Front, coalesce};
pub use hdr::{Csum, Gso, GsoKind, Offload, VNET_HDR_LEN, VnetError, VnetHdr};
pub use packet::{HeadersTooLong, SegmentList, complete_checksum, fill, fill_with, insert_tag, owed};
pub use segment::{MOST_PIECES, PieceError, Segments};

#[cfg(test)]
mod gro_tests;
#[cfg(test)]
mod segment_tests;
