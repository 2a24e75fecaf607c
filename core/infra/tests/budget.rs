//! The budget of the process, in a process of its own.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use shoal_infra::budget::{self, Limit};
use shoal_infra::mtrie::UpdateError;
use shoal_infra::{Mtrie4, Mtrie6};

#[test]
fn a_trie_that_may_not_grow_refuses_and_stays_as_it_is() {
    let (trie, mut writer) = Mtrie4::new(1 << 16).unwrap();
    budget::set_limit(Some(1 << 20));
    let begun = budget::taken();
    let mut count = 0u32;
    let why = loop {
        match writer.insert(count << 16 | 1, 32, count + 1) {
            Ok(()) => count += 1,
            Err(why) => break why,
        }
    };
    let UpdateError::NoMemory(why) = why else { panic!("{why}") };
    assert_eq!((why.limit, why.most), (Limit::Configured, 1 << 20));
    assert!(why.to_string().ends_with("`memory main-heap-size' is 1 MiB"), "{why}");
    assert!(budget::taken() - begun <= 1 << 20);
    // Two plies of 1,344 bytes for each.
    assert!((300..400).contains(&count), "{count}");
    assert_eq!((trie.lookup(count << 16 | 1), trie.lookup((count - 1) << 16 | 1)), (0, count));
    // What needs no new ply is still possible, and plies that become free serve again.
    writer.insert(2, 32, 9).unwrap();
    for n in 0..count {
        writer.remove(n << 16 | 1, 32, None).unwrap();
    }
    writer.remove(2, 32, None).unwrap();
    shoal_infra::qsbr::reclaim();
    for n in 0..count {
        writer.insert(n << 16 | 1, 32, n + 1).unwrap();
    }
    assert_eq!(trie.lookup((count - 1) << 16 | 1), count);
    drop(writer);
    assert_eq!(budget::taken(), begun, "a trie that goes gives all back");

    let (trie, mut writer) = Mtrie6::new(1 << 16).unwrap();
    let refused = (0..1u128 << 16).find(|n| writer.insert(n << 96 | 1, 128, 7).is_err()).unwrap();
    assert_eq!((trie.lookup(refused << 96 | 1), trie.lookup((refused - 1) << 96 | 1)), (0, 7));
    budget::set_limit(None);
    writer.insert(refused << 96 | 1, 128, 7).unwrap();
    assert!(budget::left().bytes > 0);
}
