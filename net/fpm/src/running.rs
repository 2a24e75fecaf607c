//! What rebuilds it.

use shoal_module::{Control, Phase, Running, word};

use crate::{Fpm, Listen};

pub(crate) fn running(control: &Control, running: &mut Running) {
    // Without linux-cp there is none, and nothing to say of it.
    let Ok(fpm) = control.get::<Fpm>() else { return };
    let now = fpm.listening();
    if now == fpm.listening_at_start() {
        return;
    }
    let line = match now {
        None => "fpm listen off".to_owned(),
        Some(Listen { at, netns }) => {
            let netns = netns.map(|netns| format!(" netns {}", word(&netns))).unwrap_or_default();
            format!("fpm listen {at}{netns}")
        }
    };
    // Behind the interfaces and images of linux-cp.
    running.line(Phase::Policies, line);
}
