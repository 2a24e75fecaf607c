//! A tester that knows who had the processors during each trial.

use shoal_lab_plan::{Outcome, Tester, TesterError, TesterFacts, Trial, Watch};

use super::look::{Look, Whose};

/// A tester that looks before and after each trial, outside the time in which it sends.
pub struct Accounted {
    tester: Box<dyn Tester>,
    cores: Vec<usize>,
}

impl Accounted {
    /// `tester`, of which and of whose device the threads run on `cores`.
    pub fn new(tester: Box<dyn Tester>, cores: Vec<usize>) -> Self {
        Accounted { tester, cores }
    }
}

impl Tester for Accounted {
    fn facts(&self) -> TesterFacts {
        self.tester.facts()
    }

    fn run(&mut self, trial: &Trial, watch: &mut dyn Watch) -> Result<Outcome, TesterError> {
        let whose = Whose::mine(self.cores.clone());
        let before = Look::take(&whose);
        let outcome = self.tester.run(trial, watch)?;
        let processors = before.knows(&whose).then(|| Look::take(&whose).since(&before, &whose));
        Ok(Outcome { processors, ..outcome })
    }
}
