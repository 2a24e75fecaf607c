//! A router with NAT44, endpoint independent.

use std::ops::{Deref, DerefMut};

use shoal_nat44::mapping::External;
use shoal_nat44_ei::config::Mode;
use shoal_nat44_ei::sessions::Record;
use shoal_nat44_ei::{Enable, Nat44Ei, Side, Spec};
use shoal_testkit::nat_bed::NatBed;
pub use shoal_testkit::nat_bed::{FAR, HOST, icmp_error, ip, packet, read, tuple};

/// The first shared address.
pub const SHARED: &str = "192.0.2.100";

pub struct Bed(NatBed);

impl Deref for Bed {
    type Target = NatBed;

    fn deref(&self) -> &NatBed {
        &self.0
    }
}

impl DerefMut for Bed {
    fn deref_mut(&mut self) -> &mut NatBed {
        &mut self.0
    }
}

/// NAT is on, with an address.
pub fn bed() -> Bed {
    bed_of(Enable::default())
}

pub fn bed_of(enable: Enable) -> Bed {
    let bed = plain();
    let nat = bed.nat();
    nat.enable(enable).unwrap();
    nat.set_side(bed.inside.index(), Side::Inside, true).unwrap();
    nat.set_side(bed.outside.index(), Side::Outside, true).unwrap();
    if enable.mode == Mode::Dynamic {
        bed.share(SHARED);
    }
    bed
}

/// Without NAT.
pub fn plain() -> Bed {
    Bed(NatBed::new(&[
        &shoal_reassembly::MODULE,
        &shoal_syslog::MODULE,
        &shoal_ipfix::MODULE,
        &shoal_nat44_ei::MODULE,
    ]))
}

impl Bed {
    pub fn nat(&self) -> std::rc::Rc<Nat44Ei> {
        self.router.get::<Nat44Ei>()
    }

    pub fn share(&self, address: &str) {
        let address = address.parse().unwrap();
        self.nat().add_addresses((address, address), None).unwrap();
    }

    pub fn sessions(&self) -> Vec<Record> {
        self.nat().sessions(|_| true).unwrap().into_iter().map(|(_, record)| record).collect()
    }
}

pub fn spec(local: (&str, u16), external: (&str, u16), protocol: u8) -> Spec {
    Spec {
        local: local.0.parse().unwrap(),
        local_port: local.1,
        external: External::Address(ip(external.0)),
        external_port: external.1,
        protocol,
        vrf: None,
        identity: false,
        tag: String::new(),
    }
}
