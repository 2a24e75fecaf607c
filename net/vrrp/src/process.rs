//! Received advertisements go to the control plane, and routes that are tracked are looked at.

use std::rc::Rc;
use std::time::Duration;

use shoal_graph::process::{Processes, Receiver};
use shoal_module::cli::Pace;

use crate::Vrrp;
use crate::node::ReceivedAdvertisement;

/// How often routes that are tracked are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How often it is looked whether there are any.
const IDLE: Duration = Duration::from_secs(1);

/// Takes each advertisement that came.
pub(crate) async fn listen(vrrp: Rc<Vrrp>, heard: Receiver<ReceivedAdvertisement>) {
    let pace = Pace::default();
    while let Ok(heard) = heard.recv().await {
        vrrp.hear(&heard);
        pace.give_way().await;
    }
}

/// Looks at routes that are tracked.
pub(crate) async fn routes(vrrp: Rc<Vrrp>, processes: Rc<Processes>) {
    loop {
        vrrp.look_at_routes();
        processes.sleep(if vrrp.tracks_routes() { LOOK } else { IDLE }).await;
    }
}
