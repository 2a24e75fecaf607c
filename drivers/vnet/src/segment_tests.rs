//! Software segmentation against the kernel's: `testdata/*.hex` are captures, see `testdata/capture.py`.

use zerocopy::{FromBytes, IntoBytes};

use crate::*;

fn hex(line: &str) -> Vec<u8> {
    (0..line.len()).step_by(2).map(|i| u8::from_str_radix(&line[i..i + 2], 16).unwrap()).collect()
}

/// The header, the superframe, and the kernel's segments.
fn load(text: &str) -> (VnetHdr, Vec<u8>, Vec<Vec<u8>>) {
    let mut lines = text.lines().map(hex);
    let first = lines.next().unwrap();
    let (hdr, frame) = VnetHdr::read_from_prefix(&first).unwrap();
    (hdr, frame.to_vec(), lines.collect())
}

const CAPTURES: [(&str, &str); 4] = [
    ("tcp4", include_str!("../testdata/tcp4.hex")),
    ("tcp6", include_str!("../testdata/tcp6.hex")),
    ("udp4", include_str!("../testdata/udp4.hex")),
    ("udp6", include_str!("../testdata/udp6.hex")),
];

fn cut(hdr: VnetHdr, segs: &[&[u8]]) -> Result<Vec<Vec<u8>>, VnetError> {
    let offload = hdr.validate(segs)?;
    let net = ethernet_payload(segs[0]).unwrap();
    let mut cutter = Segments::new(segs, &offload, net)?.expect("a superframe");
    let (count, max) = (cutter.count(), cutter.max_len());
    let mut out = Vec::new();
    let mut buf = vec![0xaa; max];
    while let Some(len) = cutter.next_into(&mut buf) {
        out.push(buf[..len?].to_vec());
    }
    assert_eq!(out.len(), count);
    Ok(out)
}

#[test]
fn segments_are_the_kernels_byte_for_byte() {
    for (name, text) in CAPTURES {
        let (hdr, frame, expected) = load(text);
        assert!(expected.len() >= 3, "{name}");
        // Chains of 2 KB and cruel ones alike.
        for piece in [2048, 256, 67] {
            let segs: Vec<&[u8]> = frame.chunks(piece).collect();
            assert_eq!(cut(hdr, &segs).unwrap(), expected, "{name} in pieces of {piece}");
        }
    }
}

/// What the checksum of a finished segment must be is what the kernel wrote: remove it, put the
/// pseudo-header's sum in its place, and let `finish_checksum` restore it.
#[test]
fn finish_checksum_restores_the_kernels_checksum() {
    for (name, text) in CAPTURES {
        let (hdr, _, segments) = load(text);
        let (start, offset) = (hdr.csum_start.get(), hdr.csum_offset.get());
        let field = usize::from(start + offset);
        for segment in segments {
            let mut owed = segment.clone();
            let ip = &segment[14..];
            let mut pseudo = Sum::default();
            if ip[0] >> 4 == 4 {
                pseudo.add(&ip[12..20]);
                pseudo.add_u16(u16::from(ip[9]));
            } else {
                pseudo.add(&ip[8..40]);
                pseudo.add_u16(u16::from(ip[6]));
            }
            pseudo.add_u16((segment.len() - usize::from(start)) as u16);
            owed[field..field + 2].copy_from_slice(&(!pseudo.finish()).to_be_bytes());
            assert_ne!(owed, segment, "{name}");
            let (a, b) = owed.split_at_mut(field + 1);
            finish_checksum(&mut [a, b], start, offset).unwrap();
            assert_eq!(owed, segment, "{name}");
        }
    }
}

#[test]
fn a_vlan_tag_in_front_is_carried_along() {
    let (hdr, frame, expected) = load(CAPTURES[0].1);
    let tag = |f: &[u8]| [&f[..12], &[0x81, 0, 0, 7], &f[12..]].concat();
    let tagged = tag(&frame);
    let out = cut(hdr.shifted(4), &[&tagged]).unwrap();
    assert_eq!(out, expected.iter().map(|f| tag(f)).collect::<Vec<_>>());
}

#[test]
fn fin_and_psh_stay_for_the_last_and_cwr_for_the_first() {
    let (hdr, mut frame, _) = load(CAPTURES[0].1);
    frame[34 + 13] |= 0x81;
    let flags: Vec<u8> = cut(hdr, &[&frame]).unwrap().iter().map(|s| s[34 + 13] & 0x89).collect();
    assert_eq!(flags, [0x80, 0, 0x09]);
}

#[test]
fn a_family_that_is_not_the_headers_is_refused() {
    let (mut hdr, frame, _) = load(CAPTURES[0].1);
    hdr.gso_type = 4;
    assert_eq!(cut(hdr, &[&frame]), Err(VnetError::BadHeaders { kind: GsoKind::Tcp6 }));
}

#[test]
fn a_transport_header_inside_the_ip_header_is_refused() {
    let (mut hdr, mut frame, _) = load(CAPTURES[0].1);
    hdr.csum_start = 20.into();
    frame[32] = 0x50;
    assert_eq!(cut(hdr, &[&frame]), Err(VnetError::BadHeaders { kind: GsoKind::Tcp4 }));
}

#[test]
fn a_buffer_that_is_too_small_is_named() {
    let (hdr, frame, _) = load(CAPTURES[0].1);
    let segs: [&[u8]; 1] = [&frame];
    let offload = hdr.validate(&segs).unwrap();
    let mut cutter = Segments::new(&segs, &offload, 14).unwrap().unwrap();
    let need = cutter.max_len();
    assert_eq!(
        cutter.next_into(&mut vec![0; need - 1]),
        Some(Err(VnetError::BufferTooSmall { need, have: need - 1 }))
    );
}

#[test]
fn a_frame_without_gso_is_left_alone() {
    let frame = [0u8; 60];
    let segs: [&[u8]; 1] = [&frame];
    assert!(Segments::new(&segs, &Offload::default(), 14).unwrap().is_none());
}

proptest::proptest! {
    /// Any ten bytes in front of any bent superframe: an error or segments, never a panic.
    #[test]
    fn hostile_headers_never_panic(raw: [u8; 10], which in 0usize..4, bend in proptest::collection::vec((0usize..90, 0u8..=255), 0..4), keep: bool) {
        let (mut hdr, mut frame, _) = load(CAPTURES[which].1);
        if !keep {
            hdr = VnetHdr::read_from_bytes(raw.as_bytes()).unwrap();
            hdr.gso_type &= 0x85;
        }
        for (at, value) in bend {
            frame[at] = value;
        }
        let segs: [&[u8]; 2] = { let (a, b) = frame.split_at(40); [a, b] };
        if let Ok(offload) = hdr.validate(&segs) && let Ok(Some(mut cutter)) = Segments::new(&segs, &offload, 14) {
            let mut buf = vec![0; cutter.max_len()];
            let mut left = cutter.count();
            while let Some(Ok(_)) = cutter.next_into(&mut buf) {
                left -= 1;
            }
            proptest::prop_assert!(left <= cutter.count());
        }
    }
}
