//! The frames of RFC 2544, RFC 5180 and RFC 8219, in siitperf's form or the lab's.
//!
//! Both forms are the same in size and headers (RFC 2544 C.2.6.4: UDP to port 7, TTL 10). siitperf's payload begins with
//! `IDENTIFY`; the lab's has a number behind it.

use std::net::IpAddr;
use std::time::Duration;

use shoal_lab_plan::{
    Addresses, Change, Checksums, Family, Pace, Rate, SMALLEST, Side, SideAddresses, Stamps, Stream, Tag,
};

use crate::error::FrameError;
use crate::extension::Extension;
use crate::layout::Layout;
use crate::mix::Mix;
use crate::packet::{Macs, Packet, payload_of};
use crate::tag::{MAGIC, PLAIN_LEN, SIGNED_LEN};
use crate::variation::{self, End, Hosts, Ports, address_byte};

/// The ports of frames whose ports do not vary: source, destination (RFC 2544 C.2.6.4).
pub const FIXED_PORTS: (u16, u16) = (0xc020, 7);
/// TTL or hop limit (RFC 2544 C.2.6.4).
pub const TTL: u8 = 10;

/// What a frame's payload says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The lab's: signed and numbered, so that all can be accounted for.
    #[default]
    Own,
    /// As the original tester sends it: siitperf's `IDENTIFY`, T-Rex's `x`. Only counted.
    Plain,
}

/// Which side sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Left to right.
    Forward,
    /// Right to left.
    Reverse,
    /// Both at once: the norm (RFC 2544 section 14).
    #[default]
    Both,
}

impl Direction {
    /// The sides that send.
    pub const fn sides(self) -> &'static [Side] {
        match self {
            Direction::Forward => &[Side::Left],
            Direction::Reverse => &[Side::Right],
            Direction::Both => &Side::BOTH,
        }
    }
}

/// siitperf's background traffic: of each `n` frames, `m` are foreground and the others IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    /// All; at least 1.
    pub n: u64,
    /// Foreground among them; up to `n`, which is no background.
    pub m: u64,
}

/// RFC 2544's traffic with its variations. Arrays are by side, left first; those of frames by the side that sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The IP that each side sends; they differ where the device translates.
    pub families: [Family; 2],
    /// Bytes of IPv4 frames, with FCS.
    pub size4: u32,
    /// Bytes of IPv6 frames, with FCS.
    pub size6: u32,
    /// What payloads say.
    pub form: Form,
    /// The sender.
    pub direction: Direction,
    /// The test network's addresses.
    pub addresses: Addresses,
    /// Where foreground frames of each side go instead of to the other tester port's address: where the device translates,
    /// the address by which that port is known on this side.
    pub destinations: [Option<IpAddr>; 2],
    /// Ethernet addresses.
    pub macs: Macs,
    /// UDP ports of what each side sends.
    pub ports: [Ports; 2],
    /// Networks at each side, 1 to 256: destinations of what the other side sends.
    pub networks: [u16; 2],
    /// Many hosts at a side. Needs one network there.
    pub hosts: [Option<Hosts>; 2],
    /// IPv6 frames among the others.
    pub background: Option<Background>,
    /// One frame in a hundred is a broadcast (RFC 2544 11.1), on IPv6 to all nodes.
    pub broadcast: bool,
    /// Extension headers of IPv6 frames (RFC 5180).
    pub extensions: Vec<Extension>,
    /// If set, so many random MACs at each side, 1 to 65,536: for bridges (RFC 4814).
    pub random_macs: Option<u32>,
    /// Whose delay is measured: of each direction's first stream, which is the foreground if there is any.
    pub stamps: Stamps,
}

impl Traffic {
    /// Frames of `size` bytes (with FCS) of one family, in both directions, in the lab's form, with nothing varied.
    pub fn new(family: Family, size: u32, addresses: Addresses, macs: Macs) -> Self {
        Traffic {
            families: [family; 2],
            size4: size,
            size6: size,
            form: Form::Own,
            direction: Direction::Both,
            addresses,
            destinations: [None; 2],
            macs,
            ports: [Ports::default(); 2],
            networks: [1; 2],
            hosts: [None; 2],
            background: None,
            broadcast: false,
            extensions: Vec::new(),
            random_macs: None,
            stamps: Stamps::None,
        }
    }

    /// The streams at `rate` frames a second and direction, from the trial's start to its end. Their shares of the rate add
    /// up exactly. Background frames are spread evenly among the others, where siitperf sends `m` and `n - m` in turns.
    ///
    /// # Errors
    ///
    /// A size that does not hold the headers and tag, an option outside of its limits, options that exclude each other.
    pub fn streams(&self, rate: Rate) -> Result<Vec<Stream>, FrameError> {
        self.check()?;
        let mut streams = Vec::new();
        for from in self.direction.sides() {
            let way = if *from == Side::Left { "forward" } else { "reverse" };
            let family = of(&self.families, *from);
            let rate_here = if self.broadcast { rate.share(99, 100) } else { rate };
            let Background { n, m } = self.background.unwrap_or(Background { n: 1, m: 1 });
            let first = streams.len();
            if m > 0 {
                streams.push(self.stream(way.to_owned(), *from, *family, rate_here.share(m, n))?);
            }
            if m < n {
                streams.push(self.background(way, *from, rate_here.share(n - m, n))?);
            }
            if let Some(stream) = streams.get_mut(first) {
                stream.stamps = self.stamps;
            }
            if self.broadcast {
                streams.push(self.broadcast(way, *from, *family, rate.share(1, 100))?);
            }
        }
        Ok(streams)
    }

    /// The streams of frames of several sizes, in the mix's exact shares of `rate`; the traffic's own sizes do not count.
    ///
    /// # Errors
    ///
    /// As [`streams`](Self::streams).
    pub fn mixed(&self, mix: &Mix, rate: Rate) -> Result<Vec<Stream>, FrameError> {
        let mut all = Vec::new();
        for (share, size) in &mix.parts {
            let one = Traffic { size4: *size, size6: *size, ..self.clone() };
            for mut stream in one.streams(rate.share(*share, mix.whole()))? {
                stream.name = format!("{} {size} B", stream.name);
                all.push(stream);
            }
        }
        Ok(all)
    }

    pub(crate) fn check(&self) -> Result<(), FrameError> {
        if let Some(Background { n, m }) = self.background {
            FrameError::within("n of the background traffic", n, 1, u64::from(u32::MAX))?;
            FrameError::within("m of the background traffic", m, 0, n)?;
        }
        if let Some(count) = self.random_macs {
            FrameError::within("the number of random MACs", u64::from(count), 1, 65_536)?;
        }
        for side in Side::BOTH {
            let (name, networks) =
                (if side == Side::Left { "left" } else { "right" }, *of(&self.networks, side));
            FrameError::within(&format!("the number of {name} networks"), u64::from(networks), 1, 256)?;
            if let Some(hosts) = of(&self.hosts, side) {
                hosts.check(side)?;
                if networks != 1 {
                    return Err(FrameError::Together {
                        what: format!("many hosts at the {name}"),
                        with: format!("{networks} networks there"),
                        nearest: "use 1 network".to_owned(),
                    });
                }
            }
            let ports = of(&self.ports, side);
            ports.source.check("source port")?;
            ports.destination.check("destination port")?;
        }
        Ok(())
    }

    /// The address of the tester at `side`.
    fn tester(&self, side: Side, family: Family) -> IpAddr {
        let SideAddresses { tester4, tester6, .. } = match side {
            Side::Left => &self.addresses.left,
            Side::Right => &self.addresses.right,
        };
        match family {
            Family::Ip4 => (*tester4).into(),
            Family::Ip6 => (*tester6).into(),
        }
    }

    /// Where frames of `from` go.
    fn destination(&self, from: Side, family: Family) -> IpAddr {
        of(&self.destinations, from).unwrap_or_else(|| self.tester(from.other(), family))
    }

    /// IPv6 frames to the tester's own address at the other side, whatever the foreground is.
    fn background(&self, way: &str, from: Side, rate: Rate) -> Result<Stream, FrameError> {
        let untranslated = Traffic { destinations: [None; 2], ..self.clone() };
        untranslated.stream(format!("{way} background"), from, Family::Ip6, rate)
    }

    /// The frame that each stream begins with, and its tag.
    pub(crate) fn first(
        &self,
        from: Side,
        family: Family,
        ports: (u16, u16),
    ) -> Result<(Vec<u8>, Tag), FrameError> {
        let is_ip4 = family == Family::Ip4;
        let extensions = if is_ip4 { [].as_slice() } else { self.extensions.as_slice() };
        let overhead = Packet::overhead(is_ip4, extensions);
        let (what, size) = if is_ip4 { ("an IPv4 frame", self.size4) } else { ("an IPv6 frame", self.size6) };
        let (least, offset) = match self.form {
            Form::Own => (SIGNED_LEN, overhead as u16),
            Form::Plain => (PLAIN_LEN, overhead as u16),
        };
        let length = payload_of(what, size, overhead, least, SMALLEST)?;
        // RFC 2544 C.2.6.4 leaves the payload open; siitperf counts upwards behind the magic.
        let payload: Vec<u8> = MAGIC.into_iter().chain((0..=u8::MAX).cycle()).take(length).collect();
        let frame = Packet {
            macs: (self.macs.destination(from), self.macs.source(from)),
            ends: (self.tester(from, family), self.destination(from, family)),
            ttl: TTL,
            id: 0,
            extensions,
            ports,
            payload: &payload,
        }
        .frame()?;
        let tag = match self.form {
            Form::Own => Tag::Signed { offset },
            Form::Plain => Tag::Plain { offset },
        };
        Ok((frame, tag))
    }

    fn stream(&self, name: String, from: Side, family: Family, rate: Rate) -> Result<Stream, FrameError> {
        let (frame, tag) = self.first(from, family, FIXED_PORTS)?;
        let changes = Layout::of(&frame).map(|l| self.changes(&l, from)).unwrap_or_default();
        Ok(Stream {
            name,
            from,
            frame,
            changes,
            checksums: Checksums { ip4: true, l4: true },
            tag,
            pace: Pace::Steady { rate, after: Duration::ZERO },
            stamps: Stamps::None,
            expected: true,
            answers: None,
        })
    }

    fn changes(&self, layout: &Layout, from: Side) -> Vec<Change> {
        let mut changes = Vec::new();
        if let Some(count) = self.random_macs {
            changes.push(variation::macs(0, from.other(), count));
            changes.push(variation::macs(6, from, count));
        }
        changes.extend(variation::networks(layout, *of(&self.networks, from.other()), 1));
        for (end, side, seed) in [(End::Source, from, 2), (End::Destination, from.other(), 3)] {
            if let Some(hosts) = of(&self.hosts, side) {
                let offset = address_byte(layout, end, hosts.offset4, hosts.offset6);
                changes.extend(hosts.field.change(offset, seed));
            }
        }
        let ports = of(&self.ports, from);
        changes.extend(ports.source.change(layout.l4, 4));
        changes.extend(ports.destination.change(layout.l4 + 2, 5));
        changes
    }

    /// The same with all frames broadcasts (RFC 2889 5.10), which are expected to arrive at the other side: IPv4's limited
    /// broadcast, or IPv6's to all nodes. The family is the left side's.
    #[must_use]
    pub fn all_broadcast(mut self) -> Traffic {
        let [family, _] = self.families;
        let (to, mac) = match family {
            Family::Ip4 => (IpAddr::from([255; 4]), [0xff; 6]),
            // RFC 5180 knows no broadcast; all nodes of the link are what comes nearest (RFC 4291 2.7.1, RFC 2464 7).
            Family::Ip6 => (IpAddr::from([0xff02, 0, 0, 0, 0, 0, 0, 1_u16]), [0x33, 0x33, 0, 0, 0, 1]),
        };
        self.macs.device = [Some(mac); 2];
        self.destinations = [Some(to); 2];
        // There is one destination.
        self.networks = [1; 2];
        self
    }

    fn broadcast(&self, way: &str, from: Side, family: Family, rate: Rate) -> Result<Stream, FrameError> {
        let all = Traffic { families: [family; 2], ..self.clone() }.all_broadcast();
        let mut stream = all.stream(format!("{way} broadcast"), from, family, rate)?;
        // Nothing of a broadcast varies: not its destination, nor the rest, so that it is the same for each receiver.
        stream.changes.clear();
        stream.expected = false;
        Ok(stream)
    }
}

/// The element of a side.
pub(crate) fn of<T>([left, right]: &[T; 2], side: Side) -> &T {
    match side {
        Side::Left => left,
        Side::Right => right,
    }
}
