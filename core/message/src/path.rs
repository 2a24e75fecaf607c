//! Ways to go, as the messages of routes have them.

use shoal_derive::Value;

use crate::address::AddressUnion;
use crate::definition::{Definition, Field, Kind, Shape, Type};
use crate::input::{Input, Malformed};

/// What a path's next hop speaks.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FibPathNhProto {
    /// IPv4.
    #[entry("FIB_API_PATH_NH_PROTO_IP4")]
    Ip4 = 0,
    /// IPv6.
    #[entry("FIB_API_PATH_NH_PROTO_IP6")]
    Ip6 = 1,
    /// MPLS.
    #[entry("FIB_API_PATH_NH_PROTO_MPLS")]
    Mpls = 2,
    /// Ethernet.
    #[entry("FIB_API_PATH_NH_PROTO_ETHERNET")]
    Ethernet = 3,
    /// BIER.
    #[entry("FIB_API_PATH_NH_PROTO_BIER")]
    Bier = 4,
}

/// How a path is resolved: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("FIB_API_PATH_FLAG_NONE", 0)]
#[entry("FIB_API_PATH_FLAG_RESOLVE_VIA_ATTACHED", 1)]
#[entry("FIB_API_PATH_FLAG_RESOLVE_VIA_HOST", 2)]
#[entry("FIB_API_PATH_FLAG_POP_PW_CW", 4)]
pub struct FibPathFlags(pub u32);

/// What a path leads to.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FibPathType {
    /// A next hop, or the hosts of a link.
    #[entry("FIB_API_PATH_TYPE_NORMAL")]
    Normal = 0,
    /// The router itself.
    #[entry("FIB_API_PATH_TYPE_LOCAL")]
    Local = 1,
    /// Nowhere: dropped.
    #[entry("FIB_API_PATH_TYPE_DROP")]
    Drop = 2,
    /// A UDP tunnel.
    #[entry("FIB_API_PATH_TYPE_UDP_ENCAP")]
    UdpEncap = 3,
    /// A BIER imposition.
    #[entry("FIB_API_PATH_TYPE_BIER_IMP")]
    BierImp = 4,
    /// Nowhere: the sender is told that there is no way.
    #[entry("FIB_API_PATH_TYPE_ICMP_UNREACH")]
    IcmpUnreach = 5,
    /// Nowhere: the sender is told that it must not.
    #[entry("FIB_API_PATH_TYPE_ICMP_PROHIBIT")]
    IcmpProhibit = 6,
    /// A look-up of the source in a table.
    #[entry("FIB_API_PATH_TYPE_SOURCE_LOOKUP")]
    SourceLookup = 7,
    /// A link, with the packet as it came.
    #[entry("FIB_API_PATH_TYPE_DVR")]
    Dvr = 8,
    /// An interface, as if the packet had come there.
    #[entry("FIB_API_PATH_TYPE_INTERFACE_RX")]
    InterfaceRx = 9,
    /// A classifier.
    #[entry("FIB_API_PATH_TYPE_CLASSIFY")]
    Classify = 10,
}

/// A label to put on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FibMplsLabel {
    /// Whether the time to live is that of the packet.
    pub is_uniform: u8,
    /// The label.
    pub label: u32,
    /// Its time to live.
    pub ttl: u8,
    /// Its traffic class.
    pub exp: u8,
}

const fn field(name: &'static str, doc: &'static str, of: Type) -> Field {
    Field { name, doc, of, shape: Shape::One, default: None }
}

/// By hand, because each path has room for sixteen labels and hardly any path has one.
impl crate::value::Value for FibMplsLabel {
    const TYPE: Type = Type::User(&Definition {
        name: "fib_mpls_label",
        doc: "A label to put on a packet",
        kind: Kind::Struct(&[
            field("is_uniform", "Whether the time to live is that of the packet", u8::TYPE),
            field("label", "The label", u32::TYPE),
            field("ttl", "Its time to live", u8::TYPE),
            field("exp", "Its traffic class", u8::TYPE),
        ]),
    });
    const LEAST: usize = 7;

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let [is_uniform, a, b, c, d, ttl, exp] = input.array()?;
        Ok(FibMplsLabel { is_uniform, label: u32::from_be_bytes([a, b, c, d]), ttl, exp })
    }

    fn encode(&self, to: &mut Vec<u8>) {
        let [a, b, c, d] = self.label.to_be_bytes();
        to.extend_from_slice(&[self.is_uniform, a, b, c, d, self.ttl, self.exp]);
    }

    fn decode_array<const N: usize>(input: &mut Input<'_>) -> Result<[Self; N], Malformed> {
        let mut all = [FibMplsLabel::default(); N];
        let mut bytes = Input::new(input.take(N * Self::LEAST)?);
        if bytes.is_zero() {
            return Ok(all);
        }
        for one in &mut all {
            *one = Self::decode(&mut bytes)?;
        }
        Ok(all)
    }

    fn encode_array(all: &[Self], to: &mut Vec<u8>) {
        if all.iter().all(|one| *one == FibMplsLabel::default()) {
            to.resize(to.len() + all.len() * Self::LEAST, 0);
            return;
        }
        for one in all {
            one.encode(to);
        }
    }
}

/// The next hop of a path, by its kind.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibPathNh {
    /// The address, if the path has one.
    pub address: AddressUnion,
    /// The MPLS label looked up instead of an address.
    pub via_label: u32,
    /// The number of a UDP tunnel or an interface.
    pub obj_id: u32,
    /// The number of a classifier's table.
    pub classify_table_index: u32,
}

/// A way to go.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibPath {
    /// The interface; all bits set if the next hop says which.
    pub sw_if_index: u32,
    /// The table where the next hop, or the packet, is looked up.
    pub table_id: u32,
    /// What multicast packets that came this way are known by.
    pub rpf_id: u32,
    /// Its share, among the paths of its preference.
    pub weight: u8,
    /// Paths of the lowest number that work are used.
    pub preference: u8,
    /// What it leads to.
    pub r#type: FibPathType,
    /// How it is resolved.
    pub flags: FibPathFlags,
    /// What the next hop speaks.
    pub proto: FibPathNhProto,
    /// The next hop.
    pub nh: FibPathNh,
    /// How many labels are put on the packet.
    pub n_labels: u8,
    /// The labels, the outermost first.
    pub label_stack: [FibMplsLabel; 16],
}
