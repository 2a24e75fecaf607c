//! A case's traffic: the frames of crate `frame`, at the times that crate `measure` wants.

use std::time::Duration;

use shoal_lab_frame as frame;
use shoal_lab_measure::{MeasureError, Offer, Traffic};
use shoal_lab_plan::{
    FCS, Family, Order, Pace, Ports as DevicePorts, Rate, SMALLEST, Scenario, Side, Stamps, Stream,
};

use crate::cases::{Case, Direction, Frames, Ip};
use crate::profile;
use crate::settings::Settings;

/// A case's traffic.
pub struct CaseTraffic {
    kind: Kind,
    size: u32,
    sides: Vec<Side>,
}

enum Kind {
    /// RFC 2544's, of one size or several with their shares.
    Rfc(Vec<(u64, frame::Traffic)>),
    /// One of T-Rex's load tests.
    Load(frame::LoadTraffic),
    /// The thesis's two streams.
    LatencyUnderLoad(frame::LoadAndLatencyTraffic),
    /// A profile's, at its own pace.
    Profile(Vec<Stream>),
}

impl CaseTraffic {
    /// The traffic of `case` for a device with these ports.
    ///
    /// # Errors
    ///
    /// A name that is none, or frames that cannot be.
    pub fn new(
        case: &Case,
        scenario: &Scenario,
        ports: Option<&DevicePorts>,
        settings: &Settings,
        duration: Duration,
    ) -> Result<Self, MeasureError> {
        Self::made(case, scenario, ports, settings, duration).map_err(MeasureError::Traffic)
    }

    fn made(
        case: &Case,
        scenario: &Scenario,
        ports: Option<&DevicePorts>,
        settings: &Settings,
        duration: Duration,
    ) -> Result<Self, String> {
        let mac = |side: Side| ports.and_then(|p| if side == Side::Left { p.left.mac } else { p.right.mac });
        let macs = frame::Macs::new(&scenario.addresses, mac(Side::Left), mac(Side::Right));
        let direction = match case.direction {
            Direction::Forward => frame::Direction::Forward,
            Direction::Reverse => frame::Direction::Reverse,
            Direction::Both => frame::Direction::Both,
        };
        let sides = direction.sides().to_vec();
        if let Some(profile) = &case.profile {
            let made = profile::streams(profile, case.direction, Some(macs), settings.link.link(), duration)?;
            let size = made.streams.first().map_or(64, |s| s.frame.len() as u32 + FCS);
            return Ok(CaseTraffic { kind: Kind::Profile(made.streams), size, sides });
        }
        let words = |error: frame::FrameError| error.to_string();
        let rfc = |size: u32| rfc(case, size, scenario, macs, direction, settings).map_err(words);
        let (kind, size) = match (&case.frames, case.test.as_str()) {
            (Frames::Size(size), "thesis") => {
                let thesis = frame::LoadAndLatencyTraffic {
                    size: *size,
                    sources: frame::FORWARDING_SOURCES,
                    latency_pps: frame::LATENCY_PPS,
                    direction,
                    macs,
                };
                (Kind::LatencyUnderLoad(thesis), *size)
            }
            (Frames::Size(size), _) => (Kind::Rfc(vec![(1, rfc(*size)?)]), *size),
            (Frames::Named(name), _) if name.starts_with("imix:") => {
                let mix: frame::Mix = name.parse().map_err(words)?;
                // The smallest frames of `imix:bench` are padded by a NIC.
                let parts = mix.parts.iter().map(|(share, size)| Ok((*share, rfc((*size).max(SMALLEST))?)));
                let parts = parts.collect::<Result<Vec<_>, String>>()?;
                (Kind::Rfc(parts), mix.mean().round() as u32)
            }
            (Frames::Named(name), _) => {
                let test: frame::LoadTest = name.parse().map_err(words)?;
                let mix: frame::Mix = "imix:bench".parse().map_err(words)?;
                let size = match test {
                    frame::LoadTest::Var2Large => 1514,
                    frame::LoadTest::Var2Imix => mix.mean().round() as u32,
                    frame::LoadTest::Var2Small | frame::LoadTest::OneFlow => 64,
                };
                let form = form(settings);
                (Kind::Load(frame::LoadTraffic { test, mix, direction, form, fix_l4: false, macs }), size)
            }
        };
        Ok(CaseTraffic { kind, size, sides })
    }

    /// The streams as if one frame a second and direction were sent: their rates are their shares.
    fn shares(&self) -> Result<Vec<Stream>, frame::FrameError> {
        let one = Rate::per_second(1);
        match &self.kind {
            Kind::Load(load) => load.streams(one),
            Kind::LatencyUnderLoad(thesis) => thesis.streams(one),
            Kind::Profile(streams) => Ok(streams.clone()),
            Kind::Rfc(parts) => {
                let whole: u64 = parts.iter().map(|p| p.0).sum();
                let mut streams = Vec::new();
                for (share, traffic) in parts {
                    streams.extend(traffic.streams(one.share(*share, whole))?);
                }
                Ok(streams)
            }
        }
    }
}

impl Traffic for CaseTraffic {
    fn streams(&self, offer: &Offer) -> Result<Vec<Stream>, MeasureError> {
        let mut streams = self.shares().map_err(|e| MeasureError::Traffic(e.to_string()))?;
        if matches!(self.kind, Kind::Profile(_)) {
            return Ok(streams);
        }
        let is_thesis = matches!(self.kind, Kind::LatencyUnderLoad(_));
        let mut stamped = [false; 2];
        for stream in &mut streams {
            // The thesis's latency stream has its own rate and is always measured.
            if is_thesis && stream.stamps != Stamps::None {
                continue;
            }
            let (share, gap) = match &stream.pace {
                Pace::Steady { rate, after } => (*rate, *after),
                Pace::Steps { .. } | Pace::Bursts { .. } => (Rate::per_second(1), Duration::ZERO),
            };
            stream.pace = later(offer.share(share.frames, share.seconds), gap);
            if !is_thesis {
                // Of tagged frames, those of each direction's first stream: the smallest of a mix.
                let first = stamped.get_mut(stream.from.index()).is_some_and(|s| !std::mem::replace(s, true));
                let all = matches!(offer.stamps, Stamps::All);
                stream.stamps = if stream.expected && (first || all) { offer.stamps } else { Stamps::None };
            }
        }
        Ok(streams)
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn sides(&self) -> Vec<Side> {
        self.sides.clone()
    }
}

/// Streams of a mix do not begin at the same moment.
fn later(pace: Pace, gap: Duration) -> Pace {
    match pace {
        Pace::Steady { rate, after } => Pace::Steady { rate, after: after + gap },
        other => other,
    }
}

fn form(settings: &Settings) -> frame::Form {
    if settings.traffic.frame == "siitperf" { frame::Form::Plain } else { frame::Form::Own }
}

/// RFC 2544's frames of a case with a size, for tests that arrange them themselves.
///
/// # Errors
///
/// Frames that cannot be.
pub fn rfc2544(
    case: &Case,
    scenario: &Scenario,
    ports: Option<&DevicePorts>,
    settings: &Settings,
) -> Result<frame::Traffic, MeasureError> {
    let (left, right) = (ports.and_then(|p| p.left.mac), ports.and_then(|p| p.right.mac));
    let macs = frame::Macs::new(&scenario.addresses, left, right);
    let size = match &case.frames {
        Frames::Size(size) => *size,
        Frames::Named(_) => SMALLEST,
    };
    rfc(case, size, scenario, macs, frame::Direction::Both, settings)
        .map_err(|e| MeasureError::Traffic(e.to_string()))
}

fn rfc(
    case: &Case,
    size: u32,
    scenario: &Scenario,
    macs: frame::Macs,
    direction: frame::Direction,
    settings: &Settings,
) -> Result<frame::Traffic, frame::FrameError> {
    let family = match case.ip {
        Ip::Four => Family::Ip4,
        Ip::Six => Family::Ip6,
    };
    let mut traffic = frame::Traffic::new(family, size, scenario.addresses.clone(), macs);
    traffic.form = form(settings);
    traffic.direction = direction;
    traffic.networks = [scenario.networks; 2];
    let mut ports = frame::Ports {
        source: field(&settings.traffic.source_ports, frame::SOURCE_PORTS),
        destination: field(&settings.traffic.destination_ports, frame::DESTINATION_PORTS),
    };
    if let Some(flows) = case.flows {
        ports = ports_of_flows(flows);
    }
    traffic.ports = [ports; 2];
    if case.test == "broadcast" {
        traffic = traffic.all_broadcast();
    }
    // A frame that cannot be made is told now and not in the middle of a search.
    traffic.streams(Rate::per_second(1))?;
    Ok(traffic)
}

/// So many combinations of ports: source ports first, destination ports where they do not suffice.
fn ports_of_flows(flows: u64) -> frame::Ports {
    let (first, last) = frame::SOURCE_PORTS;
    let sources = u64::from(last - first) + 1;
    let up_to = |from: u16, count: u64| from.saturating_add((count - 1).min(u64::from(u16::MAX)) as u16);
    let random = |from: u16, to: u16| frame::Field::varying(Order::Random, (from, to));
    let source = random(first, up_to(first, flows.clamp(1, sources)).min(last));
    let destination = match flows.div_ceil(sources) {
        0 | 1 => frame::Field::fixed(frame::DESTINATION_PORTS),
        more => random(frame::DESTINATION_PORTS.0, up_to(frame::DESTINATION_PORTS.0, more)),
    };
    frame::Ports { source, destination }
}

/// `order` is one of those that the settings let through.
fn field(order: &str, range: (u16, u16)) -> frame::Field {
    match order {
        "rising" => frame::Field::varying(Order::Rising, range),
        "falling" => frame::Field::varying(Order::Falling, range),
        "random" => frame::Field::varying(Order::Random, range),
        _ => frame::Field::fixed(range),
    }
}

#[cfg(test)]
mod tests {
    use shoal_lab_plan::{Addresses, Forwarding};

    use super::*;

    fn case(test: &str, frames: Frames) -> Case {
        Case { frames, ..Case::plain(test, "shoal") }
    }

    fn scenario() -> Scenario {
        Scenario {
            forwarding: Forwarding::Route,
            addresses: Addresses::default(),
            networks: 1,
            routes: 0,
            workers: 1,
            mtu: 1500,
        }
    }

    fn frames_of(streams: &[Stream], seconds: u64) -> u64 {
        let frames = streams.iter().map(|s| match &s.pace {
            Pace::Steady { rate, .. } => rate.frames_in(seconds * 1_000_000_000),
            _ => 0,
        });
        frames.sum()
    }

    fn traffic(case: &Case) -> CaseTraffic {
        CaseTraffic::new(case, &scenario(), None, &Settings::default(), Duration::from_secs(1)).unwrap()
    }

    #[test]
    fn a_mix_keeps_its_shares_and_its_whole_rate() {
        let traffic = traffic(&case("throughput", Frames::Named("imix:classic".into())));
        let streams = traffic.streams(&Offer::steady(48_000)).unwrap();
        assert_eq!(streams.len(), 6);
        assert_eq!(frames_of(&streams, 10), 2 * 480_000);
        assert_eq!(traffic.size(), 362);
    }

    #[test]
    fn tags_go_to_each_directions_first_stream_and_stamps_to_all() {
        let traffic = traffic(&case("latency", Frames::Named("imix:classic".into())));
        let tagged = |stamps| {
            let streams = traffic.streams(&Offer::steady(1000).stamped(stamps)).unwrap();
            streams.iter().filter(|s| s.stamps != Stamps::None).count()
        };
        assert_eq!(tagged(Stamps::Even { after: Duration::ZERO, count: 10 }), 2);
        assert_eq!(tagged(Stamps::All), 6);
        assert_eq!(tagged(Stamps::None), 0);
    }

    #[test]
    fn the_thesiss_latency_stream_keeps_its_rate() {
        let traffic = traffic(&case("thesis", Frames::Size(889)));
        let streams = traffic.streams(&Offer::steady(137_513)).unwrap();
        assert_eq!(frames_of(&streams, 1), 2 * (137_513 + 5_000));
        assert_eq!(streams.iter().filter(|s| s.stamps == Stamps::All).count(), 2);
    }

    #[test]
    fn broadcasts_are_sent_to_all_and_expected_at_the_other_side() {
        let case = Case { direction: Direction::Forward, ..case("broadcast", Frames::Size(64)) };
        let streams = traffic(&case).streams(&Offer::steady(1000)).unwrap();
        let [stream] = streams.as_slice() else { panic!("{streams:?}") };
        assert!(stream.expected && stream.from == Side::Left && stream.frame.starts_with(&[0xff; 6]));
    }

    #[test]
    fn flows_are_combinations_of_ports() {
        for flows in [1, 2, 1000, 64_512, 1_000_000] {
            let ports = ports_of_flows(flows);
            let made = ports.source.count() * ports.destination.count();
            assert!(made >= flows && made < flows + 64_512, "{flows}: {made}");
        }
    }
}
