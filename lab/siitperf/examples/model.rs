//! siitperf's programs over a model of a device that carries so many frames a second and direction: to try scripts with,
//! without network and without waiting.
//!
//! `MODEL_CAPACITY=300000 model siitperf-tp 84 250000 60 2000 2 2`, or linked as `siitperf-tp`; reads `siitperf.conf` in the
//! working directory.

use std::process::ExitCode;
use std::{env, fs};

use shoal_lab_plan::{
    Counts, Delays, Learnt, Link, Outcome, Pace, Rate, Stamps, StreamOutcome, Tester, TesterError,
    TesterFacts, Trial, Unwatched, Watch,
};
use shoal_lab_siitperf::{Options, Program, run};

/// Forwards up to a rate, each frame after the same time.
struct Model {
    /// Frames a second and direction.
    capacity: u64,
    /// In nanoseconds.
    delay: u64,
}

impl Tester for Model {
    fn facts(&self) -> TesterFacts {
        let link = Link::default();
        TesterFacts { transport: "model".to_owned(), link, smallest_ring: 1024, most_frame: 9216 }
    }

    fn run(&mut self, trial: &Trial, _: &mut dyn Watch) -> Result<Outcome, TesterError> {
        let seconds = trial.duration.as_secs_f64();
        let mut outcome = Outcome { trial: trial.id, planned: trial.duration, ..Outcome::default() };
        outcome.took = outcome.planned;
        for stream in &trial.streams {
            let (requested, rate) = match &stream.pace {
                Pace::Steady { rate, .. } => (rate.frames_in(trial.duration.as_nanos() as u64), *rate),
                Pace::Bursts { frames, rate, .. } => (*frames, rate.unwrap_or(Rate::ZERO)),
                Pace::Steps { .. } => {
                    return Err(TesterError::Impossible("the model knows no steps".to_owned()));
                }
            };
            let share = (self.capacity as f64 / rate.fps().max(1.0)).min(1.0);
            let received = (requested as f64 * share) as u64;
            let delays = match stream.stamps {
                Stamps::None => None,
                Stamps::Even { count, .. } => {
                    let tags = vec![Some(self.delay); count as usize];
                    Some(Delays {
                        count: count.into(),
                        min: self.delay,
                        max: self.delay,
                        tags,
                        ..Delays::default()
                    })
                }
                Stamps::All => {
                    let histogram = vec![(self.delay, received)];
                    Some(Delays {
                        count: received,
                        min: self.delay,
                        max: self.delay,
                        histogram,
                        ..Delays::default()
                    })
                }
            };
            outcome.streams.push(StreamOutcome {
                name: stream.name.clone(),
                from: Some(stream.from),
                size: stream.frame.len() as u32 + 4,
                expected: stream.expected,
                counts: Counts { requested, sent: requested, received, ..Counts::default() },
                delays,
                ..StreamOutcome::default()
            });
        }
        let most = (self.capacity as f64 * seconds) as u64;
        outcome.learnt =
            trial.learn.map(|(_, table)| Learnt { tuples: most.min(table.into()), ..Learnt::default() });
        Ok(outcome)
    }
}

fn main() -> ExitCode {
    let mut words: Vec<String> = env::args().collect();
    let own = words.first().and_then(|name| Program::named(name));
    words.drain(..1);
    let Some(program) = own.or_else(|| words.first().and_then(|name| Program::named(name))) else {
        eprintln!("first argument: one of {}", Program::ALL.map(Program::name).join(", "));
        return ExitCode::from(2);
    };
    if own.is_none() {
        words.drain(..1);
    }
    let conf = match fs::read_to_string("siitperf.conf") {
        Ok(conf) => conf,
        Err(error) => {
            println!("Input Error: siitperf.conf: {error}.");
            return ExitCode::from(2);
        }
    };
    let capacity = env::var("MODEL_CAPACITY").ok().and_then(|c| c.parse().ok()).unwrap_or(1_000_000);
    let mut model = Model { capacity, delay: 25_000 };
    let done = run(program, &words, &conf, &Options::default(), &mut model, &mut Unwatched);
    print!("{}", done.text);
    ExitCode::from(done.code)
}
