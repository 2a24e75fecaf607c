//! Which address stands for which (RFC 6296, 3).

use shoal_wire::Ip6Prefix;

/// Words are ones' complement numbers: 0xffff and 0 are one number, and 0 is how it is written.
const MODULUS: u32 = 0xffff;

/// The longest prefix: all that is behind it are hosts.
pub const LONGEST: u8 = 64;

/// Two prefixes, prepared for packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefixes {
    internal: u128,
    external: u128,
    /// Bits of both that are replaced.
    mask: u128,
    /// Bits that were asked for inside, and those outside.
    asked: [u128; 2],
    /// What is added to a word of an address on its way out.
    outward: u16,
    /// Whether that word is the fourth: otherwise it is one of the last four.
    in_subnet: bool,
}

/// What becomes of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Translated {
    /// It is none of the prefix.
    Other,
    /// This one stands for it.
    To(u128),
    /// It is one of the prefix, and none stands for it.
    Impossible,
}

fn word(address: u128, nth: u32) -> u16 {
    (address >> (112 - 16 * nth)) as u16
}

/// The sum of all words, from 0 to 0xfffe.
fn sum(address: u128) -> u32 {
    (0..8).map(|nth| u32::from(word(address, nth))).sum::<u32>() % MODULUS
}

fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
}

impl Prefixes {
    /// Prepares two prefixes of up to 64 bits. RFC 6296, 3.7: the shorter one is made as long as the longer one with zeros.
    pub fn new(internal: Ip6Prefix, external: Ip6Prefix) -> Option<Prefixes> {
        let (inside, outside) = (mask(internal.len()), mask(external.len()));
        let len = internal.len().max(external.len());
        if len > LONGEST {
            return None;
        }
        let mask = inside | outside;
        let network = |prefix: Ip6Prefix, mask: u128| prefix.addr().to_bits() & mask;
        let (internal, external) = (network(internal, inside), network(external, outside));
        let outward = (sum(internal) + MODULUS - sum(external)) % MODULUS;
        Some(Prefixes {
            internal,
            external,
            mask,
            asked: [inside, outside],
            outward: outward as u16,
            // RFC 6296, 3.4 and 3.5: the subnet's word if all of it is behind the prefix, otherwise one of the host's.
            in_subnet: len <= 48,
        })
    }

    /// The address outside of one inside.
    #[inline]
    pub fn out(&self, address: u128) -> Translated {
        let [asked, _] = self.asked;
        self.translate(address, (self.internal, self.external), asked, u32::from(self.outward))
    }

    /// The address inside of one outside.
    #[inline]
    pub fn back(&self, address: u128) -> Translated {
        let [_, asked] = self.asked;
        self.translate(address, (self.external, self.internal), asked, MODULUS - u32::from(self.outward))
    }

    fn translate(&self, address: u128, (from, to): (u128, u128), asked: u128, add: u32) -> Translated {
        if address & asked != from {
            return Translated::Other;
        }
        // Beyond the zeros of the shorter prefix: two hosts would have one address.
        if address & self.mask != from {
            return Translated::Impossible;
        }
        let candidates = if self.in_subnet { 3..4 } else { 4..8 };
        // RFC 6296, 3.4: a word of 0xffff cannot be told from 0 on the way back.
        let mut candidates = candidates.filter(|nth| word(address, *nth) != 0xffff);
        let Some(nth) = candidates.next() else { return Translated::Impossible };
        let shift = 112 - 16 * nth;
        let new = (u32::from(word(address, nth)) + add) % MODULUS;
        let address = (address & !self.mask | to) & !(0xffff << shift) | u128::from(new) << shift;
        Translated::To(address)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn ip(text: &str) -> u128 {
        text.parse::<Ipv6Addr>().unwrap().to_bits()
    }

    fn prefixes(internal: &str, external: &str) -> Prefixes {
        Prefixes::new(internal.parse().unwrap(), external.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_examples_of_rfc_6296_come_out() {
        // RFC 6296 2.1 and 3.4
        let both = prefixes("fd01:203:405::/48", "2001:db8:1::/48");
        let (inside, outside) = (ip("fd01:203:405:1::1234"), ip("2001:db8:1:d550::1234"));
        assert_eq!(both.out(inside), Translated::To(outside));
        assert_eq!(both.back(outside), Translated::To(inside));
    }

    #[test]
    fn a_result_of_ffff_is_written_as_zero() {
        let both = prefixes("fd01:203:405::/48", "2001:db8:1::/48");
        // 0xd550 - 1 is added to a subnet: this one makes 0xffff.
        let subnet = 0xffff - 0xd54f;
        let inside = ip("fd01:203:405::1234") | subnet << 64;
        let outside = ip("2001:db8:1::1234");
        assert_eq!(both.out(inside), Translated::To(outside));
        assert_eq!(both.back(outside), Translated::To(inside));
    }

    #[test]
    fn a_subnet_of_ffff_and_a_host_of_all_ones_have_no_address() {
        let both = prefixes("fd01:203:405::/48", "2001:db8:1::/48");
        assert_eq!(both.out(ip("fd01:203:405:ffff::1")), Translated::Impossible);
        assert_eq!(both.back(ip("2001:db8:1:ffff::1")), Translated::Impossible);
        let both = prefixes("fd01:203:405:6::/64", "2001:db8:1:2::/64");
        assert_eq!(both.out(ip("fd01:203:405:6:ffff:ffff:ffff:ffff")), Translated::Impossible);
        // Another word of the host's is taken.
        let Translated::To(out) = both.out(ip("fd01:203:405:6:ffff:ffff::1")) else { panic!() };
        assert_eq!(out >> 32 & 0xffff_ffff, 0xffff_ffff);
        assert_eq!(both.back(out), Translated::To(ip("fd01:203:405:6:ffff:ffff::1")));
        assert_eq!(both.out(ip("fd01:203:405:7::1")), Translated::Other);
    }

    #[test]
    fn hosts_beyond_the_shorter_prefixs_zeros_have_no_address() {
        let both = prefixes("fc00:1234::/56", "2001:db8:1::/63");
        assert!(matches!(both.out(ip("fc00:1234:0:1::1")), Translated::To(_)));
        assert_eq!(both.out(ip("fc00:1234:0:2::1")), Translated::Impossible);
        assert_eq!(both.out(ip("fc00:1234:0:100::1")), Translated::Other);
        assert_eq!(both.back(ip("2001:db8:1:2::1")), Translated::Other);
    }

    #[test]
    fn longer_prefixes_than_64_cannot_be() {
        let new = |a: &str, b: &str| Prefixes::new(a.parse().unwrap(), b.parse().unwrap());
        assert_eq!(new("fd00::/65", "2001:db8::/48"), None);
        assert_eq!(new("fd00::/48", "2001:db8::/128"), None);
        assert!(new("::/0", "2001:db8::/0").is_some());
    }

    /// Numbers that are the same in each run.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state ^ (*state >> 29)
    }

    fn wide(state: &mut u64) -> u128 {
        u128::from(random(state)) << 64 | u128::from(random(state))
    }

    #[test]
    fn out_and_back_are_inverse_and_the_sum_of_all_words_stays() {
        let (mut state, mut translated) = (6296, 0);
        for _ in 0..20_000 {
            let len = |state: &mut u64| (random(state) % 65) as u8;
            let (a, b) = (len(&mut state), len(&mut state));
            let prefix =
                |state: &mut u64, len| Ip6Prefix::new(Ipv6Addr::from_bits(wide(state)), len).unwrap();
            let (internal, external) = (prefix(&mut state, a), prefix(&mut state, b));
            let both = Prefixes::new(internal, external).unwrap();
            let mut host = both.internal | wide(&mut state) & !both.mask;
            // Words of all ones and all zeros are frequent.
            for nth in 3..8 {
                let shift = 112 - 16 * nth;
                match random(&mut state) % 4 {
                    0 => host |= (0xffff << shift) & !both.mask,
                    1 => host &= !(0xffff << shift) | both.mask,
                    _ => {}
                }
            }
            match both.out(host) {
                Translated::To(out) => {
                    translated += 1;
                    assert_eq!(sum(out), sum(host), "{both:?} {host:x}");
                    assert_eq!(out & both.mask, both.external & both.mask);
                    assert_eq!(both.back(out), Translated::To(host), "{both:?} {host:x}");
                }
                Translated::Impossible => {
                    let nth = if both.in_subnet { 3..4 } else { 4..8 };
                    assert!(nth.into_iter().all(|nth| word(host, nth) == 0xffff));
                }
                Translated::Other => panic!("{both:?} {host:x}"),
            }
        }
        assert!(translated > 10_000, "{translated}");
    }
}
