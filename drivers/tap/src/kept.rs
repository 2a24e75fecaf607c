//! Images that outlive the router's process: the service manager keeps a queue of each open while the router is started again, so that
//! programs of Linux see neither an interface nor a carrier go. `docs/decisions/0018` says how.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};

use sd_notify::NotifyState;

use crate::netns::{self, run_in};
use crate::sys::inherited;
use crate::{NetnsRef, Tap, host};

/// What names of descriptors begin with that are images'.
const PREFIX: &str = "tap/";
/// Longest name that the service manager takes (`FDNAME=`).
const LONGEST: usize = 255;

/// How the service manager knows an image; nothing if it cannot be named to it.
fn label(netns: Option<&NetnsRef>, name: &str) -> Option<String> {
    let netns = match netns {
        None => "",
        Some(NetnsRef::Name(netns)) => netns,
        Some(NetnsRef::Pid(_) | NetnsRef::Path(_)) => return None,
    };
    let label = format!("{PREFIX}{netns}/{name}");
    let fits = |byte: u8| (b' '..0x7f).contains(&byte) && byte != b':';
    (label.len() <= LONGEST && label.bytes().all(fits)).then_some(label)
}

/// The service manager keeps an image no longer.
fn release(label: &str) {
    if let Err(error) = sd_notify::notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(label)]) {
        tracing::warn!(%error, "the service manager does not hear of {label}");
    }
}

/// Images of an earlier process that no pair has asked for yet.
pub(crate) struct KeptImages(RefCell<BTreeMap<String, OwnedFd>>);

impl KeptImages {
    /// What the service manager hands over.
    pub(crate) fn inherited() -> Self {
        KeptImages(RefCell::new(inherited::take(PREFIX).into_iter().collect()))
    }

    /// Whether an image is there from an earlier process. The service manager goes on keeping it.
    pub(crate) fn take(&self, netns: Option<&NetnsRef>, name: &str) -> bool {
        label(netns, name).is_some_and(|label| self.0.borrow_mut().remove(&label).is_some())
    }

    /// Lets all go that no pair has asked for: they are in no configuration any more.
    pub(crate) fn let_the_rest_go(&self) {
        for label in std::mem::take(&mut *self.0.borrow_mut()).into_keys() {
            tracing::info!(
                "the image {} of an earlier start goes: no interface has it",
                label.trim_start_matches(PREFIX)
            );
            release(&label);
        }
    }
}

/// Has the service manager keep an image when this process ends, if there is one that listens.
pub(crate) fn keep(tap: &Tap) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    let Some(label) = label(tap.netns(), tap.name()) else { return };
    let kept = tap.idle_queue().map_err(|e| e.to_string()).and_then(|queue| {
        // An idle queue is always in error for poll, which would be a reason to forget it.
        let state = [NotifyState::FdStore, NotifyState::FdName(&label), NotifyState::Custom("FDPOLL=0")];
        sd_notify::notify_with_fds(&state, &[queue.as_fd()]).map_err(|e| e.to_string())
    });
    match kept {
        Ok(()) => tap.set_outlives(true),
        Err(error) => tracing::warn!("{} goes when the router is started again: {error}", tap.name()),
    }
}

/// An image is deleted, and is not to come back.
pub(crate) fn forget(tap: &Tap) {
    if !tap.outlives() {
        return;
    }
    tap.set_outlives(false);
    if let Some(label) = label(tap.netns(), tap.name()) {
        release(&label);
    }
}

/// An image of an earlier process cannot be taken over: it makes room for a new one.
pub(crate) fn discard(netns: Option<&NetnsRef>, name: &str) {
    if let Some(label) = label(netns, name) {
        release(&label);
    }
    let there = netns.map(netns::open).transpose();
    let deleted = there.and_then(|netns| run_in(netns.as_ref(), || host::delete(host::ifindex(name)?)));
    if let Err(error) = deleted {
        tracing::debug!(%error, "{name} was not there");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_by_namespace_and_name() {
        let named = |netns: &str, name: &str| label(Some(&NetnsRef::Name(netns.into())), name);
        assert_eq!(named("dataplane", "e0").as_deref(), Some("tap/dataplane/e0"));
        assert_eq!(label(None, "e0").as_deref(), Some("tap//e0"));
        assert_eq!(named("a:b", "e0"), None, "the service manager's names have no colon");
        assert_eq!(named("d\u{e9}j\u{e0}", "e0"), None);
        assert_eq!(named(&"x".repeat(250), "e0"), None);
        assert_eq!(label(Some(&NetnsRef::Pid(1)), "e0"), None, "the process is another one after a start");
    }
}
