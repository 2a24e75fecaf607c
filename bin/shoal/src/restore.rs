//! What was saved, run at the start.

use std::rc::Rc;

use shoal_cli::Cli;
use shoal_module::Control;
use shoal_running::{Configuration, Restoring, Saved};

/// Failures that are reported one by one; a file with more is something else, and the log has other things to say.
const MOST_TOLD: usize = 100;

/// What was saved, if anything was and can be read. Until it was run, nothing takes its place.
pub fn saved(control: &Control) -> Option<(Saved, Restoring)> {
    let configuration = control.get::<Configuration>().ok()?;
    configuration.restore().unwrap_or_else(|error| {
        tracing::error!("what was saved is not restored: {error}");
        None
    })
}

/// Runs it. What fails is in the log with the number of its line; the rest runs all the same, so that as much as
/// possible of the router is there.
pub async fn run(cli: &Cli, control: &Rc<Control>, (saved, restoring): (Saved, Restoring)) {
    if saved.cut {
        let lines = saved.text.lines().count();
        tracing::error!(
            "startup.cli is cut off behind line {lines}: what was there is lost, `revisions' has copies"
        );
    }
    let (mut lines, mut failed) = (0, 0);
    cli.run_all(control, &saved.text, |line, reply| {
        lines += 1;
        if reply.is_ok() {
            return;
        }
        failed += 1;
        restoring.failed();
        if failed <= MOST_TOLD {
            let text = reply.text();
            text.lines().filter(|l| !l.is_empty()).for_each(|l| tracing::error!("startup.cli:{line}: {l}"));
        }
    })
    .await;
    if failed > 0 {
        tracing::error!("startup.cli: {failed} of {lines} commands failed");
    } else {
        tracing::info!("startup.cli: {lines} commands restored");
    }
}
