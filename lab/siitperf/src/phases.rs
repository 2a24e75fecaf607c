//! The trials that a configuration and a command line ask for.

use std::time::Duration;

use shoal_lab_frame::{
    Background, Direction, Field, Form, FrameError, Hosts, Macs, Ports, StatefulTraffic, Traffic,
};
use shoal_lab_plan::{Addresses, Family, MOST_TAKEN, Order, Pace, Rate, Side, Stamps, Stream, Trial};

use crate::args::{Args, Program, StatefulArgs};
use crate::conf::{Conf, HostKeys, PortKeys};
use crate::error::InputError;

/// What the original does not know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Signed frames (the default) or the original's.
    pub form: Form,
    /// Seeds what is random; the original takes its seed from the system.
    pub seed: u64,
    /// Waited before sending; 2 s as in the original.
    pub start_delay: Duration,
    /// Id of the first trial.
    pub trial: u16,
    /// Sending may take this much longer; 1.00001 as in the original.
    pub tolerance: f64,
    /// A test is invalid if others take a processor from the tester for more than this share of it; 1: any share,
    /// as in the original.
    pub most_taken: f64,
}

impl Default for Options {
    fn default() -> Self {
        let start_delay = Duration::from_secs(2);
        Options {
            form: Form::Own,
            seed: 1,
            start_delay,
            trial: 1,
            tolerance: 1.000_01,
            most_taken: MOST_TAKEN,
        }
    }
}

/// The phases of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Phases {
    /// Fills the state table: only of stateful tests.
    pub preliminary: Option<Trial>,
    /// The test itself; none if neither direction is active.
    pub test: Option<Trial>,
}

impl Phases {
    /// The phases that `conf` and `args` ask for.
    ///
    /// # Errors
    ///
    /// What the frames' builders refuse.
    pub fn new(program: Program, args: &Args, conf: &Conf, options: &Options) -> Result<Phases, InputError> {
        let traffic = traffic(args, conf, options.form)?;
        let trial = |id, streams, duration, timeout| Trial {
            timeout: Duration::from_millis(timeout),
            start_delay: options.start_delay,
            tolerance: options.tolerance,
            most_taken: options.most_taken,
            seed: options.seed,
            ..Trial::new(id, streams, duration)
        };
        let mut id = options.trial;
        let mut preliminary = None;
        let mut streams = if let Some(own) = &args.stateful {
            let states = States::new(args, conf, own, traffic)?;
            let length = Duration::from_nanos(Rate::per_second(own.rate).due(own.frames));
            let mut first = trial(id, states.preliminary()?, length, own.timeout);
            let most = u32::try_from(own.entries).unwrap_or(u32::MAX);
            first.learn = Some((states.stateful.initiator.other(), most));
            preliminary = Some(first);
            id = id.wrapping_add(1);
            states.test()?
        } else {
            traffic.streams(Rate::per_second(args.rate))?
        };
        if streams.is_empty() {
            return Ok(Phases { preliminary, test: None });
        }
        stamp(program, args, &mut streams);
        let mut test = trial(id, streams, Duration::from_secs(args.duration), args.timeout);
        if program == Program::Pdv && args.frame_timeout > 0 {
            test.frame_timeout = Some(Duration::from_millis(args.frame_timeout));
        }
        if let (Some(own), Some(before)) = (&args.stateful, &preliminary) {
            // D counts from the start of the preliminary phase, which ends with its timeout.
            test.start_delay =
                Duration::from_millis(own.delay).saturating_sub(before.duration + before.timeout);
        }
        Ok(Phases { preliminary, test: Some(test) })
    }
}

/// The streams of a stateful test.
struct States<'a> {
    stateful: StatefulTraffic,
    args: &'a Args,
    conf: &'a Conf,
    own: &'a StatefulArgs,
    /// How phase 1 goes through the tuples; none: frames vary as the others do.
    enumerate: Option<Order>,
}

impl<'a> States<'a> {
    fn new(
        args: &'a Args,
        conf: &'a Conf,
        own: &'a StatefulArgs,
        mut traffic: Traffic,
    ) -> Result<Self, InputError> {
        let initiator = if conf.stateful == 2 { Side::Right } else { Side::Left };
        let (ports, ips) = (conf.enumerate_ports, conf.enumerate_ips);
        if ports > 0 && ips > 0 && ports != ips {
            return Err(InputError::Together(format!(
                "`Enumerate-ports` is {ports} and `Enumerate-ips` is {ips}; the nearest is {ports} for both"
            )));
        }
        let enumerate = match ports.max(ips) {
            0 => None,
            1 => Some(Order::Rising),
            2 => Some(Order::Falling),
            _ => Some(Order::Permutation),
        };
        if enumerate.is_some() {
            // What is enumerated makes up the tuples, whether it varies otherwise or not; all else is fixed.
            let keys = PortKeys { source: ports, destination: ports, ..*of(&conf.ports, initiator) };
            *of_mut(&mut traffic.ports, initiator) = vary_ports(keys)?;
            for side in Side::BOTH {
                *of_mut(&mut traffic.hosts, side) = hosts(HostKeys { order: ips, ..*of(&conf.hosts, side) })?;
            }
        }
        Ok(States { stateful: StatefulTraffic { traffic, initiator }, args, conf, own, enumerate })
    }

    /// Streams of what `from` sends, in the foreground and in the background, with the variation of stateless tests.
    fn plain(&self, from: Side, rate: Rate) -> Result<(Vec<Stream>, Vec<Stream>), FrameError> {
        let mut traffic = self.stateful.traffic.clone();
        traffic.direction = if from == Side::Left { Direction::Forward } else { Direction::Reverse };
        // The foreground, if there is any, is the first.
        let mut foreground = traffic.streams(rate)?;
        let background = foreground.split_off(usize::from(self.args.m > 0));
        Ok((foreground, background))
    }

    fn preliminary(&self) -> Result<Vec<Stream>, FrameError> {
        let Args { n, m, .. } = *self.args;
        let rate = Rate::per_second(self.own.rate);
        let frames = self.own.foreground(n, m);
        let (mut foreground, mut background) = self.plain(self.stateful.initiator, rate)?;
        if let Some(order) = self.enumerate {
            foreground = vec![self.stateful.preliminary(frames, rate.share(m, n), order)?];
        }
        let once = |streams: &mut Vec<Stream>, frames, rate| {
            for stream in streams {
                let (gap, after) = (Duration::ZERO, Duration::ZERO);
                stream.pace = Pace::Bursts { frames, bursts: 1, rate: Some(rate), gap, after };
            }
        };
        once(&mut foreground, frames, rate.share(m, n));
        once(&mut background, self.own.frames - frames, rate.share(n - m, n));
        foreground.append(&mut background);
        Ok(foreground)
    }

    fn test(&self) -> Result<Vec<Stream>, InputError> {
        let Args { n, m, rate, .. } = *self.args;
        let rate = Rate::per_second(rate);
        let mut streams = Vec::new();
        for from in Side::BOTH {
            if !of(&self.conf.active, from) {
                continue;
            }
            let (mut foreground, mut background) = self.plain(from, rate)?;
            if m > 0 && from != self.stateful.initiator {
                let order = match self.conf.responder_tuples {
                    2 => Order::Falling,
                    3 => Order::Random,
                    _ => Order::Rising,
                };
                foreground = vec![self.stateful.answers(rate.share(m, n), order)?];
            } else if m > 0 && self.enumerate.is_some() {
                let keys = of(&self.conf.ports, from);
                let order = Field::order_of("var-sport", keys.source.max(keys.destination))?;
                let tuples = self.own.foreground(n, m);
                let order = order.unwrap_or(Order::Rising);
                foreground = vec![self.stateful.again(tuples, rate.share(m, n), order)?];
            }
            streams.append(&mut foreground);
            streams.append(&mut background);
        }
        Ok(streams)
    }
}

fn traffic(args: &Args, conf: &Conf, form: Form) -> Result<Traffic, FrameError> {
    let mut addresses = Addresses::default();
    for (at, side) in [(&mut addresses.left, Side::Left), (&mut addresses.right, Side::Right)] {
        at.tester4 = *of(&conf.real4, side);
        at.tester6 = *of(&conf.real6, side);
        at.tester_mac = *of(&conf.mac_tester, side);
    }
    let macs = Macs { tester: conf.mac_tester, device: conf.mac_dut.map(Some) };
    let [left, right] = conf.versions;
    let destination = |from: Side| {
        let other = from.other();
        (left != right).then(|| match of(&conf.versions, from) {
            Family::Ip4 => (*of(&conf.virt4, other)).into(),
            Family::Ip6 => (*of(&conf.virt6, other)).into(),
        })
    };
    let mut traffic = Traffic::new(left, args.size, addresses, macs);
    traffic.families = conf.versions;
    traffic.size4 = args.size - 20;
    traffic.form = form;
    traffic.direction = match conf.active {
        [true, false] => Direction::Forward,
        [false, true] => Direction::Reverse,
        _ => Direction::Both,
    };
    traffic.destinations = [destination(Side::Left), destination(Side::Right)];
    let [forward, reverse] = conf.ports;
    traffic.ports = [vary_ports(forward)?, vary_ports(reverse)?];
    traffic.networks = conf.networks;
    let [left, right] = conf.hosts;
    traffic.hosts = [hosts(left)?, hosts(right)?];
    traffic.background = (args.m < args.n).then_some(Background { n: args.n, m: args.m });
    Ok(traffic)
}

/// Sets whose delay the program measures.
fn stamp(program: Program, args: &Args, streams: &mut [Stream]) {
    let mut tagged = [false; 2];
    for stream in streams {
        let first = !std::mem::replace(of_mut(&mut tagged, stream.from), true);
        stream.stamps = match program {
            Program::Lat if first => {
                Stamps::Even { after: Duration::from_secs(args.delay), count: args.timestamps as u32 }
            }
            Program::Pdv => Stamps::All,
            Program::Tp | Program::Lat => Stamps::None,
        };
    }
}

fn vary_ports(keys: PortKeys) -> Result<Ports, FrameError> {
    let (min, max) = keys.source_range;
    let source = Field { order: Field::order_of("var-sport", keys.source)?, min, max };
    let (min, max) = keys.destination_range;
    let destination = Field { order: Field::order_of("var-dport", keys.destination)?, min, max };
    Ok(Ports { source, destination })
}

/// The hosts of a side, if they vary.
fn hosts(keys: HostKeys) -> Result<Option<Hosts>, FrameError> {
    let (min, max) = keys.range;
    let order = Field::order_of("IP-var", keys.order)?;
    let HostKeys { offset4, offset6, .. } = keys;
    Ok(order.map(|_| Hosts { field: Field { order, min, max }, offset4, offset6 }))
}

fn of<T>([left, right]: &[T; 2], side: Side) -> &T {
    if side == Side::Left { left } else { right }
}

fn of_mut<T>([left, right]: &mut [T; 2], side: Side) -> &mut T {
    if side == Side::Left { left } else { right }
}
