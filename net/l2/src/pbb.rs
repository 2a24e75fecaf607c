//! Provider backbone bridging (IEEE 802.1ah): the header that a provider's bridge puts in front of customers' frames.
//!
//! It is 22 bytes: two addresses, a tag with the provider's VLAN, a tag with the customer's service. As with VLAN tags, what a
//! port does to frames that come in by it, it does the other way round to those that go out.

use std::fmt;

use shoal_buffer::Packet;
use shoal_ethernet::Vid;
use shoal_infra::{Zeroable, zeroable_struct};
use shoal_interface::ProviderSaid;
use shoal_wire::{EtherType, EthernetHeader, MacAddress};

use crate::rewrite::same_tag;

/// Bytes of the addresses a frame begins with.
const ADDRESSES: usize = 12;
/// Bytes of a tag.
const TAG: usize = 4;
/// Bytes of the header.
const HEADER: usize = 22;
/// The type of the tag with the service.
const SERVICE_TAG: EtherType = EtherType(0x88e7);

/// [`Step::takes`], [`Step::puts`]: nothing.
const NONE: u8 = 0;
/// The header.
const WHOLE: u8 = 1;
/// A service VLAN tag in the customer's frame.
const STAG: u8 = 2;

zeroable_struct! {
    /// What is done to a frame. All zero: nothing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Step {
        takes: u8,
        puts: u8,
        header: [u8; 22],
        tag: [u8; 4],
    }
}

zeroable_struct! {
    /// What is done to frames of one interface.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct PbbData {
        pub(crate) rx: Step,
        pub(crate) tx: Step,
    }
}

fn length(what: u8) -> usize {
    match what {
        WHOLE => HEADER,
        STAG => TAG,
        _ => 0,
    }
}

impl Step {
    /// Changes a frame. `None`, and the frame is as it was: it has not what is to be taken off, or there is no room.
    pub(crate) fn apply(&self, pkt: &mut Packet<'_>) -> Option<()> {
        if !self.fits(pkt.data()) || pkt.headroom() + length(self.takes) < length(self.puts) {
            return None;
        }
        match self.takes {
            WHOLE => pkt.pull(HEADER)?,
            STAG => take_tag(pkt)?,
            _ => {}
        }
        match self.puts {
            WHOLE => {
                pkt.push(HEADER)?;
                pkt.data_mut().get_mut(..HEADER)?.copy_from_slice(&self.header);
            }
            STAG => put_tag(pkt, self.tag)?,
            _ => {}
        }
        Some(())
    }

    /// Whether a frame has what is to be taken off, and a customer's frame behind it.
    fn fits(&self, frame: &[u8]) -> bool {
        if frame.len() < length(self.takes) + EthernetHeader::LEN {
            return false;
        }
        match self.takes {
            WHOLE => self.is_for(frame),
            STAG => frame.get(ADDRESSES..ADDRESSES + TAG).is_some_and(|has| same_tag(has, &self.tag)),
            _ => true,
        }
    }

    /// Whether a frame has a header with the VLAN and the service, whatever its addresses and priorities.
    fn is_for(&self, frame: &[u8]) -> bool {
        let (Some(has), Some(wants)) = (frame.get(ADDRESSES..HEADER), self.header.get(ADDRESSES..)) else {
            return false;
        };
        // The tag with the VLAN, then its type, priorities, and three bytes of the service.
        let (Some((vlan, [kind @ .., _, _, _, _])), Some((wanted_vlan, [wanted_kind @ .., _, _, _, _]))) =
            (has.split_at_checked(TAG), wants.split_at_checked(TAG))
        else {
            return false;
        };
        same_tag(vlan, wanted_vlan) && kind == wanted_kind && has.last_chunk::<3>() == wants.last_chunk::<3>()
    }
}

fn take_tag(pkt: &mut Packet<'_>) -> Option<()> {
    let addresses: [u8; ADDRESSES] = *pkt.data().first_chunk()?;
    pkt.pull(TAG)?;
    pkt.data_mut().get_mut(..ADDRESSES)?.copy_from_slice(&addresses);
    Some(())
}

fn put_tag(pkt: &mut Packet<'_>, tag: [u8; TAG]) -> Option<()> {
    let addresses: [u8; ADDRESSES] = *pkt.data().first_chunk()?;
    pkt.push(TAG)?;
    let data = pkt.data_mut();
    data.get_mut(..ADDRESSES)?.copy_from_slice(&addresses);
    data.get_mut(ADDRESSES..ADDRESSES + TAG)?.copy_from_slice(&tag);
    Some(())
}

/// What a port does to frames that come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PbbOp {
    /// Nothing.
    #[default]
    Disabled,
    /// Puts the header on.
    Push,
    /// Takes it off.
    Pop,
    /// Takes it off and puts a service VLAN tag into the customer's frame.
    Translate(Vid),
}

/// A customer's service: 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServiceId(u32);

impl ServiceId {
    /// The highest one.
    pub const MAX: u32 = 0xff_ffff;

    /// `None`: above [`ServiceId::MAX`].
    pub fn new(number: u32) -> Option<Self> {
        (number <= Self::MAX).then_some(ServiceId(number))
    }

    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What a port does to headers of provider backbone bridging, as configured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PbbRewrite {
    /// The operation.
    pub op: PbbOp,
    /// The destination of frames that get the header: the provider's bridge at the other end.
    pub dst: MacAddress,
    /// Their source.
    pub src: MacAddress,
    /// The provider's VLAN.
    pub vlan: Vid,
    /// The customer's service.
    pub service: ServiceId,
}

impl PbbRewrite {
    /// Nothing is done.
    pub fn none() -> Self {
        let vlan = Vid::new(0).unwrap_or_else(|| unreachable!("0 is below 4096"));
        let (dst, src) = (MacAddress::default(), MacAddress::default());
        PbbRewrite { op: PbbOp::Disabled, dst, src, vlan, service: ServiceId::default() }
    }

    /// Whether anything is done.
    pub fn is_some(&self) -> bool {
        self.op != PbbOp::Disabled
    }

    fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        // IEEE 802.1ah: priorities are 0, the customer's addresses are in use.
        let fields = [
            &self.dst.0[..],
            &self.src.0,
            &EtherType::QINQ.0.to_be_bytes(),
            &self.vlan.number().to_be_bytes(),
            &SERVICE_TAG.0.to_be_bytes(),
            &self.service.0.to_be_bytes(),
        ];
        for (to, from) in header.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        header
    }

    /// What is done to frames that come in and to those that go out.
    pub(crate) fn both_ways(&self) -> PbbData {
        let (takes, puts, stag) = match self.op {
            PbbOp::Disabled => return PbbData::zeroed(),
            PbbOp::Push => (NONE, WHOLE, 0),
            PbbOp::Pop => (WHOLE, NONE, 0),
            PbbOp::Translate(stag) => (WHOLE, STAG, stag.number()),
        };
        let [a, b] = EtherType::QINQ.0.to_be_bytes();
        let [c, d] = stag.to_be_bytes();
        let rx = Step { takes, puts, header: self.header(), tag: [a, b, c, d] };
        PbbData { rx, tx: Step { takes: puts, puts: takes, ..rx } }
    }

    /// As messages have it.
    pub(crate) fn said(&self) -> ProviderSaid {
        let outer_tag = match self.op {
            PbbOp::Disabled => return ProviderSaid::default(),
            PbbOp::Translate(stag) => stag.number(),
            PbbOp::Push | PbbOp::Pop => 0,
        };
        let PbbRewrite { dst, src, vlan, service, .. } = *self;
        ProviderSaid { outer_tag, dst, src, vlan: vlan.number(), service: service.0 }
    }
}

/// As `set interface l2 pbb-tag-rewrite` takes it.
impl fmt::Display for PbbRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            PbbOp::Disabled => return f.write_str("disable"),
            PbbOp::Push => f.write_str("push")?,
            PbbOp::Pop => f.write_str("pop")?,
            PbbOp::Translate(stag) => write!(f, "translate_pbb_stag {}", stag.number())?,
        }
        let PbbRewrite { dst, src, vlan, service, .. } = self;
        write!(f, " dmac {dst} smac {src} s_id {} b_vlanid {}", service.0, vlan.number())
    }
}
