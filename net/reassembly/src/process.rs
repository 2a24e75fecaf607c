//! The expire walks: fragments whose datagram never becomes whole are let go, packets or not.

use std::rc::Rc;
use std::time::Duration;

use shoal_graph::process::Processes;

use crate::control::{Kind, Reassembly, Version};

/// Looks again and again, as often as the settings say.
pub async fn expire_walk(reassembly: Rc<Reassembly>, processes: Rc<Processes>, version: Version, kind: Kind) {
    loop {
        let interval = reassembly.settings(version, kind).expire_walk_interval_ms;
        processes.sleep(Duration::from_millis(u64::from(interval))).await;
        reassembly.walk(version, kind);
    }
}
