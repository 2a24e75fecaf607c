//! Addresses that prefixes cover.

use shoal_wire::IpPrefix;

use crate::translation::bits;

/// Ranges of addresses of both families, each sorted and apart from the others: a look-up halves them until one is left.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Prefixes {
    ranges: [Vec<(u128, u128)>; 2],
}

impl Prefixes {
    /// What these cover.
    pub fn new<'a>(all: impl Iterator<Item = &'a IpPrefix>) -> Self {
        let mut ranges: [Vec<(u128, u128)>; 2] = Default::default();
        for prefix in all {
            let first = bits(prefix.normalized().addr());
            let rest = prefix.max_len() - prefix.len();
            let count = u128::MAX.checked_shl(rest.into()).map_or(u128::MAX, |mask| !mask);
            if let Some(ranges) = ranges.get_mut(usize::from(prefix.ip6().is_some())) {
                ranges.push((first, first | count));
            }
        }
        for ranges in &mut ranges {
            ranges.sort_unstable();
            // A range that begins within the one before is part of it: prefixes do not overlap otherwise.
            ranges.dedup_by(|next, before| next.0 <= before.1);
        }
        Prefixes { ranges }
    }

    /// Whether one covers an address.
    pub fn has(&self, is_ip6: bool, address: u128) -> bool {
        let [ip4, ip6] = &self.ranges;
        let ranges = if is_ip6 { ip6 } else { ip4 };
        let at = ranges.partition_point(|(first, _)| *first <= address);
        at.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, last)| address <= *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_covered_by_any_prefix_of_its_family() {
        let all = ["10.0.0.0/8", "10.1.0.0/16", "192.0.2.7/32", "2001:db8::/32", "172.16.0.0/12"]
            .map(|text| text.parse::<IpPrefix>().unwrap());
        let prefixes = Prefixes::new(all.iter());
        let has = |text: &str| {
            let address: std::net::IpAddr = text.parse().unwrap();
            prefixes.has(address.is_ipv6(), bits(address))
        };
        for text in ["10.0.0.0", "10.1.2.3", "10.255.255.255", "192.0.2.7", "172.31.0.1", "2001:db8:ffff::1"]
        {
            assert!(has(text), "{text}");
        }
        for text in ["9.255.255.255", "11.0.0.0", "192.0.2.6", "172.32.0.0", "2001:db9::", "::a00:1"] {
            assert!(!has(text), "{text}");
        }
        let everything = Prefixes::new(["0.0.0.0/0", "::/0"].map(|t| t.parse().unwrap()).iter());
        assert!(everything.has(false, 0) && everything.has(true, u128::MAX));
        assert!(!Prefixes::default().has(false, 0));
    }
}
