//! Duplicate address detection: an address is ours only after the link was asked for it in vain. RFC 4862 5.4.

use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_ip6::Use;
use shoal_wire::ip6_address::{is_link_local, link_local_of, solicited_node};
use shoal_wire::{Ip6Prefix, MacAddress};
use std::net::Ipv6Addr;

use super::Nd;
use crate::counters::Kind;
use crate::frame::{self, MessageRoute};
use crate::observe::Observed;
use crate::{AddressState, Key, NdError};

/// DupAddrDetectTransmits (RFC 4862 5.1), as VPP has it: no question is sent until `ip6_dad_enable_disable`.
pub(crate) const TRANSMITS: u32 = 0;
/// RETRANS_TIMER (RFC 4861 section 10).
pub(super) const RETRANS: Duration = Duration::from_secs(1);
/// MAX_RTR_SOLICITATION_DELAY (RFC 4861 section 10): stations whose links come up together do not speak together.
const MOST_DELAY: Duration = Duration::from_secs(1);
/// How often it is reported that another station has an address of ours.
const BETWEEN_COMPLAINTS: Duration = Duration::from_mins(1);

/// When the first question for an address is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum First {
    /// At once: an operator gave the address.
    Now,
    /// RFC 4862 5.4.2: after a while that differs from station to station, as the link has just come up.
    Later,
}

/// An address of this router.
pub(super) struct Address {
    pub(super) prefix: Ip6Prefix,
    pub(super) standing: AddressState,
    /// When the next question is sent, or the last one has found no answer.
    pub(super) due: Option<Time>,
    /// Questions still to be sent.
    left: u32,
    complained: Option<Time>,
}

/// An address and its standing, as `show ip6 dad` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dad {
    /// The interface.
    pub interface: SwIfIndex,
    /// The address with the length of its network.
    pub prefix: Ip6Prefix,
    /// Whether it is ours.
    pub standing: AddressState,
}

impl Address {
    pub(super) fn new(prefix: Ip6Prefix) -> Self {
        Address { prefix, standing: AddressState::Tentative, due: None, left: 0, complained: None }
    }
}

impl Nd {
    /// How often an address is asked for before it is ours; 0: never.
    pub fn dad_transmits(&self) -> u32 {
        self.transmits.get()
    }

    /// Sets how often new addresses are asked for; at once ours are those of 0 questions.
    pub fn set_dad_transmits(&self, transmits: u32) {
        self.transmits.set(transmits);
    }

    /// How long the link has to answer each question.
    pub fn dad_retransmit(&self) -> Duration {
        self.retransmit.get()
    }

    /// Sets how often new addresses are asked for, and how long each answer may take.
    ///
    /// # Errors
    /// The time is out of range; nothing is changed then.
    pub fn set_dad(&self, transmits: u32, retransmit: Duration) -> Result<(), NdError> {
        let (least, most) = (100, 60_000);
        let value = u32::try_from(retransmit.as_millis()).unwrap_or(u32::MAX);
        if !(least..=most).contains(&value) {
            return Err(NdError::Range { what: "milliseconds between questions", value, least, most });
        }
        self.retransmit.set(retransmit);
        self.set_dad_transmits(transmits);
        Ok(())
    }

    /// An address has another standing.
    fn observed(&self, key: Key, standing: AddressState, asked: u32) {
        let transmits = self.transmits.get();
        self.observers.tell(&Observed::Address { key, standing, asked, transmits });
    }

    /// All addresses of this router.
    pub fn addresses(&self) -> Vec<Dad> {
        let all = self.addresses.borrow();
        let dad = |(key, own): (&Key, &Address)| Dad {
            interface: key.0,
            prefix: own.prefix,
            standing: own.standing,
        };
        all.iter().map(dad).collect()
    }

    /// Whether there can be another station with our address, which is worth asking for. There is none behind a
    /// loopback, nor on a link that has no stations; and what is made of the MAC address is as unique as that one.
    fn may_clash(&self, (interface, address): Key) -> bool {
        let Ok(data) = self.interfaces.data(interface) else { return false };
        let made = is_link_local(address) && address == link_local_of(data.mac());
        data.flags().has(IfFlags::ETHERNET)
            && !self.interfaces.is_loopback(interface)
            && !made
            && !address.is_loopback()
            && !address.is_multicast()
    }

    /// Begins to ask whether an address is somebody else's; as soon as the interface is up. While it is down no station
    /// can answer, and an address that was ours stays so.
    pub(super) fn probe_address(&self, key: Key, first: First) {
        let (up, transmits, now) = (self.is_up(key.0), self.transmits.get(), self.now());
        if !self.may_clash(key) || (up && transmits == 0) {
            return self.settle(key);
        }
        let barred = match self.addresses.borrow_mut().get_mut(&key) {
            Some(own) if up => {
                own.standing = AddressState::Tentative;
                own.left = transmits;
                own.due = Some(match first {
                    First::Now => now,
                    First::Later => now.after(MOST_DELAY.mul_f64(fastrand::f64())),
                });
                true
            }
            Some(own) => {
                own.due = None;
                own.standing != AddressState::Ours
            }
            None => false,
        };
        if barred {
            self.set_use(key, Use::Barred);
        }
        if barred && up {
            self.observed(key, AddressState::Tentative, 0);
        }
        self.ring();
    }

    /// Tells forwarding whether the address is used.
    fn set_use(&self, key: Key, on: Use) {
        if let Err(e) = self.ip6.set_use(key.0, key.1, on) {
            tracing::warn!(interface = %key.0, address = %key.1, "not {on:?}: {e}");
        }
    }

    pub(super) fn tick_addresses(&self, now: Time) {
        let due: Vec<(Key, u32)> = {
            let all = self.addresses.borrow();
            all.iter().filter(|(_, a)| a.due.is_some_and(|d| d <= now)).map(|(k, a)| (*k, a.left)).collect()
        };
        for (key, left) in due {
            if left == 0 {
                self.settle(key);
                continue;
            }
            if let Some(own) = self.addresses.borrow_mut().get_mut(&key) {
                own.left = left - 1;
                own.due = Some(now.after(self.retransmit.get()));
            }
            self.ask_for_own(key);
            let asked = self.transmits.get().saturating_sub(left - 1);
            self.observed(key, AddressState::Tentative, asked);
        }
    }

    /// RFC 4862 5.4.2: the question comes from the unspecified address.
    fn ask_for_own(&self, (interface, address): Key) {
        let Ok(data) = self.interfaces.data(interface) else { return };
        let way = MessageRoute::to_group(data.mac(), Ipv6Addr::UNSPECIFIED, solicited_node(address));
        let frame = frame::solicitation(&way, address);
        if let Some(bytes) = frame.as_ref().and_then(|(bytes, len)| bytes.get(..*len))
            && self.send(interface, bytes)
        {
            self.counters.count_tx(Kind::NeighbourSolicitation, 0, interface);
        }
    }

    /// No answer came: the address is ours.
    fn settle(&self, key: Key) {
        let was = self.addresses.borrow_mut().get_mut(&key).map(|own| {
            own.due = None;
            std::mem::replace(&mut own.standing, AddressState::Ours)
        });
        self.set_use(key, Use::Allowed);
        self.publish(key.0);
        if is_link_local(key.1) {
            self.follow_link_local(key.0);
        }
        // As VPP: without questions there are no news either.
        if self.transmits.get() > 0 && self.may_clash(key) && was.is_some_and(|was| was != AddressState::Ours)
        {
            self.observed(key, AddressState::Ours, self.transmits.get());
        }
    }

    /// Somebody else has, or wants, an address of this router. RFC 4862 5.4.5: it is not used, and the operator gets a
    /// message. One that was ours already stays ours: a later station has to yield.
    pub(super) fn claimed(&self, key: Key, mac: MacAddress) {
        let now = self.now();
        let (was, left, complain) = {
            let mut all = self.addresses.borrow_mut();
            let Some(own) = all.get_mut(&key) else { return };
            let was = own.standing;
            if was == AddressState::Tentative {
                (own.standing, own.due) = (AddressState::Duplicate, None);
            }
            let complain = own.complained.is_none_or(|at| now.since(at) >= BETWEEN_COMPLAINTS);
            if complain {
                own.complained = Some(now);
            }
            (was, own.left, complain)
        };
        if was == AddressState::Tentative {
            self.publish(key.0);
            self.observed(key, AddressState::Duplicate, self.transmits.get().saturating_sub(left));
        }
        if !complain {
            return;
        }
        let (name, address) = (self.name(key.0), key.1);
        match was {
            AddressState::Tentative => {
                self.say(format!("{name}: address {address} is not used, {mac} has it"));
            }
            AddressState::Duplicate => {}
            AddressState::Ours => self.say(format!("{name}: {mac} uses our address {address}, too")),
        }
    }
}
