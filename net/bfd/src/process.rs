//! What threads leave for the control plane.

use std::rc::Rc;

use shoal_graph::process::Receiver;
use shoal_module::cli::Pace;

use crate::Bfd;

/// Takes each message of a channel, and lets others work in between.
pub(crate) async fn take<T>(bfd: Rc<Bfd>, heard: Receiver<T>, take: impl Fn(&Bfd, T)) {
    let pace = Pace::default();
    while let Ok(message) = heard.recv().await {
        take(&bfd, message);
        pace.give_way().await;
    }
}
