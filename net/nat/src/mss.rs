//! How large the segments of a TCP connection may be: the option of its first packets (RFC 9293, 3.7.1).

use crate::delta::Delta;
use crate::tuple::word;

/// The option's kind and length.
const MSS: (u8, u8) = (2, 4);
/// Bytes of a TCP header without options.
const HEADER: usize = 20;

/// Has a TCP header, which begins `bytes`, ask for no larger segments than `most`. Nothing happens if it asks for smaller ones, or
/// if its options make no sense.
pub fn clamp(bytes: &mut [u8], most: u16) -> Option<()> {
    let header = usize::from(bytes.get(12)? >> 4) * 4;
    let mut at = HEADER;
    while at < header {
        match *bytes.get(at)? {
            0 => return None,
            1 => at += 1,
            kind => {
                let length = *bytes.get(at + 1)?;
                if (kind, length) == MSS && at + 4 <= header {
                    return put(bytes, at + 2, most);
                }
                at += usize::from(length).max(2);
            }
        }
    }
    None
}

fn put(bytes: &mut [u8], at: usize, most: u16) -> Option<()> {
    let asked = word(bytes, at)?;
    if asked <= most {
        return None;
    }
    let sum = word(bytes, 16)?;
    // An option may begin at an odd byte, where its halves count the other way round.
    let (old, new) =
        if at.is_multiple_of(2) { (asked, most) } else { (asked.swap_bytes(), most.swap_bytes()) };
    let sum = Delta::NONE.word(old, new).apply(sum);
    *bytes.get_mut(at..)?.first_chunk_mut()? = most.to_be_bytes();
    *bytes.get_mut(16..)?.first_chunk_mut()? = sum.to_be_bytes();
    Some(())
}
