//! What rebuilds it. Sessions are bfdd's, which asks for them again.

use shoal_lcp::DaemonAddress;
use shoal_module::{Control, Phase, Running, word};

use crate::{Dataplane, Meeting};

pub(crate) fn running(control: &Control, running: &mut Running) {
    // Without linux-cp there is none, and nothing to say of it.
    let Ok(plane) = control.get::<Dataplane>() else { return };
    let Some(meeting) = plane.meeting() else { return };
    let word_of = if matches!(meeting, Meeting::Listen(_)) { "listen" } else { "connect" };
    let DaemonAddress { at, netns } = meeting.address();
    let netns = netns.as_ref().map(|netns| format!(" netns {}", word(netns))).unwrap_or_default();
    // Behind the interfaces and images of linux-cp.
    running.line(Phase::Policies, format!("bfd dataplane {word_of} {at}{netns}"));
}
