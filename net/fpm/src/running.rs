//! What rebuilds it.

use shoal_module::{Control, Phase, Running};

use crate::Fpm;

pub(crate) fn running(control: &Control, running: &mut Running) {
    // Without linux-cp there is none, and nothing to say of it.
    let Ok(fpm) = control.get::<Fpm>() else { return };
    let now = fpm.listening();
    if now == fpm.listening_at_start() {
        return;
    }
    let line = match now {
        None => "fpm listen off".to_owned(),
        Some(listen) => format!("fpm listen {listen}"),
    };
    // Behind the interfaces and images of linux-cp.
    running.line(Phase::Policies, line);
}
