//! What rebuilds the limits of ICMP errors.

use shoal_module::{Control, Phase, Running};

use crate::limiter::Rate;
use crate::{Icmp, Icmp6};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let four = running.part::<Icmp>(control).map(|icmp| icmp.rate());
    let six = running.part::<Icmp6>(control).map(|icmp| icmp.rate());
    for (family, rate) in [("ip", four), ("ip6", six)] {
        if let Some(Rate { per_second, burst }) = rate
            && rate != Some(Rate::default())
        {
            let line = format!("set {family} icmp rate-limit {per_second} burst {burst}");
            running.line(Phase::System, line);
        }
    }
}
