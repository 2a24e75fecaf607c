//! What rebuilds it. Sessions are bfdd's, which asks for them again.

use shoal_module::{Control, Phase, Running};

use crate::{Dataplane, Meeting};

pub(crate) fn running(control: &Control, running: &mut Running) {
    // Without linux-cp there is none, and nothing to say of it.
    let Ok(plane) = control.get::<Dataplane>() else { return };
    let Some(meeting) = plane.meeting() else { return };
    let how = if matches!(meeting, Meeting::Listen(_)) { "listen" } else { "connect" };
    // Behind the interfaces and images of linux-cp.
    running.line(Phase::Policies, format!("bfd dataplane {how} {}", meeting.address()));
}
