//! Received packets go to the control plane.

use std::rc::Rc;

use shoal_graph::process::Receiver;
use shoal_module::cli::Pace;

use crate::Bfd;
use crate::node::{ECHO, ReceivedPacket};

/// Takes each packet that came.
pub(crate) async fn listen(bfd: Rc<Bfd>, heard: Receiver<ReceivedPacket>) {
    let pace = Pace::default();
    while let Ok(packet) = heard.recv().await {
        if packet.port == ECHO {
            bfd.hear_echo(&packet);
        } else {
            bfd.hear(&packet);
        }
        pace.give_way().await;
    }
}
