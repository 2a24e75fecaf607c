//! One line a trial.

use super::{State, TrialRow, short};

/// One line a trial.
#[derive(Debug, Default)]
pub(super) struct Lines {
    headed: bool,
}

impl Lines {
    pub(super) fn case(&mut self, state: &State) {
        let (number, of) = state.cases;
        say!("\n[{number}/{of}] {}: {}   ({})", state.test, state.case, state.left());
        self.headed = false;
    }

    pub(super) fn trial(&mut self, row: &TrialRow) {
        if !self.headed {
            say!(
                "{:>4} {:>4} {:>10} {:>12} {:>12}  {:<22} verdict",
                "run",
                "step",
                "fps/dir",
                "sent",
                "lost",
                "bracket"
            );
            self.headed = true;
        }
        let bracket = row.bracket.map_or(String::new(), |(low, high)| format!("[{low}, {high}]"));
        say!(
            "{:>4} {:>4} {:>10} {:>12} {:>12}  {bracket:<22} {}",
            row.run,
            row.step,
            short(row.rate),
            row.sent,
            row.lost,
            row.verdict
        );
    }
}
