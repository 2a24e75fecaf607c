//! `start` and `stop`, and the thread between them.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::integral::{Gaps, watt_hours};
use crate::source::{Look, Probe};
use crate::{EnergyError, PowerSample, Reading, Source};

/// Time between two looks: the seed's meters renew their figures once a second.
const EVERY: Duration = Duration::from_secs(1);

/// A power meter.
pub struct Meter {
    name: &'static str,
    every: Duration,
    state: State,
}

enum State {
    Idle(Option<Box<dyn Probe>>),
    Nothing(Instant),
    Running { stop: Sender<()>, thread: JoinHandle<(Box<dyn Probe>, Reading)> },
}

impl Meter {
    /// Opens a source; of a network meter nothing is asked yet.
    ///
    /// # Errors
    ///
    /// If the source cannot exist here: no RAPL domains, an agent's name without address, an empty command.
    pub fn open(source: &Source) -> Result<Self, EnergyError> {
        Ok(Meter { name: source.name(), every: EVERY, state: State::Idle(source.probe()?) })
    }

    /// Looks more or less often than once a second. RAPL counters wrap within minutes at full load: stay below 30 s.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every.clamp(Duration::from_millis(1), Duration::from_secs(30));
        self
    }

    /// Begins. The first look is made before this returns, so that a meter that does not work is known before a trial.
    ///
    /// # Errors
    ///
    /// If the first look fails (the meter can then be started again), or it is running already.
    pub fn start(&mut self) -> Result<(), EnergyError> {
        let idle = match &mut self.state {
            State::Idle(idle) => idle,
            State::Nothing(_) | State::Running { .. } => {
                return Err(EnergyError::Order("is running already"));
            }
        };
        let Some(probe) = idle else {
            self.state = State::Nothing(Instant::now());
            return Ok(());
        };
        let began = Instant::now();
        let first = probe.look()?;
        let counter = probe.counter();
        let Some(probe) = idle.take() else { return Ok(()) };
        let (stop, stopped) = mpsc::channel();
        let watch = Watch { name: self.name, every: self.every, began, first, counter };
        let thread = thread::Builder::new()
            .name("energy".into())
            .spawn(move || watch.run(probe, &stopped))
            .map_err(|e| EnergyError::Thread(format!("did not start: {e}")))?;
        self.state = State::Running { stop, thread };
        Ok(())
    }

    /// Makes a last look and sums up. The meter can be started again.
    ///
    /// # Errors
    ///
    /// If it is not running. Looks that failed are gaps of the reading, not errors.
    pub fn stop(&mut self) -> Result<Reading, EnergyError> {
        match std::mem::replace(&mut self.state, State::Idle(None)) {
            State::Nothing(began) => Ok(Reading::not_measured(began.elapsed().as_secs_f64())),
            State::Idle(probe) => {
                self.state = State::Idle(probe);
                Err(EnergyError::Order("is not running"))
            }
            State::Running { stop, thread } => {
                drop(stop);
                let (probe, reading) =
                    thread.join().map_err(|_| EnergyError::Thread("ended by itself".into()))?;
                self.state = State::Idle(Some(probe));
                Ok(reading)
            }
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if matches!(self.state, State::Running { .. }) {
            let _ended = self.stop();
        }
    }
}

/// What the thread begins with.
struct Watch {
    name: &'static str,
    every: Duration,
    began: Instant,
    first: Look,
    counter: Option<f64>,
}

impl Watch {
    fn run(self, mut probe: Box<dyn Probe>, stopped: &mpsc::Receiver<()>) -> (Box<dyn Probe>, Reading) {
        let mut sum = Sum::default();
        sum.add(0.0, Ok(self.first));
        let mut next = self.began + self.every;
        loop {
            let now = Instant::now();
            let wait = next.saturating_duration_since(now);
            let last = !matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
            let look = probe.look();
            sum.add(self.began.elapsed().as_secs_f64(), look);
            if last {
                break;
            }
            // A slow look makes the next one late; it never makes two in a row to catch up.
            next = (next + self.every).max(Instant::now());
        }
        let end = probe.counter();
        let reading = sum.reading(self.name, probe.scope(), self.counter.zip(end));
        (probe, reading)
    }
}

#[derive(Default)]
struct Sum {
    samples: Vec<PowerSample>,
    joules: Option<f64>,
    gaps: Gaps,
    last_at: f64,
    last_good: f64,
}

impl Sum {
    fn add(&mut self, at: f64, look: Result<Look, EnergyError>) {
        match look {
            Ok(Look::Watts(watts)) => self.samples.push(PowerSample { at, watts }),
            Ok(Look::Joules(joules)) => {
                let time = at - self.last_good;
                if time > 0.0 {
                    self.samples.push(PowerSample { at, watts: joules / time });
                }
                *self.joules.get_or_insert(0.0) += joules;
            }
            Err(why) => {
                self.gaps.bad(why.to_string());
                self.last_at = at;
                return;
            }
        }
        self.gaps.good(at);
        self.last_at = at;
        self.last_good = at;
    }

    fn reading(self, name: &str, scope: String, counter: Option<(f64, f64)>) -> Reading {
        let mut reading =
            Reading { source: name.into(), scope, seconds: self.last_good, ..Reading::default() };
        if self.last_good > 0.0 {
            let wh = self.joules.map_or_else(|| watt_hours(&self.samples), |j| j / 3600.0);
            reading.wh = Some(wh);
            reading.watts = Some(wh * 3600.0 / self.last_good);
        } else {
            reading.notes.push("not one look after the first succeeded: no figure".into());
        }
        if let Some((before, after)) = counter {
            check(&mut reading, before, after);
        }
        reading.samples = self.samples;
        reading.gaps = self.gaps.finish(self.last_at);
        if !reading.gaps.is_empty() {
            let lost: f64 = reading.gaps.iter().map(|g| g.to - g.from).sum();
            reading.notes.push(format!("{lost:.1} s of {:.1} s were not seen by the meter", self.last_at));
        }
        reading
    }
}

/// Sets the counter's figure beside the integral. Counters of whole watt-hours are coarse: one step is always allowed.
fn check(reading: &mut Reading, before: f64, after: f64) {
    if after < before {
        reading.notes.push(format!("the energy counter went back from {before} to {after} Wh: not compared"));
        return;
    }
    let counted = after - before;
    reading.counter_wh = Some(counted);
    if let Some(wh) = reading.wh
        && (wh - counted).abs() > 1.0 + 0.05 * wh.max(counted)
    {
        reading
            .notes
            .push(format!("the energy counter says {counted:.2} Wh, the integral of power {wh:.2} Wh"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_source_is_not_measured_and_not_zero() {
        let mut meter = Meter::open(&Source::None).unwrap();
        meter.start().unwrap();
        let reading = meter.stop().unwrap();
        assert_eq!((reading.wh, reading.watts, reading.source.as_str()), (None, None, "none"));
        assert!(!reading.is_measured());
    }

    #[test]
    fn stop_without_start_and_start_twice_are_errors_that_leave_it_usable() {
        let mut meter = Meter::open(&Source::None).unwrap();
        assert!(matches!(meter.stop(), Err(EnergyError::Order("is not running"))));
        meter.start().unwrap();
        assert!(matches!(meter.start(), Err(EnergyError::Order("is running already"))));
        meter.stop().unwrap();
    }

    #[test]
    fn a_counter_that_went_back_is_told_and_not_compared() {
        let mut reading = Reading { wh: Some(5.0), ..Reading::default() };
        check(&mut reading, 1000.0, 3.0);
        assert_eq!(reading.counter_wh, None);
        assert!(reading.notes[0].contains("went back from 1000 to 3"), "{:?}", reading.notes);
    }

    #[test]
    fn a_counter_of_whole_watt_hours_does_not_contradict_but_a_wrong_one_does() {
        let mut coarse = Reading { wh: Some(5.7), ..Reading::default() };
        check(&mut coarse, 1000.0, 1005.0);
        assert!(coarse.notes.is_empty(), "{:?}", coarse.notes);
        let mut wrong = Reading { wh: Some(5.7), ..Reading::default() };
        check(&mut wrong, 1000.0, 1010.0);
        assert!(wrong.notes[0].contains("10.00 Wh"), "{:?}", wrong.notes);
    }

    #[test]
    fn looks_that_all_fail_give_gaps_and_no_figure() {
        let mut sum = Sum::default();
        sum.add(0.0, Ok(Look::Watts(100.0)));
        sum.add(1.0, Err(EnergyError::Order("x")));
        sum.add(2.0, Err(EnergyError::Order("y")));
        let reading = sum.reading("command", String::new(), None);
        assert_eq!(reading.wh, None);
        assert_eq!((reading.gaps.len(), reading.gaps[0].to), (1, 2.0));
        assert!(reading.notes.iter().any(|n| n.contains("2.0 s of 2.0 s")), "{:?}", reading.notes);
    }
}
