//! A router with NAT44, endpoint dependent.

use std::ops::{Deref, DerefMut};

use shoal_nat44_ed::mapping::{External, TwiceNat};
use shoal_nat44_ed::sessions::Record;
use shoal_nat44_ed::{Enable, Nat44, Purpose, Side, Spec};
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

/// NAT is on, without addresses.
pub fn bed() -> Bed {
    bed_of(Enable { sessions: 1000, ..Enable::default() })
}

pub fn bed_of(enable: Enable) -> Bed {
    let bed = plain();
    let nat = bed.nat();
    nat.enable_nat(enable).unwrap();
    nat.set_side(bed.inside.index(), Side::Inside, true).unwrap();
    nat.set_side(bed.outside.index(), Side::Outside, true).unwrap();
    bed
}

/// Without NAT.
pub fn plain() -> Bed {
    Bed(NatBed::new(&[
        &shoal_reassembly::MODULE,
        &shoal_syslog::MODULE,
        &shoal_ipfix::MODULE,
        &shoal_nat44_ed::MODULE,
    ]))
}

impl Bed {
    pub fn nat(&self) -> std::rc::Rc<Nat44> {
        self.router.get::<Nat44>()
    }

    pub fn share(&self, address: &str) {
        let address = address.parse().unwrap();
        self.nat().add_addresses((address, address), Purpose::Pool, None).unwrap();
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
        twice: TwiceNat::No,
        out2in_only: false,
        identity: false,
        pool_address: None,
        tag: String::new(),
    }
}
