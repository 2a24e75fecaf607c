//! The control plane: the only code that writes what packets read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use shoal_graph::{FeatureSpec, PacketNode};
use shoal_infra::{Published, TwinTable, TwinTableWriter, Zeroable};
use shoal_interface::{
    DEVICE_INPUT_ARC, Device, Event, IfFlags, Interfaces, MAX_INTERFACES, SwIfIndex, random_mac,
};
use shoal_module::{Control, InitError};
use shoal_wire::MacAddress;

use crate::announce::announce;
use crate::data::{BondData, MemberData};
use crate::error::BondError;
use crate::mode::{Balance, Mode};
use crate::node::input::BondInput;
use crate::node::tx::BondTx;

/// MTU of a new bond, as VPP's.
const MTU: u16 = 9000;
/// Bonds are numbered up to this.
pub(crate) const MOST: u32 = 16_383;

/// What a new bond is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Create {
    /// What it does with its members.
    pub mode: Mode,
    /// What makes packets a flow, in modes that look at it.
    pub balance: Balance,
    /// The number in its name; the first free one.
    pub id: Option<u32>,
    /// Its MAC address; that of its first member.
    pub mac: Option<MacAddress>,
    /// Whether only members near the processor are used. Kept and told; this router runs on one node.
    pub numa_only: bool,
    /// Whether it takes large packets, which members cut.
    pub gso: bool,
}

impl Create {
    /// A bond of a mode, all else as usual.
    pub fn mode(mode: Mode) -> Create {
        Create { mode, balance: Balance::L2, id: None, mac: None, numa_only: false, gso: false }
    }
}

/// How LACP is to treat a new member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AddMember {
    /// It speaks only when it is spoken to.
    pub passive: bool,
    /// The other end may be silent for 90 seconds instead of 3.
    pub long_timeout: bool,
}

/// A member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The interface.
    pub index: SwIfIndex,
    /// How LACP treats it.
    pub how: AddMember,
    /// The member of mode active-backup with the highest one does all.
    pub weight: u32,
    /// The MAC address it gets back when it leaves.
    own_mac: MacAddress,
    /// Whether both ends have agreed to use it: mode `lacp`.
    agreed: bool,
}

/// A bond, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bond {
    /// The interface.
    pub index: SwIfIndex,
    /// The number in its name.
    pub id: u32,
    /// How it was made.
    pub how: Create,
    /// Members in the order they came.
    pub members: Vec<Member>,
    /// Those that are active, in the order packets are spread over them.
    pub active: Vec<SwIfIndex>,
}

/// What happens to members, for those who speak for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberEvent {
    /// It is one now.
    Added {
        /// The bond.
        bond: SwIfIndex,
        /// The interface.
        member: SwIfIndex,
    },
    /// It is none any more.
    Left {
        /// The bond.
        bond: SwIfIndex,
        /// The interface.
        member: SwIfIndex,
    },
}

struct BondEntry {
    id: u32,
    how: Create,
    data: Arc<Published<BondData>>,
    members: Vec<Member>,
    active: Vec<SwIfIndex>,
    /// Whether the address is the first member's.
    mac_of_member: bool,
}

struct BondDevice;

impl Device for BondDevice {
    fn class(&self) -> &'static str {
        "bond"
    }
}

type Subscriber = Rc<dyn Fn(MemberEvent)>;

/// All bonds.
pub struct Bonds {
    interfaces: Rc<Interfaces>,
    control: std::rc::Weak<Control>,
    writer: RefCell<TwinTableWriter<MemberData>>,
    all: RefCell<BTreeMap<SwIfIndex, BondEntry>>,
    /// Whose member an interface is.
    of: RefCell<BTreeMap<SwIfIndex, SwIfIndex>>,
    subscribers: RefCell<Vec<Subscriber>>,
}

impl Bonds {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let graph = control.graph()?;
        let interfaces = control.get::<Interfaces>()?;
        let (members, writer) = TwinTable::with_capacity(MAX_INTERFACES)?;
        graph.add_packet(BondInput { members, arc: graph.arc(DEVICE_INPUT_ARC)? })?;
        // Members' frames are shared out among workers as members' frames.
        let after = &["worker-handoff"];
        graph.add_feature(FeatureSpec { arc: DEVICE_INPUT_ARC, node: BondInput::NAME, before: &[], after });
        let bonds = Rc::new(Bonds {
            interfaces,
            control: Rc::downgrade(control),
            writer: RefCell::new(writer),
            all: RefCell::default(),
            of: RefCell::default(),
            subscribers: RefCell::default(),
        });
        let weak = Rc::downgrade(&bonds);
        bonds.interfaces.subscribe(move |_, event| {
            if let Some(bonds) = weak.upgrade() {
                bonds.heard(event);
            }
        });
        Ok(bonds)
    }

    /// Tells of members that come and go.
    pub fn subscribe(&self, hear: impl Fn(MemberEvent) + 'static) {
        self.subscribers.borrow_mut().push(Rc::new(hear));
    }

    fn tell(&self, event: MemberEvent) {
        let all: Vec<Subscriber> = self.subscribers.borrow().clone();
        for hear in all {
            hear(event);
        }
    }

    fn heard(&self, event: Event) {
        let index = event.interface();
        match event {
            Event::Deleting(_) => {
                if let Some(bond) = self.bond_of(index) {
                    self.take_out(bond, index, false);
                }
                if self.all.borrow().contains_key(&index) {
                    self.members(index).into_iter().for_each(|member| self.take_out(index, member, true));
                    self.all.borrow_mut().remove(&index);
                }
            }
            Event::Admin(..) | Event::Link(..) => {
                if let Some(bond) = self.bond_of(index) {
                    self.renew(bond);
                } else if matches!(event, Event::Admin(..)) {
                    self.renew_link(index);
                }
            }
            Event::Mac(_) => self.spread_mac(index),
            _ => {}
        }
    }

    fn members(&self, bond: SwIfIndex) -> Vec<SwIfIndex> {
        let all = self.all.borrow();
        all.get(&bond).map(|held| held.members.iter().map(|m| m.index).collect()).unwrap_or_default()
    }

    /// The bond that an interface is a member of.
    pub fn bond_of(&self, member: SwIfIndex) -> Option<SwIfIndex> {
        self.of.borrow().get(&member).copied()
    }

    /// A bond; `None` for other interfaces.
    pub fn get(&self, index: SwIfIndex) -> Option<Bond> {
        let all = self.all.borrow();
        let BondEntry { id, how, members, active, .. } = all.get(&index)?;
        Some(Bond { index, id: *id, how: *how, members: members.clone(), active: active.clone() })
    }

    /// All bonds, by interface.
    pub fn list(&self) -> Vec<Bond> {
        let indices: Vec<SwIfIndex> = self.all.borrow().keys().copied().collect();
        indices.into_iter().filter_map(|index| self.get(index)).collect()
    }

    /// Makes `BondEthernet<id>`.
    ///
    /// # Errors
    /// The number is another bond's or too large, the address cannot be a station's, or the interface refuses.
    pub fn create(&self, how: Create) -> Result<SwIfIndex, BondError> {
        let taken: BTreeSet<u32> = self.all.borrow().values().map(|held| held.id).collect();
        let id = how.id.or_else(|| (0..=MOST).find(|id| !taken.contains(id))).unwrap_or(u32::MAX);
        if id > MOST {
            return Err(BondError::Number(id, MOST));
        }
        let name = format!("BondEthernet{id}");
        if taken.contains(&id) {
            return Err(BondError::Exists(name));
        }
        if let Some(mac) = how.mac.filter(|mac| mac.is_multicast() || mac.is_zero()) {
            return Err(BondError::Mac(mac.to_string()));
        }
        let how = Create { balance: Balance::of(how.mode, how.balance), ..how };
        let offloads = IfFlags::TX_GSO.set(IfFlags::TX_CHECKSUM, true);
        let active = Vec::new();
        let data = Arc::new(Published::new(BondData { mode: how.mode, balance: how.balance, active }));
        let create = shoal_interface::Create {
            name: &name,
            mac: how.mac.unwrap_or_else(random_mac),
            mtu: MTU,
            flags: IfFlags::ETHERNET.set(offloads, how.gso),
            rx_next: "ethernet-input",
            device: Rc::new(BondDevice),
        };
        let tx = BondTx { data: Arc::clone(&data), turn: AtomicU32::new(0) };
        let index = self.interfaces.create(&create, tx)?;
        let (members, active, mac_of_member) = (Vec::new(), Vec::new(), how.mac.is_none());
        self.all.borrow_mut().insert(index, BondEntry { id, how, data, members, active, mac_of_member });
        Ok(index)
    }

    fn no_bond(&self, index: SwIfIndex) -> BondError {
        BondError::NotBond(self.interfaces.name(index).unwrap_or_else(|_| format!("sw_if_index {index}")))
    }

    /// Deletes a bond; its members are on their own again.
    ///
    /// # Errors
    /// It is none, or the interface refuses.
    pub fn delete(&self, index: SwIfIndex) -> Result<(), BondError> {
        if !self.all.borrow().contains_key(&index) {
            return Err(self.no_bond(index));
        }
        Ok(self.interfaces.delete(index)?)
    }

    /// Makes an interface a member.
    ///
    /// # Errors
    /// The bond is none, the interface is a member or cannot be one, or it refuses the bond's address.
    pub fn add(&self, bond: SwIfIndex, index: SwIfIndex, how: AddMember) -> Result<(), BondError> {
        let (first, mac_of_member) = match self.all.borrow().get(&bond) {
            Some(held) => (held.members.is_empty(), held.mac_of_member),
            None => return Err(self.no_bond(bond)),
        };
        let (name, data) = (self.interfaces.name(index)?, self.interfaces.data(index)?);
        if let Some(other) = self.bond_of(index) {
            return Err(BondError::IsMember(name, self.interfaces.name(other)?));
        }
        let why = match () {
            () if self.all.borrow().contains_key(&index) => Some("is a bond itself"),
            () if self.interfaces.sub(index).is_some() => Some("is a sub-interface"),
            // Their frames would be the bond's, and they would hear nothing.
            () if !self.interfaces.subs_of(index).is_empty() => {
                Some("has sub-interfaces, which can be created on the bond instead")
            }
            () if self.interfaces.is_loopback(index) => Some("is a loopback"),
            () if !data.flags().has(IfFlags::ETHERNET) => Some("has no Ethernet frames"),
            () if data.flags().has(IfFlags::L2) => Some("is bridged or cross-connected"),
            () => None,
        };
        if let Some(why) = why {
            return Err(BondError::Unfit(name, why));
        }
        let own_mac = data.mac();
        if first && mac_of_member {
            self.interfaces.set_mac(bond, own_mac)?;
        }
        let mac = self.interfaces.data(bond)?.mac();
        if mac != own_mac {
            self.interfaces.set_mac(index, mac)?;
        }
        if let Err(e) = self.interfaces.enable_feature(DEVICE_INPUT_ARC, BondInput::NAME, index, true) {
            let _ = self.interfaces.set_mac(index, own_mac);
            return Err(e.into());
        }
        let member = Member { index, how, weight: 0, own_mac, agreed: false };
        if let Some(held) = self.all.borrow_mut().get_mut(&bond) {
            held.members.push(member);
        }
        self.of.borrow_mut().insert(index, bond);
        self.renew(bond);
        self.tell(MemberEvent::Added { bond, member: index });
        Ok(())
    }

    /// Lets a member go.
    ///
    /// # Errors
    /// It is none.
    pub fn detach(&self, index: SwIfIndex) -> Result<(), BondError> {
        let Some(bond) = self.bond_of(index) else {
            return Err(BondError::NotMember(self.interfaces.name(index)?));
        };
        self.take_out(bond, index, true);
        Ok(())
    }

    /// Takes a member out of its bond; `stays`: as an interface it goes on.
    fn take_out(&self, bond: SwIfIndex, index: SwIfIndex, stays: bool) {
        let gone = self.all.borrow_mut().get_mut(&bond).and_then(|held| {
            let at = held.members.iter().position(|member| member.index == index)?;
            Some(held.members.remove(at))
        });
        self.of.borrow_mut().remove(&index);
        self.store(index, MemberData::zeroed());
        if let (Some(member), true) = (gone, stays) {
            let done = self.interfaces.enable_feature(DEVICE_INPUT_ARC, BondInput::NAME, index, false);
            if let Err(error) = done.and_then(|()| self.interfaces.set_mac(index, member.own_mac)) {
                tracing::warn!(%index, %error, "a former member of a bond is not quite as it was before");
            }
        }
        self.renew(bond);
        self.tell(MemberEvent::Left { bond, member: index });
    }

    /// Sets the weight of a member of mode active-backup.
    ///
    /// # Errors
    /// It is no member, or of another mode.
    pub fn set_weight(&self, index: SwIfIndex, weight: u32) -> Result<(), BondError> {
        let name = self.interfaces.name(index)?;
        let Some(bond) = self.bond_of(index) else { return Err(BondError::NotMember(name)) };
        let mode = self.get(bond).map_or(Mode::ActiveBackup, |bond| bond.how.mode);
        if mode != Mode::ActiveBackup {
            return Err(BondError::NoWeights(name, mode.word()));
        }
        self.change(bond, index, |member| member.weight = weight);
        self.renew(bond);
        Ok(())
    }

    /// Says whether both ends of a member's link have agreed to use it: mode `lacp`.
    pub fn set_agreed(&self, index: SwIfIndex, agreed: bool) {
        if let Some(bond) = self.bond_of(index) {
            self.change(bond, index, |member| member.agreed = agreed);
            self.renew(bond);
        }
    }

    fn change(&self, bond: SwIfIndex, index: SwIfIndex, act: impl FnOnce(&mut Member)) {
        if let Some(held) = self.all.borrow_mut().get_mut(&bond)
            && let Some(member) = held.members.iter_mut().find(|member| member.index == index)
        {
            act(member);
        }
    }

    /// Whether frames come and go by an interface.
    fn works(&self, index: SwIfIndex) -> bool {
        let needed = IfFlags::ADMIN_UP.set(IfFlags::LINK_UP, true);
        self.interfaces.data(index).is_ok_and(|data| data.flags().all(needed))
    }

    /// Finds out which members are active, and tells packets.
    fn renew(&self, bond: SwIfIndex) {
        let (old_first, new) = {
            let mut all = self.all.borrow_mut();
            let Some(held) = all.get_mut(&bond) else { return };
            let lacp = held.how.mode == Mode::Lacp;
            let usable = |member: &Member| self.works(member.index) && (member.agreed || !lacp);
            let now: Vec<&Member> = held.members.iter().filter(|member| usable(member)).collect();
            let is_new = |member: &&&Member| !held.active.contains(&member.index);
            let mut active: Vec<SwIfIndex> =
                held.active.iter().copied().filter(|old| now.iter().any(|m| m.index == *old)).collect();
            active.extend(now.iter().filter(is_new).map(|member| member.index));
            if held.how.mode == Mode::ActiveBackup {
                let current = held.active.first().copied();
                // The highest weight; of several the one that is at it, or the lowest number.
                let rank = |member: &&Member| {
                    (member.weight, Some(member.index) == current, std::cmp::Reverse(member.index))
                };
                let mut ranked = now.clone();
                ranked.sort_by_key(|member| std::cmp::Reverse(rank(member)));
                active = ranked.into_iter().map(|member| member.index).collect();
            }
            let old_first = held.active.first().copied();
            if held.active != active {
                held.active.clone_from(&active);
                let BondData { mode, balance, .. } = *held.data.get();
                held.data.replace(BondData { mode, balance, active: active.clone() });
            }
            (old_first, active)
        };
        let Some(Bond { how, members, .. }) = self.get(bond) else { return };
        for member in members {
            let waits = how.mode == Mode::ActiveBackup && new.first() != Some(&member.index);
            self.store(member.index, MemberData { bond: bond.0, waits: waits.into() });
        }
        self.renew_link(bond);
        if how.mode == Mode::ActiveBackup && !new.is_empty() && new.first().copied() != old_first {
            self.announce(bond);
        }
    }

    fn announce(&self, bond: SwIfIndex) {
        if let Some(control) = self.control.upgrade() {
            announce(&control, &self.interfaces, bond);
        }
    }

    fn store(&self, index: SwIfIndex, data: MemberData) {
        let mut writer = self.writer.borrow_mut();
        if writer.get(index.0 as usize) != Some(&data)
            && let Err(error) = writer.store(index.0 as usize, data)
        {
            tracing::error!(%index, %error, "packets do not see that a bond's members have changed");
        }
    }

    /// A bond has a link when it is up and one of its members works.
    fn renew_link(&self, bond: SwIfIndex) {
        let some = self.all.borrow().get(&bond).map(|held| !held.active.is_empty());
        let (Some(some), Ok(data)) = (some, self.interfaces.data(bond)) else { return };
        if let Err(error) = self.interfaces.set_link(bond, some && data.is_up()) {
            tracing::warn!(%bond, %error, "the link of a bond stays as it was");
        }
    }

    /// Members have their bond's address.
    fn spread_mac(&self, bond: SwIfIndex) {
        let Ok(data) = self.interfaces.data(bond) else { return };
        for member in self.members(bond) {
            let differs = self.interfaces.data(member).is_ok_and(|own| own.mac() != data.mac());
            if differs && let Err(error) = self.interfaces.set_mac(member, data.mac()) {
                tracing::warn!(%member, %error, "a member does not take its bond's MAC address");
            }
        }
    }
}
