//! Two routers in one process, with memif between them.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use shoal_memif::CreateMemif;
use support::*;

#[test]
fn packets_of_both_families_cross_in_both_directions() {
    let mut pair = Pair::new("both", &CreateMemif::default());
    pair.connect();
    for from in [0, 1] {
        let packets: Vec<_> = (0..300)
            .map(|n| if n % 2 == 0 { pair.ip4(from, n) } else { pair.ip6(from, n) })
            .collect();
        let got = pair.pass(from, packets.clone());
        assert_eq!(got.len(), packets.len());
        for (sent, got) in packets.iter().zip(&got) {
            // But for addresses, hop limit and checksum of the header, byte by byte.
            assert_eq!(sent.len(), got.len());
            assert_eq!(sent[26..], got[26..]);
        }
    }
}
