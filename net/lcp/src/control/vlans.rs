//! VLANs that were made in Linux on images of ports: each has a sub-interface of the port, whose image it is.
//!
//! What Linux sends by such a VLAN comes tagged out of the port's image and leaves as it is. What is for Linux goes into the port's
//! image with the tags of the sub-interface, and the kernel takes it from there.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_interface::{Exact, HostLinkKind, Inner, Match, MtuLayer, TagKind};
use shoal_wire::MacAddress;

use super::*;

/// Sub-interfaces that Linux can have this router make.
const MOST: usize = 16_384;
/// Numbers of sub-interfaces with two tags begin here: `1002000` is 20 in 100.
const TWO_TAGS: u32 = 10_000;

/// What is known of a pair whose image is a VLAN of Linux.
pub(super) struct OfVlan {
    /// The port that it is on.
    port: SwIfIndex,
    /// Whether the sub-interface was made for it, and goes with it.
    is_made: bool,
    /// The MTU that Linux has given it, as far as it was not refused.
    mtu: u32,
    /// An Ethernet address that is not the port's.
    mac: Option<MacAddress>,
}

/// A VLAN of Linux on an image, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VlanInfo {
    /// Its namespace, none for the router's own.
    pub netns: Option<String>,
    /// Its name.
    pub name: String,
    /// The kernel's name of what it is on.
    pub on: String,
    /// The kind of its tags.
    pub tag: TagKind,
    /// Its number.
    pub id: u16,
    /// Its sub-interface.
    pub sub: Option<SwIfIndex>,
    /// Why it has none.
    pub why: Option<String>,
}

/// Where a VLAN is.
enum Place {
    /// On no image of this router.
    Elsewhere,
    /// On the image of a port: what its sub-interface takes, and the number it is to have.
    On(SwIfIndex, Match, u32),
    /// On an image, in a way that there is not here.
    Impossible(&'static str),
}

impl OfVlan {
    /// Whether the sub-interface was made for it.
    pub fn is_made(&self) -> bool {
        self.is_made
    }
}

impl Lcp {
    /// Whether the image of an interface is a VLAN of Linux.
    pub(super) fn is_vlan(&self, phy: SwIfIndex) -> bool {
        self.pairs.borrow().get(&phy).is_some_and(|pair| pair.vlan.is_some())
    }

    /// The sub-interface whose image is this VLAN of Linux.
    pub(super) fn vlan_by(&self, netns: &Option<String>, host_index: u32) -> Option<SwIfIndex> {
        self.phy_of(netns, host_index).filter(|phy| self.is_vlan(*phy))
    }

    /// VLANs of a namespace with a sub-interface.
    pub(super) fn vlans_in(&self, netns: &Option<String>) -> usize {
        let pairs = self.pairs.borrow();
        pairs.values().filter(|pair| pair.vlan.is_some() && pair.netns == *netns).count()
    }

    /// All VLANs of Linux on images.
    pub fn vlans(&self) -> Vec<VlanInfo> {
        let keys: Vec<(Option<String>, u32)> = {
            let mirrors = self.mirrors.borrow();
            let of = |(netns, mirror): (&Option<String>, &mirror::Mirror)| {
                let all = mirror.links.values();
                let vlans = all.filter(|link| matches!(link.kind, HostLinkKind::Vlan { .. }));
                vlans.map(|link| (netns.clone(), link.host_index)).collect::<Vec<_>>()
            };
            mirrors.iter().flat_map(of).collect()
        };
        keys.into_iter().filter_map(|(netns, host_index)| self.vlan_info(netns, host_index)).collect()
    }

    fn vlan_info(&self, netns: Option<String>, host_index: u32) -> Option<VlanInfo> {
        if matches!(self.place_of(&netns, host_index), Place::Elsewhere) {
            return None;
        }
        let (link, why) = self.with(&netns, |mirror| {
            Some((mirror.links.get(&host_index)?.clone(), mirror.refused.get(&host_index).cloned()))
        })??;
        let HostLinkKind::Vlan { of: Some(of), tag, id } = link.kind else { return None };
        let (on, sub) = (self.host_name(&netns, of), self.vlan_by(&netns, host_index));
        Some(VlanInfo { netns, name: link.name, on, tag, id: id.number(), sub, why })
    }

    /// Where a VLAN is: on the image of a port, or on a VLAN there.
    fn place_of(&self, netns: &Option<String>, host_index: u32) -> Place {
        let kind = |index: u32| self.with(netns, |mirror| mirror.links.get(&index).map(|link| link.kind));
        let Some(Some(HostLinkKind::Vlan { of: Some(of), tag, id })) = kind(host_index) else {
            return Place::Elsewhere;
        };
        let exact = Exact::Yes;
        if let Some(port) = self.phy_of(netns, of).filter(|phy| !self.is_vlan(*phy)) {
            if self.interfaces.sub(port).is_some() {
                return Place::Impossible("it is on the image of a sub-interface");
            }
            let takes = Match::Tags { kind: tag, outer: id, inner: Inner::None, exact };
            return Place::On(port, takes, id.number().into());
        }
        let Some(Some(HostLinkKind::Vlan { of: Some(below), tag: outer_tag, id: outer })) = kind(of) else {
            return Place::Elsewhere;
        };
        let Some(port) = self.phy_of(netns, below) else { return Place::Elsewhere };
        if self.is_vlan(port) {
            return Place::Impossible("it has more than two tags");
        }
        if self.interfaces.sub(port).is_some() {
            return Place::Impossible("it is on the image of a sub-interface");
        }
        if tag != TagKind::Dot1q {
            return Place::Impossible("its inner tag is one of 802.1ad");
        }
        let takes = Match::Tags { kind: outer_tag, outer, inner: Inner::Id(id), exact };
        Place::On(port, takes, u32::from(outer.number()) * TWO_TAGS + u32::from(id.number()))
    }

    /// VLANs that are on this image already, or on VLANs there.
    pub(super) fn follow_vlans_on(&self, netns: &Option<String>, image: u32) {
        let all = self.with(netns, |mirror| {
            let of = |link: &shoal_interface::HostLink| match link.kind {
                HostLinkKind::Vlan { of, .. } => of,
                _ => None,
            };
            let on = |lower: &BTreeSet<u32>| -> BTreeSet<u32> {
                let links = mirror.links.values();
                let on = links.filter(|link| of(link).is_some_and(|of| lower.contains(&of)));
                on.map(|link| link.host_index).collect()
            };
            let outer = on(&BTreeSet::from([image]));
            let inner = on(&outer);
            outer.into_iter().chain(inner).collect::<Vec<_>>()
        });
        all.into_iter().flatten().for_each(|host_index| self.follow_vlan(netns, host_index));
    }

    /// A VLAN of Linux has come or changed.
    pub(super) fn follow_vlan(&self, netns: &Option<String>, host_index: u32) {
        if let Some(sub) = self.vlan_by(netns, host_index) {
            return self.follow_vlan_facts(netns, sub, host_index);
        }
        let made = match self.place_of(netns, host_index) {
            Place::Elsewhere => return,
            Place::Impossible(why) => Err(why.to_owned()),
            Place::On(port, takes, number) => self.make_vlan(netns, host_index, (port, takes, number)),
        };
        let sub = match made {
            Ok(sub) => sub,
            Err(why) => {
                if self.with(netns, |mirror| mirror.refuse(host_index, &why)) == Some(true) {
                    let name = self.host_name(netns, host_index);
                    tracing::warn!("linux-cp: VLAN {name} of Linux is not followed: {why}");
                }
                return;
            }
        };
        self.with(netns, |mirror| mirror.refused.remove(&host_index));
        self.follow_vlan_facts(netns, sub, host_index);
        self.pairs_changed(netns, host_index);
        self.follow_vrf(sub);
        // What was told before is not told again.
        let known = self.with(netns, |mirror| {
            let of = |address: &&(u32, (IpAddr, u8))| address.0 == host_index;
            let up = !mirror.down.contains(&host_index);
            (up, mirror.addresses.iter().filter(of).map(|(_, address)| *address).collect::<Vec<_>>())
        });
        let Some((up, addresses)) = known else { return };
        let up = up && self.with(netns, |m| m.links.get(&host_index).is_some_and(|l| l.up)) == Some(true);
        if up && self.port_is_up(sub) {
            self.set_as_linux(sub, true);
        }
        for address in addresses {
            self.warn(sub, "address of its image", self.set_address(sub, address, true));
        }
        self.sync_addresses(sub);
    }

    fn port_is_up(&self, sub: SwIfIndex) -> bool {
        self.interfaces.data(self.interfaces.port_of(sub)).is_ok_and(|port| port.is_up())
    }

    /// Makes the sub-interface of a VLAN, unless there is one already, and the pair.
    fn make_vlan(
        &self,
        netns: &Option<String>,
        host_index: u32,
        (port, takes, number): (SwIfIndex, Match, u32),
    ) -> Result<SwIfIndex, String> {
        let ethernet = self.control.upgrade().and_then(|control| control.get::<Ethernet>().ok());
        let ethernet = ethernet.ok_or("this router has no Ethernet")?;
        let host = self.host_of(port).ok_or("its port has no image")?;
        let there = self.interfaces.subs_of(port);
        let same = there.into_iter().find(|sub| self.interfaces.sub(*sub).is_some_and(|s| s.takes == takes));
        let (sub, is_made) = match same {
            Some(sub) if self.peers.of(sub).is_some() => {
                return Err("the sub-interface with these tags has another image".into());
            }
            Some(sub) => (sub, false),
            None => {
                if self.pairs.borrow().values().filter(|pair| pair.vlan.is_some()).count() >= MOST {
                    return Err(format!("there are {MOST} already"));
                }
                // An operator's sub-interface may have the number and other tags.
                let numbers = std::iter::once(number).chain(5_000..TWO_TAGS);
                let free = numbers.into_iter().find(|n| self.interfaces.sub_of(port, *n).is_none());
                let free = free.ok_or("no number is free for its sub-interface")?;
                self.making.set(true);
                let sub = ethernet.create_sub(port, free, takes).map_err(|e| e.to_string());
                self.making.set(false);
                let sub = sub?;
                // Linux has it: no configuration names it.
                self.interfaces.set_follows(sub).map_err(|e| e.to_string())?;
                (sub, true)
            }
        };
        self.peers.lead(sub, host);
        for (arc, node) in PHY_FEATURES {
            if let Err(e) = self.interfaces.enable_feature(arc, node, sub, true) {
                self.disconnect_vlan(sub);
                if is_made {
                    let _ = ethernet.delete_sub(sub);
                }
                return Err(e.to_string());
            }
        }
        let image = (host_index, HostLayer::Ethernet);
        let vlan = Some(OfVlan { port, is_made, mtu: 0, mac: None });
        self.enter(sub, Pair { vlan, ..Pair::new(host, String::new(), netns.clone(), image) });
        Ok(sub)
    }

    /// Name, MTU and Ethernet address of a VLAN are as Linux says.
    fn follow_vlan_facts(&self, netns: &Option<String>, sub: SwIfIndex, host_index: u32) {
        let Some(link) = self.with(netns, |mirror| mirror.links.get(&host_index).cloned()).flatten() else {
            return;
        };
        let Ok(data) = self.interfaces.data(sub) else { return };
        let (mut mtu_changed, mut mac_before, mut mac_now) = (false, None, None);
        if let Some(pair) = self.pairs.borrow_mut().get_mut(&sub)
            && let Some(vlan) = &mut pair.vlan
        {
            pair.name = link.name;
            mtu_changed = link.mtu != 0 && std::mem::replace(&mut vlan.mtu, link.mtu) != link.mtu;
            mac_now = link.mac.filter(|mac| *mac != data.mac() && !mac.is_zero());
            mac_before = std::mem::replace(&mut vlan.mac, mac_now);
        }
        if mtu_changed && u32::from(data.mtu) != link.mtu {
            let done = self.interfaces.set_mtu(sub, MtuLayer::L3, link.mtu).map_err(|e| e.to_string());
            self.warn(sub, "MTU of its image", done);
        }
        if mac_before != mac_now {
            self.set_vlan_mac(sub, mac_before, mac_now);
        }
    }

    /// A VLAN with an address of its own: its port takes frames for it, too, and those for Linux have it.
    fn set_vlan_mac(&self, sub: SwIfIndex, before: Option<MacAddress>, now: Option<MacAddress>) {
        if let Some(now) = now {
            let done = self.interfaces.add_mac(sub, now).map_err(|e| e.to_string());
            self.warn(sub, "MAC address of its image", done);
        }
        if let Some(before) = before {
            let _ = self.interfaces.del_mac(sub, before);
        }
        self.peers.set_mac(sub, now);
    }

    /// A port has come up: so do those VLANs on it that Linux has up.
    pub(super) fn raise_vlans_of(&self, port: SwIfIndex) {
        for (sub, netns, host_index) in self.vlans_of(port) {
            let up = self.with(&netns, |mirror| mirror.links.get(&host_index).is_some_and(|link| link.up));
            if up == Some(true) {
                self.set_as_linux(sub, true);
            }
        }
    }

    fn vlans_of(&self, port: SwIfIndex) -> Vec<(SwIfIndex, Option<String>, u32)> {
        let pairs = self.pairs.borrow();
        let of = pairs.iter().filter(|(_, pair)| pair.vlan.as_ref().is_some_and(|vlan| vlan.port == port));
        of.map(|(sub, pair)| (*sub, pair.netns.clone(), pair.host_index)).collect()
    }

    /// The image of a port goes, and its VLANs with it.
    pub(super) fn drop_vlans_of(&self, port: SwIfIndex) {
        for (sub, ..) in self.vlans_of(port) {
            self.drop_vlan(sub, true);
        }
    }

    /// A VLAN of Linux has gone.
    pub(super) fn vlan_gone(&self, netns: &Option<String>, host_index: u32) {
        if let Some(sub) = self.vlan_by(netns, host_index) {
            self.drop_vlan(sub, true);
        }
    }

    /// Takes a pair with a VLAN of Linux apart. The sub-interface goes, if it was made for it, unless it is going already.
    pub(super) fn drop_vlan(&self, sub: SwIfIndex, with_sub: bool) {
        let Some(pair) = self.take(sub) else { return };
        let Some(vlan) = &pair.vlan else { return };
        self.set_vlan_mac(sub, vlan.mac, None);
        self.disconnect_vlan(sub);
        self.pairs_changed(&pair.netns, pair.host_index);
        if with_sub && !vlan.is_made {
            self.keep_interface(sub, &pair);
        }
        let ethernet = self.control.upgrade().and_then(|control| control.get::<Ethernet>().ok());
        if let Some(ethernet) = ethernet.filter(|_| with_sub && vlan.is_made)
            && let Err(e) = ethernet.delete_sub(sub)
        {
            tracing::warn!("linux-cp: the sub-interface of {} stays: {e}", pair.name);
        }
    }

    fn disconnect_vlan(&self, sub: SwIfIndex) {
        for (arc, node) in PHY_FEATURES {
            let _ = self.interfaces.enable_feature(arc, node, sub, false);
        }
        self.peers.leave(sub);
    }
}
