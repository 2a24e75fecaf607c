//! What a test cost, by the meter that the settings name.

use shoal_lab_energy::{Efficiency, EnergyError, Meter, OutletOrInlet, Raritan, Reading, Source, metric};
use shoal_lab_measure::Case;
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
pub struct Running(Meter);

impl Running {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// If the meter does not answer.
    pub fn start(source: &Source) -> Result<Self, EnergyError> {
        let mut meter = Meter::open(source)?;
        meter.start()?;
        Ok(Running(meter))
    }

    /// Ends it: the rows of what was delivered meanwhile. None if nothing was measured.
    pub fn rows(mut self, case: &Case, test: &str, packets: u64, bytes: u64) -> Vec<SummaryRow> {
        let reading = self.0.stop().unwrap_or_else(|_| Reading::not_measured(0.0));
        let efficiency = Efficiency::of(&reading, None, packets, bytes);
        [
            (metric::ENERGY, reading.wh),
            (metric::POWER, reading.watts),
            (metric::PPWH, efficiency.ppwh),
            (metric::BPWH, efficiency.bpwh),
        ]
        .into_iter()
        .filter_map(|((metric, unit), value)| {
            let mut row = case.row(test, metric, unit, vec![value?]);
            row.note = format!("{}; of the whole test, waits included", reading.scope);
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
        let running = Running::start(&Source::None).unwrap();
        assert!(running.rows(&Case::default(), "thesis", 1_000, 64_000).is_empty());
    }
}
