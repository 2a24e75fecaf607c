//! The router's MAC address on a new interface.

use std::hash::{BuildHasher as _, Hasher as _};

use shoal_wire::MacAddress;

/// The address that was asked for; a random one if none was, or, as clients of VPP's say it, one of zeroes. It is drawn as VPP
/// draws it: locally administered, `02:fe` and four random bytes.
#[must_use]
pub fn mac_or_random(asked: Option<MacAddress>) -> MacAddress {
    asked.filter(|mac| !mac.is_zero()).unwrap_or_else(|| {
        let random = std::hash::RandomState::new().build_hasher().finish();
        MacAddress::from_u64(0x02fe << 32 | random & 0xffff_ffff)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_and_zeroes_are_drawn_and_others_kept() {
        let drawn = [mac_or_random(None), mac_or_random(Some(MacAddress::ZERO))];
        assert!(drawn.iter().all(|mac| mac.0[..2] == [2, 0xfe]) && drawn[0] != drawn[1], "{drawn:?}");
        let asked = MacAddress([2, 0, 0, 0, 0, 9]);
        assert_eq!(mac_or_random(Some(asked)), asked);
    }
}
