//! What rebuilds what the host gets.

use shoal_fib::{Family, Fib, Path, Via, via};
use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::{Punt, Rx};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(punt) = running.part::<Punt>(control) else { return };
    let Some(fib) = running.part::<Fib>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for registered in punt.registered() {
        let (family, l4) = (registered.family, crate::cli::words(registered.l4));
        running.line(Phase::Policies, format!("set punt {family} {l4}"));
    }
    for (family, command) in [(Family::Ip4, "ip punt"), (Family::Ip6, "ip6 punt")] {
        if let Some(rate) = punt.rate(family) {
            let line = format!("{command} policer add rate {} burst {}", rate.per_second, rate.burst);
            running.line(Phase::Policies, line);
        }
        for redirect in punt.redirects(family) {
            let rx = match redirect.rx {
                Rx::All => "all".to_owned(),
                Rx::Interface(index) => match interfaces.name(index) {
                    Ok(name) => word(&name).into_owned(),
                    Err(_) => continue,
                },
            };
            let leads = |path: &Path| {
                matches!(path.via, Via::NextHop { .. } | Via::Recursive { .. } | Via::Attached { .. })
            };
            let paths: Vec<Path> = redirect.paths.iter().copied().filter(leads).take(1).collect();
            let to = via(&fib, &interfaces, (family, 0), &paths);
            // With its interface a way has gone, and no command says that packets go nowhere.
            if to.is_empty() {
                continue;
            }
            running.line(Phase::Policies, format!("{command} redirect add rx {rx}{to}"));
        }
    }
}
