//! Buckets: the few prefixes below one slot of an IPv6 trie, in one cache line.
//!
//! Most networks of 32 bits hold a few longer prefixes. Plies of 4 bits would cost each of them four lines that lookups
//! read one after the other; a bucket is read at once. It lies below a slot of a /32 or longer and holds up to
//! [`MOST`] prefixes of up to 64 bits; more, or longer ones, make it a ply with buckets below.
//!
//! ```text
//! word 0      what the slot is for all other addresses, as an entry
//! words 1, 2  of each prefix, a byte: how many bits of the address it leaves open, below bit 64
//! word 3      not used
//! words 4-9   of each prefix: its bits behind bit 32, with a 1 before them and without the open ones
//! words 10-15 of each prefix: its entry
//! ```
//!
//! They are in order of length, so that the last that fits is the longest. Once readers may see a bucket, only single
//! words of it change: the entries, and what makes a prefix fit no address any more, or the one behind all others fit
//! some. A place that was never used has one open bit and the bits 0, which no address has then: the 1 would be left. A
//! place whose prefix was removed is not used again: a reader may have found that it fits and not yet read its entry.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Entry;

/// Most prefixes of a bucket.
pub(super) const MOST: usize = 6;
/// The longest prefix in a bucket.
pub(super) const LONGEST: u8 = 64;
/// Words of a bucket: a line.
pub(super) const WORDS: usize = super::LINE;

const OPEN: usize = 1;
const BITS: usize = 4;
const ENTRIES: usize = 10;
/// Stands before the bits of an address.
const MARK: u64 = 1 << 32;

/// One prefix of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Item {
    /// The upper half of its network.
    pub(super) upper: u64,
    /// Its length.
    pub(super) len: u8,
    /// What it says.
    pub(super) entry: Entry,
}

#[inline(always)]
fn marked(upper: u64) -> u64 {
    upper & (MARK - 1) | MARK
}

/// What a bucket says of an address with this upper half.
#[inline(always)]
pub(super) fn find(words: &[AtomicU32; WORDS], upper: u64) -> Entry {
    let load = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
    let address = marked(upper);
    // Written before the entry that led here, which was read with `Acquire`.
    let mut entry = load(0);
    let open = u64::from(load(OPEN)) | u64::from(load(OPEN + 1)) << 32;
    for place in 0..MOST {
        let left = (address >> (open >> (8 * place) & 63)) as u32;
        // Written after the prefix's entry.
        let bits = words.get(BITS + place).map_or(0, |word| word.load(Ordering::Acquire));
        let found = load(ENTRIES + place);
        entry = if left == bits { found } else { entry };
    }
    Entry(entry)
}

/// The words of a bucket with these prefixes, which are in order of length.
pub(super) fn words(rest: Entry, items: &[Item]) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    let mut open = 0x0101_0101_0101u64;
    if let Some(word) = words.get_mut(0) {
        *word = rest.0;
    }
    for (place, item) in items.iter().enumerate().take(MOST) {
        let bits = u64::from(LONGEST - item.len);
        open = open & !(0xff << (8 * place)) | bits << (8 * place);
        set(&mut words, BITS + place, (marked(item.upper) >> bits) as u32);
        set(&mut words, ENTRIES + place, item.entry.0);
    }
    set(&mut words, OPEN, open as u32);
    set(&mut words, OPEN + 1, (open >> 32) as u32);
    words
}

fn set(words: &mut [u32; WORDS], at: usize, value: u32) {
    if let Some(word) = words.get_mut(at) {
        *word = value;
    }
}

/// The place of a prefix among the first `count`, and the prefix there.
pub(super) fn place_of(words: &[u32; WORDS], upper: u64, len: u8) -> Option<usize> {
    items(words, upper).position(|item| item.is_some_and(|item| item.len == len && item.upper == upper))
}

/// The prefixes of a bucket by place, whose first 32 bits are those of `upper`; `None` is a place that is not used.
pub(super) fn items(words: &[u32; WORDS], upper: u64) -> impl Iterator<Item = Option<Item>> {
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    let open = u64::from(word(OPEN)) | u64::from(word(OPEN + 1)) << 32;
    (0..MOST).map(move |place| {
        let (open, bits) = (open >> (8 * place) & 0xff, u64::from(word(BITS + place)));
        // An address has its mark where the open bits begin to be missing.
        let used = open < 32 && (open == 0 || bits >> (32 - open) == 1);
        used.then(|| Item {
            upper: upper >> 32 << 32 | (bits << open) & (MARK - 1),
            len: LONGEST - open as u8,
            entry: Entry(word(ENTRIES + place)),
        })
    })
}

/// The words to change, in order, and to what, so that one more prefix is behind all others; `None` if there is no place
/// or one of the others is longer. With all words but the last written, the prefix fits no address.
pub(super) fn addition(words: &[u32; WORDS], item: Item) -> Option<[(usize, u32); 3]> {
    let open = LONGEST - item.len;
    let used: Vec<Option<Item>> = items(words, item.upper).collect();
    let place = used.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let longest = used.iter().flatten().map(|other| other.len).max().unwrap_or(0);
    let at = OPEN + place / 4;
    let shift = 8 * (place % 4) as u32;
    let word = words.get(at).copied().unwrap_or(0);
    let never_used = word >> shift & 0xff == 1 && words.get(BITS + place) == Some(&0);
    // With nothing open the bits 0 are those of an address.
    if place == MOST || longest > item.len || open == 0 || !never_used {
        return None;
    }
    let word = word & !(0xff << shift) | u32::from(open) << shift;
    let bits = (marked(item.upper) >> open) as u32;
    Some([(ENTRIES + place, item.entry.0), (at, word), (BITS + place, bits)])
}

/// The word to change, and to what, so that the prefix at a place fits no address any more.
pub(super) fn removal(words: &[u32; WORDS], place: usize) -> (usize, u32) {
    let at = OPEN + place / 4;
    let (word, shift) = (words.get(at).copied().unwrap_or(0), 8 * (place % 4) as u32);
    match word >> shift & 0xff {
        // Any bits are those of some /64: so much is taken off the addresses that only the mark is left, or nothing.
        0 => {}
        // Without the mark, or with something above it.
        1 => return (BITS + place, 1),
        _ => return (BITS + place, 1 << 31),
    }
    let taken = if words.get(BITS + place) == Some(&1) { 33 } else { 32 };
    (at, word | taken << shift)
}

/// The word of the entry of the prefix at a place.
pub(super) const fn entry_of(place: usize) -> usize {
    ENTRIES + place
}

#[cfg(test)]
mod tests {
    use super::*;

    const NET: u64 = 0x2001_0db8 << 32;

    fn item(low: u32, len: u8, value: u32) -> Item {
        Item { upper: NET | u64::from(low), len, entry: Entry::leaf(value) }
    }

    fn shared(words: [u32; WORDS]) -> [AtomicU32; WORDS] {
        words.map(AtomicU32::new)
    }

    fn store(words: &mut [u32; WORDS], (at, value): (usize, u32)) {
        set(words, at, value);
    }

    #[test]
    fn a_removed_prefix_fits_nothing_and_its_place_is_not_used_again() {
        for (low, len) in
            [(0, 64), (1, 64), (7, 64), (0, 63), (2, 63), (0, 48), (0xffff_0000, 48), (1 << 31, 33)]
        {
            let mut words = words(Entry::leaf(9), &[item(low, len, 1)]);
            let place = place_of(&words, NET | u64::from(low), len).unwrap();
            let change = removal(&words, place);
            store(&mut words, change);
            assert_eq!(items(&words, NET).flatten().count(), 0, "{low:x}/{len}");
            for probe in [low, 0, 1, 2, 7, 0xffff_0000, 1 << 31, u32::MAX] {
                assert_eq!(find(&shared(words), NET | u64::from(probe)), Entry::leaf(9), "{low:x}/{len}");
            }
            assert_eq!(addition(&words, item(0, 48, 2)), None, "{low:x}/{len}");
        }
    }

    #[test]
    fn a_prefix_behind_the_others_appears_with_the_last_word() {
        let all = [item(0, 33, 1), item(0x1_0000, 48, 2), item(0x2_0000, 48, 3), item(4, 63, 4)];
        let mut words = words(Entry::leaf(9), &all[..1]);
        for added in &all[1..] {
            let before = find(&shared(words), added.upper);
            let stores = addition(&words, *added).unwrap();
            for (n, change) in stores.into_iter().enumerate() {
                store(&mut words, change);
                let wanted = if n == 2 { added.entry } else { before };
                assert_eq!(find(&shared(words), added.upper), wanted);
            }
        }
        assert_eq!(items(&words, NET).flatten().collect::<Vec<_>>(), all);
        assert_eq!(addition(&words, item(0, 40, 5)), None, "one of them is longer");
        assert_eq!(addition(&words, item(9, 64, 5)), None, "its bits may be 0");
    }
}
