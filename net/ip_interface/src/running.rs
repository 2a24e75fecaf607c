//! What rebuilds which interfaces borrow addresses. Addresses are saved by their families.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::lender;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    for index in interfaces.indices() {
        let lender = lender(control, index).and_then(|lender| interfaces.name(lender).ok());
        if let (Ok(name), Some(lender)) = (interfaces.name(index), lender) {
            let line = format!("set interface unnumbered {} use {}", word(&name), word(&lender));
            // Before the tables: those of the two may differ by now, but not when one begins to borrow.
            running.line_at(Phase::Settings, 0, line);
        }
    }
}
