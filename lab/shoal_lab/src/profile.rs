//! TRex profiles: a case whose streams a Python file describes.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shoal_lab_frame as frame;
use shoal_lab_measure::{
    Estimate, MeasureError, Offer, Report, Runner, Test, Traffic, TrialProcedure, TrialSpec, repeat,
};
use shoal_lab_plan::{Link, Scenario, Side, Stream};
use shoal_lab_stl as stl;

use crate::cases::{Case, Direction};

/// A profile and its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The file, or the name of one of the lab's own.
    pub path: PathBuf,
    /// `size=64,vm=var2`, or `--size 64 --vm var2`.
    pub tunables: String,
    /// What its rates are scaled to.
    pub port_rate: Option<String>,
}

/// The profile's streams for a trial of `duration`, with notes on what is not as T-Rex would send it.
///
/// # Errors
///
/// Whatever is wrong with the profile, in the words of crate `stl`.
pub fn streams(
    profile: &Profile,
    direction: Direction,
    macs: Option<frame::Macs>,
    link: Link,
    duration: Duration,
) -> Result<stl::Converted, String> {
    let mut sending = stl::Sending::new(duration);
    sending.link = link;
    if let Some(rate) = &profile.port_rate {
        sending.port_rate = Some(rate.parse().map_err(|e| format!("--port-rate {rate}: {e}"))?);
    }
    if let Some(macs) = macs {
        sending.macs = Side::BOTH
            .map(|side| stl::Macs { source: macs.source(side), destination: macs.destination(side) });
    }
    let direction = match direction {
        Direction::Forward => stl::Direction::Forward,
        Direction::Reverse => stl::Direction::Reverse,
        Direction::Both => stl::Direction::Both,
    };
    let load = stl::Load { tunables: profile.tunables.clone(), ..stl::Load::default() };
    stl::both_sides(&profile.path, direction, &load, &sending).map_err(|e| e.to_string())
}

/// Adds routes for where the profile's frames go. A profile that cannot be loaded adds none: its error is told later, when its
/// streams are wanted.
pub fn add_routes(case: &Case, scenario: &mut Scenario) {
    let Some(profile) = &case.profile else { return };
    let Ok(made) = streams(profile, case.direction, None, Link::default(), Duration::from_secs(1)) else {
        return;
    };
    for network in stl::networks(&made.streams) {
        let behind = match network.from {
            Side::Left => &mut scenario.addresses.right,
            Side::Right => &mut scenario.addresses.left,
        };
        match network.destinations {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                let length = (first.to_bits() ^ last.to_bits()).leading_zeros().min(24);
                let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                let route = ((first.to_bits() & mask).into(), length as u8);
                if !behind.behind4.contains(&route) {
                    behind.behind4.push(route);
                }
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => {
                let length = (first.to_bits() ^ last.to_bits()).leading_zeros().min(64);
                let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
                let route = ((first.to_bits() & mask).into(), length as u8);
                if !behind.behind6.contains(&route) {
                    behind.behind6.push(route);
                }
            }
            _ => {}
        }
    }
}

/// The profile as it is, for the conduct's time, as often as it says.
pub struct AsIs;

impl Test for AsIs {
    fn name(&self) -> &'static str {
        "stl"
    }

    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        Estimate::of(conduct, 1, conduct.duration).times(conduct.runs)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let (runs, duration) = (runner.conduct.runs, runner.conduct.duration);
        let shown = repeat(runner, self.name(), runs, |runner| {
            let streams: Vec<Stream> = traffic.streams(&Offer::steady(1))?;
            runner.trial(&TrialSpec::new(streams, 0.0, duration).overloaded())
        })?;
        let seconds = duration.as_secs_f64();
        let mut rows = Vec::new();
        let names: Vec<String> = shown
            .values
            .first()
            .map(|s| s.outcome.streams.iter().map(|s| s.name.clone()).collect())
            .unwrap_or_default();
        for (index, name) in names.iter().enumerate() {
            let of = |number: &dyn Fn(&shoal_lab_plan::StreamOutcome) -> f64| {
                shown
                    .values
                    .iter()
                    .filter_map(|s| s.outcome.streams.get(index))
                    .map(number)
                    .collect::<Vec<f64>>()
            };
            let mut add = |metric: &str, unit: &str, values: Vec<f64>| {
                let mut row = runner.row(metric, unit, values);
                row.variant.clone_from(name);
                rows.push(row);
            };
            add("sent", "fps", of(&|s| s.counts.sent as f64 / seconds));
            add("received", "fps", of(&|s| s.counts.received as f64 / seconds));
            add("loss", "%", of(&|s| 100.0 * s.counts.loss()));
            let is_measured =
                shown.values.iter().any(|s| s.outcome.streams.get(index).is_some_and(|s| s.delays.is_some()));
            if is_measured {
                add("mean latency", "us", of(&|s| s.delays.as_ref().map_or(0.0, |d| d.mean / 1e3)));
                add("max latency", "us", of(&|s| s.delays.as_ref().map_or(0.0, |d| d.max as f64 / 1e3)));
                add("jitter", "us", of(&|s| s.delays.as_ref().map_or(0.0, |d| d.jitter / 1e3)));
            }
        }
        Ok(Report { rows, ended: shown.ended })
    }
}
