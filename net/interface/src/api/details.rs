//! `sw_interface_dump`.

use shoal_message::{
    IfStatusFlags, IfType, InterfaceIndex, LinkDuplex, MacAddress, Message, SubIfFlags, Text,
};
use shoal_module::api::{Call, Dump};

use super::walk;
use crate::{Exact, IfFlags, Info, Inner, Match, SwIfIndex, TagKind};

/// An interface.
#[derive(Message)]
#[message(reply)]
pub struct SwInterfaceDetails {
    /// Its number.
    pub sw_if_index: InterfaceIndex,
    /// The number of the interface that it is a part of; its own if it is none.
    pub sup_sw_if_index: u32,
    /// Its MAC address; zero if its packets have no Ethernet header.
    pub l2_address: MacAddress,
    /// Whether it is admin up, and whether there is a link.
    pub flags: IfStatusFlags,
    /// What it is made of.
    pub r#type: IfType,
    /// Whether both directions at a time.
    pub link_duplex: LinkDuplex,
    /// In kbit/s, 0 when unknown.
    pub link_speed: u32,
    /// The largest packet that its device carries.
    pub link_mtu: u16,
    /// The largest packet, of all and of IPv4, IPv6, MPLS; 0: the first holds.
    pub mtu: [u32; 4],
    /// Of a sub-interface: its number.
    pub sub_id: u32,
    /// Of a sub-interface: how many VLAN tags.
    pub sub_number_of_tags: u8,
    /// Of a sub-interface: the outer VLAN.
    pub sub_outer_vlan_id: u16,
    /// Of a sub-interface: the inner VLAN.
    pub sub_inner_vlan_id: u16,
    /// Of a sub-interface: how its packets are tagged.
    pub sub_if_flags: SubIfFlags,
    /// What is done with VLAN tags, as in `l2_interface_vlan_tag_rewrite`.
    pub vtr_op: u32,
    /// Whether tags are 802.1Q.
    pub vtr_push_dot1q: u32,
    /// The first tag.
    pub vtr_tag1: u32,
    /// The second tag.
    pub vtr_tag2: u32,
    /// Of a provider's bridge: the outer tag.
    pub outer_tag: u16,
    /// Of a provider's bridge: the destination address.
    pub b_dmac: MacAddress,
    /// Of a provider's bridge: the source address.
    pub b_smac: MacAddress,
    /// Of a provider's bridge: the VLAN.
    pub b_vlanid: u16,
    /// Of a provider's bridge: the service.
    pub i_sid: u32,
    /// Its name.
    pub interface_name: Text<64>,
    /// What its driver is called.
    pub interface_dev_type: Text<64>,
    /// The operator's note.
    pub tag: Text<64>,
}

/// Facts of a sub-interface's frames.
#[derive(Default)]
struct Tags {
    count: u8,
    outer: u16,
    inner: u16,
    flags: u32,
}

impl Tags {
    fn of(takes: Match) -> Tags {
        let exact = |exact| if exact == Exact::Yes { SubIfFlags::EXACT_MATCH } else { 0 };
        match takes {
            Match::Default => Tags { flags: SubIfFlags::DEFAULT, ..Tags::default() },
            Match::End => Tags::default(),
            Match::Untagged => Tags { flags: SubIfFlags::NO_TAGS | exact(Exact::Yes), ..Tags::default() },
            Match::Tags { kind, outer, inner, exact: whether } => {
                let (tags, inner) = match inner {
                    Inner::None => (SubIfFlags::ONE_TAG, 0),
                    Inner::Any => (SubIfFlags::TWO_TAGS | SubIfFlags::INNER_VLAN_ID_ANY, 0),
                    Inner::Id(id) => (SubIfFlags::TWO_TAGS, id.number()),
                };
                let kind = if kind == TagKind::Dot1ad { SubIfFlags::DOT1AD } else { 0 };
                let (count, outer) = (takes.tag_count(), outer.number());
                Tags { count, outer, inner, flags: tags | kind | exact(whether) }
            }
        }
    }
}

impl From<Info> for SwInterfaceDetails {
    fn from(info: Info) -> Self {
        let bit = |flag: IfFlags, bit: u32| if info.flags.has(flag) { bit } else { 0 };
        let flags =
            bit(IfFlags::ADMIN_UP, IfStatusFlags::ADMIN_UP) | bit(IfFlags::LINK_UP, IfStatusFlags::LINK_UP);
        let mtu = info.mtu;
        let tags = info.sub.map(|sub| Tags::of(sub.takes)).unwrap_or_default();
        SwInterfaceDetails {
            sw_if_index: InterfaceIndex(info.index.0),
            sup_sw_if_index: info.sub.map_or(info.index, |sub| sub.port).0,
            l2_address: MacAddress(info.mac.0),
            flags: IfStatusFlags(flags),
            r#type: match info.sub {
                Some(sub) if sub.takes == Match::End => IfType::Pipe,
                Some(_) => IfType::Sub,
                None => IfType::Hardware,
            },
            link_duplex: LinkDuplex::Unknown,
            link_speed: info.speed_kbps,
            link_mtu: info.link_mtu,
            mtu: [mtu.l3, mtu.ip4, mtu.ip6, mtu.mpls].map(u32::from),
            sub_id: info.sub.map_or(0, |sub| sub.number),
            sub_number_of_tags: tags.count,
            sub_outer_vlan_id: tags.outer,
            sub_inner_vlan_id: tags.inner,
            sub_if_flags: SubIfFlags(tags.flags),
            vtr_op: info.tag_rewrite.op,
            vtr_push_dot1q: u32::from(info.tag_rewrite.is_dot1q),
            vtr_tag1: info.tag_rewrite.ids[0].into(),
            vtr_tag2: info.tag_rewrite.ids[1].into(),
            outer_tag: info.tag_rewrite.provider.outer_tag,
            b_dmac: MacAddress(info.tag_rewrite.provider.dst.0),
            b_smac: MacAddress(info.tag_rewrite.provider.src.0),
            b_vlanid: info.tag_rewrite.provider.vlan,
            i_sid: info.tag_rewrite.provider.service,
            interface_name: info.name.as_str().into(),
            interface_dev_type: info.class.into(),
            tag: info.tag.as_str().into(),
        }
    }
}

/// Asks for one interface, all, or those with some letters in their names.
#[derive(Message)]
#[message(request, details = SwInterfaceDetails)]
pub struct SwInterfaceDump {
    /// The interface, if no letters are given; 0 or all bits set for all.
    #[preset(4294967295)]
    pub sw_if_index: InterfaceIndex,
    /// Whether letters are given.
    pub name_filter_valid: bool,
    /// Letters in a name, large or small.
    pub name_filter: String,
}

impl Dump for SwInterfaceDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = SwInterfaceDetails> + 'static {
        let letters =
            self.name_filter_valid.then(|| self.name_filter.trim_end_matches('\0').to_ascii_lowercase());
        // As in VPP: clients that fill in nothing mean all.
        let all = letters.is_some() || self.sw_if_index == InterfaceIndex::NONE || self.sw_if_index.0 == 0;
        let only = (!all).then_some(SwIfIndex(self.sw_if_index.0));
        walk(call, only).filter_map(move |(interfaces, index)| {
            let info = interfaces.summary(index).ok()?;
            let fits = letters.as_ref().is_none_or(|l| info.name.to_ascii_lowercase().contains(l.as_str()));
            fits.then(|| info.into())
        })
    }
}
