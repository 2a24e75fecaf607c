//! What a test cost, by the meter that the settings name.

use std::time::Duration;

use shoal_lab_energy::{Efficiency, EnergyError, Meter, OutletOrInlet, Raritan, Reading, Source, metric};
use shoal_lab_measure::{Case, Time as _, WallTime};
use shoal_lab_plan::SummaryRow;

/// A source from words: `none`, `rapl`, `command:PROGRAM ARGUMENTS`, `snmp-raritan:COMMUNITY@HOST:PORT/OUTLET`.
///
/// # Errors
///
/// What it should have been.
pub fn source(text: &str) -> Result<Source, String> {
    let forms = "none, rapl, command:PROGRAM, or snmp-raritan:COMMUNITY@HOST:PORT/OUTLET";
    match text.split_once(':') {
        None if text == "none" => Ok(Source::None),
        None if text == "rapl" => Ok(Source::Rapl { folder: "/sys/class/powercap".into() }),
        Some(("command", command)) if !command.trim().is_empty() => Ok(Source::Command {
            argv: command.split_whitespace().map(ToOwned::to_owned).collect(),
            limit_ms: 800,
        }),
        Some(("snmp-raritan", at)) => {
            let parts = at.split_once('@').and_then(|(community, rest)| {
                let (agent, outlet) = rest.rsplit_once('/')?;
                Some((community, agent, outlet.parse().ok()?))
            });
            let (community, agent, outlet) =
                parts.ok_or_else(|| format!("energy source {text}: must be {forms}"))?;
            let agent = if agent.contains(':') { agent.to_owned() } else { format!("{agent}:161") };
            Ok(Source::SnmpRaritan(Raritan {
                agent,
                community: community.to_owned(),
                pdu: 1,
                at: OutletOrInlet::Outlet(outlet),
                try_ms: 400,
            }))
        }
        _ => Err(format!("energy source {text}: must be {forms}")),
    }
}

/// A meter that runs from here until [`Running::rows`].
pub struct Running {
    meter: Meter,
    /// What the device takes when it does nothing.
    idle: Option<Reading>,
    /// Seconds since 1970 at the start.
    began: f64,
}

impl Running {
    /// Measures for `idle` what the device takes at rest, if there is a meter, and goes on.
    ///
    /// # Errors
    ///
    /// If the meter does not answer.
    pub fn start(source: &Source, idle: Duration) -> Result<Self, EnergyError> {
        let mut meter = Meter::open(source)?;
        if matches!(source, Source::Rapl { .. }) {
            // Its looks cost nothing, and the windows that it is asked of may be short.
            meter = meter.every(Duration::from_millis(100));
        }
        let mut rest = None;
        if !matches!(source, Source::None) {
            meter.start()?;
            std::thread::sleep(idle);
            rest = Some(meter.stop()?).filter(Reading::is_measured);
        }
        meter.start()?;
        Ok(Running { meter, idle: rest, began: WallTime.now() })
    }

    /// Ends it: the rows of what was delivered meanwhile, for the energy taken while frames were sent: `windows`, in seconds
    /// since 1970. None if nothing was measured.
    pub fn rows(
        mut self,
        case: &Case,
        test: &str,
        windows: &[(f64, f64)],
        packets: u64,
        bytes: u64,
    ) -> Vec<SummaryRow> {
        let whole = self.meter.stop().unwrap_or_else(|_| Reading::not_measured(0.0));
        let windows: Vec<(f64, f64)> =
            windows.iter().map(|(from, to)| (from - self.began, to - self.began)).collect();
        let reading = whole.within(&windows);
        let efficiency = Efficiency::of(&reading, self.idle.as_ref(), packets, bytes);
        let idle =
            self.idle.as_ref().and_then(|idle| idle.watts).map(|watts| format!("; {watts:.1} W when idle"));
        [
            (metric::ENERGY, reading.wh),
            (metric::POWER, reading.watts),
            (metric::PPWH, efficiency.ppwh),
            (metric::BPWH, efficiency.bpwh),
            (metric::PPWH_ABOVE_IDLE, efficiency.ppwh_above_idle),
            (metric::BPWH_ABOVE_IDLE, efficiency.bpwh_above_idle),
        ]
        .into_iter()
        .filter_map(|((metric, unit), value)| {
            let mut row = case.row(test, metric, unit, vec![value.filter(|v| v.is_finite() && *v > 0.0)?]);
            row.note =
                format!("{}; while frames were sent{}", reading.scope, idle.as_deref().unwrap_or_default());
            Some(row)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_given_in_words() {
        assert!(matches!(source("none"), Ok(Source::None)));
        assert!(matches!(source("rapl"), Ok(Source::Rapl { .. })));
        assert!(matches!(source("command:meter -w"), Ok(Source::Command { argv, .. }) if argv.len() == 2));
        let Ok(Source::SnmpRaritan(at)) = source("snmp-raritan:public@192.0.2.7/3") else {
            panic!("no source")
        };
        assert_eq!((at.agent.as_str(), at.community.as_str()), ("192.0.2.7:161", "public"));
        for wrong in ["", "watts", "command:", "snmp-raritan:host", "snmp-raritan:c@h/x"] {
            assert!(source(wrong).unwrap_err().contains("must be"), "{wrong}");
        }
    }

    #[test]
    fn without_a_meter_there_is_no_row() {
        let running = Running::start(&Source::None, Duration::from_mins(1)).unwrap();
        assert!(running.rows(&Case::default(), "thesis", &[(0.0, 1.0)], 1_000, 64_000).is_empty());
    }

    #[test]
    fn a_program_is_asked_while_frames_are_sent_and_before() {
        let source = source("command:echo 120").unwrap();
        let running = Running::start(&source, Duration::from_millis(50)).unwrap();
        let from = WallTime.now();
        std::thread::sleep(Duration::from_millis(200));
        let rows = running.rows(&Case::default(), "thesis", &[(from, from + 0.1)], 1_000_000, 64_000_000);
        let of = |metric: &str| rows.iter().find(|row| row.metric == metric).map(|row| row.values[0]);
        assert!((of("power").unwrap() - 120.0).abs() < 1e-6, "{rows:?}");
        // Seconds since 1970 are exact to a quarter of a microsecond.
        assert!((of("energy").unwrap() - 120.0 * 0.1 / 3600.0).abs() < 1e-6);
        // As much as at rest: nothing above it, and no row that says so with a division by nothing.
        assert_eq!(of("PPWh_above_idle"), None);
        assert!(rows[0].note.ends_with("while frames were sent; 120.0 W when idle"), "{}", rows[0].note);
    }
}
