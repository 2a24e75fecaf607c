//! Any bytes, as any header.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_wire::{FromBytes, Ip4Header, Ip4Options, checksum, describe_frame, describe_ip4};

fuzz_target!(|data: &[u8]| {
    let _ = describe_frame(data).to_string();
    let _ = describe_ip4(data).to_string();
    let _ = shoal_wire::describe_ip6(data).to_string();
    let _ = shoal_wire::describe_arp(data).to_string();
    Ip4Options::of_packet(data).take(64).for_each(drop);
    Ip4Options::new(data).take(64).for_each(drop);
    let mut bytes = data.to_vec();
    if let Ok((ip, _)) = Ip4Header::mut_from_prefix(&mut bytes) {
        let right = ip.checksum_ok();
        if ip.ttl() > 0 {
            ip.decrement_ttl();
            assert_eq!(ip.checksum_ok(), right);
        }
        ip.rewrite_tos(data[0]);
        assert_eq!(ip.checksum_ok(), right);
    }
    let half = data.len() / 2;
    let mut sum = checksum::Sum::new();
    sum.add(&data[..half]);
    sum.add(&data[half..]);
    assert_eq!(sum.finish(), checksum::checksum(data));
});
