//! What rebuilds devices that operators attached.

use shoal_interface::Interfaces;
use shoal_module::{Control, Running};

use super::Devices;

pub(crate) fn running(control: &Control, running: &mut Running) {
    // Without a plugin that drives devices there are none.
    let Ok(devices) = control.get::<Devices>() else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for device in devices.list() {
        match device.words {
            Some(words) => {
                let line = format!("{} attach {words}", device.driver);
                interfaces.write_create(running, device.index, line, &device.made_as);
            }
            // The start-up file makes it.
            None => interfaces.write_name(running, device.index, &device.made_as),
        }
    }
}
