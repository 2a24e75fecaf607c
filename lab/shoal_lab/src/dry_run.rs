//! What would be done, without doing it: devices, their commands, frames, time.

use shoal_lab_measure::{Estimate, Offer, Traffic, spoken};

use crate::campaign::Campaign;
use crate::cases::Case;
use crate::convergence;
use crate::replay;
use crate::switching;
use crate::test_bed::{dut_settings, scenario};
use crate::traffic::CaseTraffic;

/// Prints it.
pub fn print(campaign: &Campaign, estimate: Estimate) {
    let (about, most) = (spoken(estimate.time), spoken(estimate.promise()));
    say!("{} results, about {about}, at most {most}", campaign.cases.len());
    let conduct = &campaign.conduct;
    say!(
        "trials of which others take more than {:.1} % of a processor: {}",
        conduct.most_taken * 100.0,
        conduct.when_disturbed.name()
    );
    for (case, number) in campaign.cases.iter().zip(1..) {
        if let Some(wanted) = &case.convergence {
            say!("\n[{number}] {}: {}, {}", case.test, case.dut, wanted.variant());
            say_as_is!("{}", convergence::dry_run(case, &campaign.settings));
        } else if case.replay.is_some() {
            say!("\n[{number}] {}: {} in one process, without a wire", case.test, case.dut);
            say_as_is!("{}", replay::dry_run(case, &campaign.settings.dut.replay));
        } else {
            say!(
                "\n[{number}] {}: {} ({}), ip{} {} {}, {} worker(s) {}",
                case.test,
                case.dut,
                case.forwarding,
                case.ip.name(),
                case.frames.name(),
                case.direction.name(),
                case.workers,
                case.variant()
            );
            of_device(campaign, case);
        }
    }
}

fn of_device(campaign: &Campaign, case: &Case) {
    let scenario = scenario(case, &campaign.settings);
    match shoal_lab_dut::device(&case.dut, &dut_settings(&campaign.settings)) {
        Err(error) => say!("  {error}"),
        Ok(device) => {
            if let Err(reason) = device.available(&scenario) {
                say!("  skipped: {reason}");
            }
            let best = device.transports();
            say!("  wire: {}", case.transport.as_deref().or(best.first().copied()).unwrap_or("none"));
            if let Some(base) = &case.base {
                say!("  in turns with {}", base.display());
            }
            for command in device.describe().commands {
                say!("  $ {command}");
            }
        }
    }
    let duration = campaign.conduct.duration;
    let streams = if switching::is_learning(&case.test) {
        switching::streams(case, &scenario, &campaign.settings)
    } else {
        CaseTraffic::new(case, &scenario, None, &campaign.settings, duration)
            .and_then(|traffic| traffic.streams(&Offer::steady(1)))
    };
    match streams {
        Err(error) => say!("  frames: {error}"),
        Ok(streams) => {
            for stream in streams {
                say!("  {} ({} B with FCS): {}", stream.name, stream.frame.len() + 4, hex(&stream.frame));
            }
        }
    }
}

/// The start of a frame: headers and tag.
fn hex(frame: &[u8]) -> String {
    let shown: Vec<String> = frame.iter().take(80).map(|b| format!("{b:02x}")).collect();
    let more = if frame.len() > 80 { " ..." } else { "" };
    format!("{}{more}", shown.join(" "))
}
