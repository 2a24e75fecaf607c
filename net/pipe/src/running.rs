//! What rebuilds pipes.

use shoal_interface::Interfaces;
use shoal_module::{Control, Running};

use crate::{Pipe, Pipes};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(pipes) = running.part::<Pipes>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for Pipe { index, ends, instance } in pipes.list() {
        let Ok(name) = interfaces.name(index) else { continue };
        let line = format!("pipe create instance {instance}");
        interfaces.write_create(running, index, line, &format!("pipe{instance}"));
        // Ends are called after their pipe, also after its new name.
        for (number, end) in ends.into_iter().enumerate() {
            interfaces.write_name(running, end, &format!("{name}.{number}"));
        }
    }
}
