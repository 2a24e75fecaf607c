//! What is done to one TCP header.

use shoal_wire::checksum::update_u16;
use shoal_wire::{FromBytes, TcpFlags, TcpHeader};

/// End of the options.
const END: u8 = 0;
/// One byte of padding.
const NOP: u8 = 1;
/// Maximum segment size, and how long the option is. RFC 9293, 3.2.
const MSS: u8 = 2;
const MSS_LEN: usize = 4;

/// Whether the checksum is in order, or left to the device: then it is only that of the pseudo-header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sum {
    /// It is in order and stays so.
    Whole,
    /// It does not cover the header yet.
    LeftToDevice,
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clamped {
    /// Nothing: it opens no connection, asks for no more, or says nothing of it.
    No,
    /// The size was lowered from this one.
    From(u16),
    /// The options lie; the header is as it was.
    Malformed,
}

/// Where the size stands in the options; `Err` when they lie.
fn find(options: &[u8]) -> Result<Option<usize>, ()> {
    let mut at = 0;
    loop {
        match options.get(at..) {
            None | Some([] | [END, ..]) => return Ok(None),
            Some([NOP, ..]) => at += 1,
            Some([kind, len, ..]) => {
                let len = usize::from(*len);
                // Too short for itself, or longer than what is there.
                if len < 2 || at + len > options.len() {
                    return Err(());
                }
                if *kind == MSS {
                    return if len == MSS_LEN { Ok(Some(at + 2)) } else { Err(()) };
                }
                at += len;
            }
            Some([_]) => return Err(()),
        }
    }
}

/// Lowers the maximum segment size that a SYN asks for, and updates the checksum (RFC 1624). `tcp` begins with the
/// header; the options must be whole.
pub fn clamp(tcp: &mut [u8], most: u16, sum: Sum) -> Clamped {
    let Ok((header, _)) = TcpHeader::ref_from_prefix(tcp) else { return Clamped::No };
    if !header.flags().contains(TcpFlags::SYN) {
        return Clamped::No;
    }
    let (len, checksum) = (header.header_len(), header.checksum());
    let Some(options) = tcp.get(TcpHeader::LEN..len) else { return Clamped::Malformed };
    let at = match find(options) {
        Ok(Some(at)) => TcpHeader::LEN + at,
        Ok(None) => return Clamped::No,
        Err(()) => return Clamped::Malformed,
    };
    let Some(field) = tcp.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) else {
        return Clamped::Malformed;
    };
    let size = u16::from_be_bytes(*field);
    if size <= most {
        return Clamped::No;
    }
    *field = most.to_be_bytes();
    if sum == Sum::Whole
        && let Ok((header, _)) = TcpHeader::mut_from_prefix(tcp)
    {
        // A field that begins at an odd byte weighs as if its bytes were exchanged.
        let word = |n: u16| if at % 2 == 0 { n } else { n.swap_bytes() };
        header.set_checksum(update_u16(checksum, word(size), word(most)));
    }
    Clamped::From(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: TcpFlags = TcpFlags::SYN;

    fn segment(flags: TcpFlags, options: &[u8]) -> Vec<u8> {
        let mut bytes = shoal_wire::IntoBytes::as_bytes(&TcpHeader::new(1, 2, flags)).to_vec();
        bytes[12] = ((20 + options.len()) / 4 * 16) as u8;
        bytes.extend(options);
        bytes.extend(b"data");
        let sum = shoal_wire::checksum::checksum(&bytes);
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    #[test]
    fn larger_sizes_are_lowered_and_the_checksum_stays_right() {
        for options in [
            vec![2, 4, 5, 180],
            vec![1, 1, 2, 4, 5, 180, 1, 1],
            vec![1, 2, 4, 5, 180, 0, 0, 0],
            vec![3, 3, 7, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 2, 4, 5, 180, 0, 0, 0],
        ] {
            let mut tcp = segment(SYN, &options);
            assert!(shoal_wire::checksum::verify(&tcp));
            assert_eq!(clamp(&mut tcp, 1000, Sum::Whole), Clamped::From(1460), "{options:?}");
            assert!(shoal_wire::checksum::verify(&tcp), "{options:?}");
            assert_eq!(clamp(&mut tcp, 1000, Sum::Whole), Clamped::No, "it asks for 1000 now");
        }
    }

    #[test]
    fn others_are_left_alone() {
        let option = [2, 4, 5, 180];
        for (flags, options, most) in [
            (SYN, &option[..], 1460),
            (SYN, &option[..], 9000),
            (TcpFlags::ACK, &option[..], 1000),
            (SYN, &[][..], 1000),
            (SYN, &[0, 2, 4, 5][..], 1000),
            (SYN, &[1; 8][..], 1000),
        ] {
            let before = segment(flags, options);
            let mut tcp = before.clone();
            assert_eq!(clamp(&mut tcp, most, Sum::Whole), Clamped::No);
            assert_eq!(tcp, before);
        }
        let mut answer = segment(SYN | TcpFlags::ACK, &option);
        assert_eq!(clamp(&mut answer, 1000, Sum::Whole), Clamped::From(1460), "both sides say");
    }

    #[test]
    fn options_that_lie_are_left_alone() {
        for options in [
            vec![2, 4, 5, 180, 3, 0, 0, 0],
            vec![3, 0, 2, 4],
            vec![3, 1, 2, 4],
            vec![8, 200, 2, 4],
            vec![2, 3, 5, 180],
            vec![2, 5, 5, 180, 0, 0, 0, 0],
            vec![1, 1, 1, 2],
        ] {
            let before = segment(SYN, &options);
            let mut tcp = before.clone();
            let done = clamp(&mut tcp, 2000, Sum::Whole);
            let first = options[..4] == [2, 4, 5, 180];
            assert_eq!(done, if first { Clamped::No } else { Clamped::Malformed }, "{options:?}");
            assert_eq!(tcp, before);
        }
        // The header says that it is longer than the packet, or shorter than a header.
        for words in [0, 1, 4, 15] {
            let mut tcp = segment(SYN, &[2, 4, 5, 180]);
            tcp[12] = words << 4;
            assert_eq!(clamp(&mut tcp, 1000, Sum::Whole), Clamped::Malformed);
        }
    }

    #[test]
    fn headers_cut_at_every_length_are_survived() {
        let whole = segment(SYN, &[1, 2, 4, 5, 180, 1, 1, 1]);
        for n in 0..whole.len() - 4 {
            let mut tcp = whole[..n].to_vec();
            assert_ne!(clamp(&mut tcp, 1000, Sum::Whole), Clamped::From(1460));
            assert_eq!(tcp, whole[..n]);
        }
    }

    #[test]
    fn a_checksum_that_is_left_to_the_device_does_not_change() {
        let mut tcp = segment(SYN, &[2, 4, 5, 180]);
        let before = tcp[16..18].to_vec();
        assert_eq!(clamp(&mut tcp, 1000, Sum::LeftToDevice), Clamped::From(1460));
        assert_eq!(tcp[16..18], before);
        assert_eq!(tcp[22..24], 1000u16.to_be_bytes());
    }
}
