//! Frames to many addresses in turn, for as long as it takes: which of them does a device reach, and from when on?
//!
//! A trial has a length and a rate that it keeps to the nanosecond. Here neither is known before: the device learns routes
//! meanwhile, on the same processors. So the thread sleeps between bursts, and each frame's own time counts. A frame has a number,
//! the number says to which address it went, and a bit says whether it arrived.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use shoal_lab_plan::Observation;

use crate::port::{PortError, Transport};

/// Most frames sent at once: after a stall the rest are made up for little by little.
const BURST: usize = 64;
/// How long the thread sleeps if nothing is due.
const NAP: Duration = Duration::from_micros(500);
/// How often the caller is asked.
const ASKED: Duration = Duration::from_millis(20);
/// Frames taken from a port at a time.
const TAKEN: usize = 4096;

const ETHERNET: usize = 14;
const IP4: usize = 20;
const IP6: usize = 40;
const UDP: usize = 8;
/// Mark, number, and what makes an IPv4 frame one of 64 bytes with FCS.
const PAYLOAD: usize = 18;
const MARK: [u8; 4] = *b"\xc0NVG";
/// Discard (RFC 863).
const PORT: u16 = 9;
const HOPS: u8 = 64;

/// What is sent.
#[derive(Clone, Debug)]
pub struct Probes {
    /// Where frames go, in turn.
    pub targets: Vec<IpAddr>,
    /// The tester's MAC and the device's.
    pub macs: [[u8; 6]; 2],
    /// The source of IPv4 frames.
    pub source4: Ipv4Addr,
    /// The source of IPv6 frames.
    pub source6: Ipv6Addr,
    /// Frames a second.
    pub rate: f64,
}

/// What the caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More of the same.
    GoOn,
    /// It has seen enough.
    End,
}

/// Sends at `out` and looks at all of `into`, and asks the caller every 20 ms. Times are seconds since `clock`.
///
/// # Errors
///
/// A port is of no use any more.
pub fn probe<T: Transport>(
    probes: &Probes,
    out: &mut T,
    into: &mut [T],
    clock: Instant,
    ask: &mut dyn FnMut(&Observation, f64) -> Next,
) -> Result<Observation, PortError> {
    let mut seen = Observation::of(probes.targets.len());
    let (began, mut asked) = (clock.elapsed(), Duration::ZERO);
    if probes.targets.is_empty() || probes.rate <= 0.0 {
        return Ok(seen);
    }
    loop {
        let now = clock.elapsed();
        let due = (now.saturating_sub(began).as_secs_f64() * probes.rate) as usize;
        let mut left = due.saturating_sub(seen.sent.len()).min(BURST);
        let busy = left > 0;
        while left > 0 {
            let number = seen.sent.len();
            let Some(target) = probes.targets.get(number % probes.targets.len()) else { break };
            let length = length(target);
            let taken = out.send(length, 1, &mut |frame| write(frame, probes, target, number as u64))?;
            if taken == 0 {
                break;
            }
            seen.sent.push(now.as_secs_f64());
            seen.arrived.push(false);
            left -= 1;
        }
        out.flush()?;
        for port in into.iter_mut() {
            port.receive(TAKEN, &mut |frame| {
                if let Some(arrived) = number(frame.bytes).and_then(|n| seen.arrived.get_mut(n)) {
                    *arrived = true;
                }
            })?;
        }
        if now.saturating_sub(asked) >= ASKED {
            asked = now;
            // What comes back to the sender, as an ICMP error does, is thrown away.
            out.receive(TAKEN, &mut |_| {})?;
            if ask(&seen, now.as_secs_f64()) == Next::End {
                return Ok(seen);
            }
        }
        if !busy {
            std::thread::sleep(NAP);
        }
    }
}

fn length(target: &IpAddr) -> usize {
    ETHERNET + if target.is_ipv4() { IP4 } else { IP6 } + UDP + PAYLOAD
}

/// A whole frame; the kernel has given it the right length.
fn write(frame: &mut [u8], probes: &Probes, target: &IpAddr, number: u64) {
    let mut at = Writer { frame, at: 0 };
    let [tester, device] = probes.macs;
    at.put(&device);
    at.put(&tester);
    let datagram = (UDP + PAYLOAD) as u16;
    let mut payload = [0; PAYLOAD];
    for (to, from) in payload.iter_mut().zip(MARK.iter().chain(number.to_be_bytes().iter())) {
        *to = *from;
    }
    let mut udp = Vec::with_capacity(UDP);
    for word in [PORT, PORT, datagram, 0] {
        udp.extend(word.to_be_bytes());
    }
    match target {
        IpAddr::V4(target) => {
            at.put(&0x0800_u16.to_be_bytes());
            let mut header = vec![0x45, 0];
            header.extend((IP4 as u16 + datagram).to_be_bytes());
            header.extend([0, 0, 0, 0, HOPS, 17, 0, 0]);
            header.extend(probes.source4.octets());
            header.extend(target.octets());
            let [high, low] = (!folded(&[&header])).to_be_bytes();
            for (to, from) in header.iter_mut().skip(10).zip([high, low]) {
                *to = from;
            }
            at.put(&header);
            // RFC 768: zero is no checksum.
        }
        IpAddr::V6(target) => {
            at.put(&0x86dd_u16.to_be_bytes());
            at.put(&[0x60, 0, 0, 0]);
            at.put(&datagram.to_be_bytes());
            at.put(&[17, HOPS]);
            let (source, target) = (probes.source6.octets(), target.octets());
            at.put(&source);
            at.put(&target);
            // RFC 8200 8.1: IPv6 has no datagrams without a checksum.
            let [length_high, length_low] = datagram.to_be_bytes();
            let pseudo = [0, 0, length_high, length_low, 0, 0, 0, 17];
            let sum = match !folded(&[&source, &target, &pseudo, &udp, &payload]) {
                0 => u16::MAX,
                sum => sum,
            };
            for (to, from) in udp.iter_mut().skip(6).zip(sum.to_be_bytes()) {
                *to = from;
            }
        }
    }
    at.put(&udp);
    at.put(&payload);
}

struct Writer<'a> {
    frame: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(to) = self.frame.get_mut(self.at..self.at + bytes.len()) {
            to.copy_from_slice(bytes);
        }
        self.at += bytes.len();
    }
}

/// The sum of RFC 1071 over parts of even length.
fn folded(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks_exact(2));
    let mut sum: u32 = words
        .map(|word| if let [high, low] = word { u32::from(u16::from_be_bytes([*high, *low])) } else { 0 })
        .sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// The number of a frame, if it is one of ours.
fn number(frame: &[u8]) -> Option<usize> {
    let header = match frame.get(12..14)? {
        [0x08, 0x00] => IP4,
        [0x86, 0xdd] => IP6,
        _ => return None,
    };
    let datagram = frame.get(ETHERNET + header..)?;
    let payload = datagram.get(UDP..UDP + PAYLOAD)?;
    let (mark, number) = payload.split_at(MARK.len());
    if datagram.get(2..4)? != PORT.to_be_bytes() || mark != MARK {
        return None;
    }
    usize::try_from(u64::from_be_bytes(number.get(..8)?.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::{HashSet, VecDeque};
    use std::rc::Rc;

    use super::*;
    use crate::port::{Drops, Flushed, Received};

    type Queue = Rc<RefCell<VecDeque<Vec<u8>>>>;

    type Passes = Rc<dyn Fn(&[u8]) -> bool>;

    /// A wire that loses what does not pass a test.
    struct Wire {
        out: Queue,
        into: Queue,
        passes: Passes,
    }

    impl Transport for Wire {
        fn kind(&self) -> &'static str {
            "queue"
        }

        fn name(&self) -> String {
            "queue".into()
        }

        fn ring(&self) -> u32 {
            1024
        }

        fn most_frame(&self) -> usize {
            1514
        }

        fn receive(&mut self, most: usize, take: &mut impl FnMut(Received<'_>)) -> Result<usize, PortError> {
            let mut count = 0;
            while count < most
                && let Some(bytes) = self.into.borrow_mut().pop_front()
            {
                take(Received { bytes: &bytes, stamp: None });
                count += 1;
            }
            Ok(count)
        }

        fn send(
            &mut self,
            length: usize,
            most: usize,
            write: &mut impl FnMut(&mut [u8]),
        ) -> Result<usize, PortError> {
            for _ in 0..most {
                let mut frame = vec![0; length];
                write(&mut frame);
                if (self.passes)(&frame) {
                    self.out.borrow_mut().push_back(frame);
                }
            }
            Ok(most)
        }

        fn flush(&mut self) -> Result<Flushed, PortError> {
            Ok(Flushed::default())
        }

        fn drops(&mut self) -> Result<Drops, PortError> {
            Ok(Drops::default())
        }
    }

    fn probes() -> Probes {
        Probes {
            targets: vec![
                "20.0.0.1".parse().unwrap(),
                "2a00::1".parse().unwrap(),
                "20.0.1.1".parse().unwrap(),
            ],
            macs: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
            source4: Ipv4Addr::new(10, 0, 1, 2),
            source6: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2),
            rate: 1e5,
        }
    }

    #[test]
    fn what_arrived_is_known_by_address() {
        let queues: [Queue; 2] = Default::default();
        let passes = Rc::new(|frame: &[u8]| frame[12] == 0x08);
        let wire =
            |out: &Queue, into: &Queue| Wire { out: out.clone(), into: into.clone(), passes: passes.clone() };
        let mut left = wire(&queues[0], &queues[1]);
        let mut right = [wire(&queues[1], &queues[0])];
        // Not ours.
        queues[0].borrow_mut().push_back(vec![0; 60]);
        let seen = probe(&probes(), &mut left, &mut right, Instant::now(), &mut |seen, _| {
            if seen.sent.len() >= 300 { Next::End } else { Next::GoOn }
        })
        .unwrap();
        assert_eq!((seen.targets, seen.sent.len()), (3, seen.arrived.len()));
        assert!(seen.sent.windows(2).all(|w| w[0] <= w[1]));
        let reached: HashSet<usize> =
            (0..seen.sent.len()).filter(|n| seen.arrived[*n]).map(|n| n % 3).collect();
        assert_eq!(reached, HashSet::from([0, 2]));
        assert!((0..seen.sent.len()).all(|n| seen.arrived[n] == (n % 3 != 1)));
    }

    #[test]
    fn frames_are_whole_and_their_checksums_right() {
        let probes = probes();
        for (n, target) in probes.targets.iter().enumerate() {
            let mut frame = vec![0; length(target)];
            write(&mut frame, &probes, target, n as u64 + 1_000_000);
            assert_eq!(number(&frame), Some(n + 1_000_000));
            assert_eq!(frame[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
            match target {
                IpAddr::V4(target) => {
                    assert_eq!(folded(&[&frame[14..34]]), 0xffff);
                    assert_eq!(frame[30..34], target.octets());
                    assert_eq!(usize::from(u16::from_be_bytes([frame[16], frame[17]])), frame.len() - 14);
                }
                IpAddr::V6(target) => {
                    assert_eq!(frame[38..54], target.octets());
                    let pseudo = [0, 0, 0, (UDP + PAYLOAD) as u8, 0, 0, 0, 17];
                    assert_eq!(folded(&[&frame[22..54], &pseudo, &frame[54..]]), 0xffff);
                }
            }
        }
        assert_eq!(number(&[0; 60]), None);
        assert_eq!(number(&[]), None);
    }

    #[test]
    fn without_addresses_nothing_is_sent() {
        let queues: [Queue; 2] = Default::default();
        let mut left = Wire { out: queues[0].clone(), into: queues[1].clone(), passes: Rc::new(|_| true) };
        let none = Probes { targets: Vec::new(), ..probes() };
        let seen = probe(&none, &mut left, &mut [], Instant::now(), &mut |_, _| Next::GoOn).unwrap();
        assert!(seen.sent.is_empty() && queues[0].borrow().is_empty());
    }
}
