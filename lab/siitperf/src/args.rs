//! Command lines of the three programs.

use crate::conf::Conf;
use crate::error::InputError;

/// The largest rate the original takes: 64-byte frames at 10 Gbit/s.
const MOST_RATE: u64 = 14_880_952;
/// Above this size, only IPv4 frames (20 bytes shorter) are allowed.
const LARGEST_IP6: u64 = 1518;

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `siitperf-tp`: throughput and frame loss.
    Tp,
    /// `siitperf-lat`: latency.
    Lat,
    /// `siitperf-pdv`: packet delay variation, or throughput with a timeout for each frame.
    Pdv,
}

impl Program {
    /// All three.
    pub const ALL: [Program; 3] = [Program::Tp, Program::Lat, Program::Pdv];

    /// As it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Program::Tp => "siitperf-tp",
            Program::Lat => "siitperf-lat",
            Program::Pdv => "siitperf-pdv",
        }
    }

    /// The program of that name, a path before it passed over: for `argv[0]`.
    pub fn named(name: &str) -> Option<Program> {
        let last = name.rsplit('/').next()?;
        Self::ALL.into_iter().find(|program| program.name() == last)
    }

    /// Names of its own arguments.
    const fn own(self) -> &'static [&'static str] {
        match self {
            Program::Tp => &[],
            Program::Lat => &["<delay s>", "<timestamps>"],
            Program::Pdv => &["<frame timeout ms>"],
        }
    }
}

/// A command line, read and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args {
    /// IPv6 frames' size, with FCS; IPv4 frames are 20 bytes shorter.
    pub size: u32,
    /// Frames a second and direction.
    pub rate: u64,
    /// In seconds.
    pub duration: u64,
    /// In milliseconds.
    pub timeout: u64,
    /// Of `n` frames …
    pub n: u64,
    /// … `m` are foreground.
    pub m: u64,
    /// Of stateful tests.
    pub stateful: Option<StatefulArgs>,
    /// Of `siitperf-lat`: seconds before the first tagged frame.
    pub delay: u64,
    /// Of `siitperf-lat`: tagged frames.
    pub timestamps: u64,
    /// Of `siitperf-pdv`: milliseconds after which a frame counts as lost; 0: PDV is measured.
    pub frame_timeout: u64,
}

/// The arguments that stateful tests have besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatefulArgs {
    /// N: preliminary frames.
    pub frames: u64,
    /// M: entries of the state table.
    pub entries: u64,
    /// R: preliminary frames a second.
    pub rate: u64,
    /// T: timeout of the preliminary phase, in milliseconds.
    pub timeout: u64,
    /// D: from the start of the preliminary phase to the start of the test, in milliseconds.
    pub delay: u64,
}

impl StatefulArgs {
    /// Preliminary frames in the foreground: `N - N(n-m)/n`, in whole numbers.
    pub const fn foreground(&self, n: u64, m: u64) -> u64 {
        self.frames - self.frames * (n - m) / n
    }
}

impl Args {
    /// Reads the arguments behind the program's name. Those of stateful tests come behind `n` and `m`, the program's own last.
    ///
    /// # Errors
    ///
    /// A wrong number of arguments, one outside of the original's limits, some that do not go together.
    pub fn parse(program: Program, args: &[String], conf: &Conf) -> Result<Args, InputError> {
        let names = names(program, conf);
        if args.len() != names.len() {
            return Err(InputError::Arguments {
                program: program.name(),
                found: args.len(),
                wanted: names.len(),
                usage: names.join(" "),
            });
        }
        let mut words = Words(args.iter());
        let size = words.next("IPv6 frame size", 84, 1538)?;
        let rate = words.next("frame rate", 1, MOST_RATE)?;
        let duration = words.next("duration", 1, 3600)?;
        let timeout = words.next("global timeout", 0, 60_000)?;
        let n = words.next("n", 2, u64::from(u32::MAX))?;
        let m = words.next("m", 0, n)?;
        let stateful = if conf.stateful == 0 {
            None
        } else {
            Some(StatefulArgs {
                frames: words.next("N (preliminary frames)", 1, u64::from(u32::MAX))?,
                entries: words.next("M (state table)", 1, u64::from(u32::MAX))?,
                rate: words.next("R (preliminary rate)", 1, MOST_RATE)?,
                timeout: words.next("T (preliminary timeout)", 1, 2000)?,
                delay: words.next("D (delay)", 1, 100_000_000)?,
            })
        };
        let (mut delay, mut timestamps, mut frame_timeout) = (0, 1, 0);
        match program {
            Program::Tp => {}
            Program::Lat => {
                delay = words.next("delay before timestamps", 0, 3600)?;
                timestamps = words.next("timestamps", 1, 50_000)?;
            }
            Program::Pdv => frame_timeout = words.next("frame timeout", 0, 60_000)?,
        }
        let args = Args {
            size: size as u32,
            rate,
            duration,
            timeout,
            n,
            m,
            stateful,
            delay,
            timestamps,
            frame_timeout,
        };
        args.together(program, conf)?;
        Ok(args)
    }

    fn together(&self, program: Program, conf: &Conf) -> Result<(), InputError> {
        let together = |text: String| Err(InputError::Together(text));
        let initiator = match conf.stateful {
            1 => Some(0),
            2 => Some(1),
            _ => None,
        };
        let sends_ip6 = (0..2).any(|side| {
            let sends = conf.active.get(side) == Some(&true) || initiator == Some(side);
            sends && conf.versions.get(side) == Some(&shoal_lab_plan::Family::Ip6)
        });
        if u64::from(self.size) > LARGEST_IP6 && (sends_ip6 || self.m < self.n) {
            return together(format!(
                "an IPv6 frame size of {} is for pure IPv4 traffic only; the nearest is {LARGEST_IP6}",
                self.size
            ));
        }
        if program == Program::Lat {
            if self.delay >= self.duration {
                let nearest = self.duration - 1;
                return together(format!(
                    "the delay before timestamps is {} s in a test of {} s; the nearest is {nearest}",
                    self.delay, self.duration
                ));
            }
            let frames = (self.duration - self.delay) * self.rate;
            if frames < self.timestamps {
                return together(format!(
                    "{} timestamps do not fit into {frames} frames; the nearest is {frames}",
                    self.timestamps
                ));
            }
        }
        let Some(s) = self.stateful else { return Ok(()) };
        let least = 1000 * s.frames / s.rate + s.timeout;
        if least > s.delay {
            return together(format!("D is {} ms, less than 1000*N/R+T; the nearest is {least}", s.delay));
        }
        let foreground = s.foreground(self.n, self.m);
        if foreground < s.entries {
            return together(format!(
                "M is {}, but only N-N*(n-m)/n frames are foreground; the nearest is {foreground}",
                s.entries
            ));
        }
        if conf.responder_tuples > 0 && s.entries == 1 {
            return together("`Responder-tuples` must be 0 if M is 1".to_owned());
        }
        Ok(())
    }
}

fn names(program: Program, conf: &Conf) -> Vec<&'static str> {
    let mut names = vec!["<IPv6 size>", "<rate>", "<duration s>", "<global timeout ms>", "<n>", "<m>"];
    if conf.stateful > 0 {
        names.extend(["<N>", "<M>", "<R>", "<T ms>", "<D ms>"]);
    }
    names.extend(program.own());
    names
}

/// Arguments one after the other.
struct Words<'a>(std::slice::Iter<'a, String>);

impl Words<'_> {
    fn next(&mut self, name: &'static str, min: u64, max: u64) -> Result<u64, InputError> {
        let word = self.0.next().map_or("", String::as_str);
        // What is no number at all is nearest to the smallest.
        let number = word.parse::<i128>().unwrap_or(-1);
        let near = number.clamp(min.into(), max.into());
        if near != number {
            return Err(InputError::Argument {
                name,
                value: word.to_owned(),
                min,
                max,
                nearest: near as u64,
            });
        }
        Ok(near as u64)
    }
}
