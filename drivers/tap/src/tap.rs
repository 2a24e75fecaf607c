//! A TAP as a whole: made, changed, removed.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use shoal_link::LinkWatch;
use shoal_vnet::VNET_HDR_LEN;

use crate::netns::{self, run_in};
use crate::sys::{Exclusive, TapQueue, control};
use crate::{Carrier, Error, Lifetime, NetnsRef, Offload, TapConfig, host};

/// A TAP (or TUN) interface of the host.
///
/// Dropping it removes the interface with its addresses and routes, also while queues are open: they then
/// say [`crate::RecvError::ClientGone`]. A persistent one stays, with its settings, and
/// so does one that the service manager keeps for the next start.
///
/// ```no_run
/// use shoal_tap::{Tap, TapConfig};
/// let (tap, mut queues) = Tap::create(&TapConfig::default())?;
/// println!("made {}", tap.name());
/// # Ok::<(), shoal_tap::Error>(())
/// ```
#[derive(Debug)]
pub struct Tap {
    name: String,
    ifindex: u32,
    control: OwnedFd,
    netns: Option<File>,
    config: TapConfig,
    /// Bytes of the header in front of each frame.
    header_len: AtomicUsize,
    /// The service manager keeps it.
    outlives: AtomicBool,
}

impl Tap {
    /// Makes the interface, inside `config.host.netns`, and opens its queues. When any step fails,
    /// nothing is left behind.
    ///
    /// Errors: [`Error::Exists`] for a name in use; [`Error::Netns`], [`Error::NoInterface`] (bridge),
    /// [`Error::Name`], [`Error::Config`] for a wrong setting; [`Error::Os`] for what the kernel refuses.
    pub fn create(config: &TapConfig) -> Result<(Self, Vec<TapQueue>), Error> {
        let name = config.check()?;
        // Made where it is to live, not moved there: so a name is only compared with its neighbours, and
        // the interface never shows up, even for a moment, in the router's own namespace.
        let netns = config.host.netns.as_ref().map(netns::open).transpose()?;
        let (name, ifindex, control, queues) = run_in(netns.as_ref(), || {
            if matches!(config.lifetime, Lifetime::Attached | Lifetime::Inherited) {
                host::ifindex(name)?;
            }
            let exclusive = match config.lifetime {
                Lifetime::Temporary => Exclusive::Yes,
                Lifetime::Persistent | Lifetime::Attached | Lifetime::Inherited => Exclusive::No,
            };
            let (first, name) = TapQueue::open(name, config.mode, exclusive, VNET_HDR_LEN)?;
            let mut queues = vec![first];
            for _ in 1..config.queues {
                queues.push(TapQueue::open(&name, config.mode, Exclusive::No, VNET_HDR_LEN)?.0);
            }
            let ifindex = host::ifindex(&name)?;
            for queue in &queues {
                control::set_offload(queue.as_fd(), config.offload)?;
            }
            if config.lifetime == Lifetime::Inherited {
                host::adjust(&name, &config.host)?;
            } else {
                host::apply(ifindex, &config.host)?;
            }
            let first = queues.first().ok_or(Error::last("no queue"))?;
            let control = first.as_fd().try_clone_to_owned().map_err(Error::os("dup"))?;
            // Last, so that a failure above takes a half-made interface away.
            if config.lifetime == Lifetime::Persistent {
                control::set_persistent(control.as_fd())?;
            }
            Ok((name, ifindex, control, queues))
        })?;
        let header_len = AtomicUsize::new(VNET_HDR_LEN);
        let outlives = AtomicBool::new(config.lifetime == Lifetime::Inherited);
        Ok((Self { name, ifindex, control, netns, config: config.clone(), header_len, outlives }, queues))
    }

    /// Opens one more queue.
    pub fn add_queue(&self) -> Result<TapQueue, Error> {
        let header_len = self.header_len.load(Ordering::Relaxed);
        run_in(self.netns.as_ref(), || {
            Ok(TapQueue::open(&self.name, self.config.mode, Exclusive::No, header_len)?.0)
        })
    }

    /// Opens one more queue that gets no frames: by it the interface is there.
    pub(crate) fn idle_queue(&self) -> Result<TapQueue, Error> {
        let queue = self.add_queue()?;
        control::detach(queue.as_fd())?;
        Ok(queue)
    }

    /// Whether the service manager keeps it when this process ends.
    pub(crate) fn outlives(&self) -> bool {
        self.outlives.load(Ordering::Relaxed)
    }

    /// It is kept, or no longer.
    pub(crate) fn set_outlives(&self, outlives: bool) {
        self.outlives.store(outlives, Ordering::Relaxed);
    }

    /// Says how many bytes are in front of each frame, in all queues.
    pub(crate) fn set_header_len(&self, len: usize) -> Result<(), Error> {
        control::set_header_len(self.control.as_fd(), len)?;
        self.header_len.store(len, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the host has deleted the interface.
    pub(crate) fn is_gone(&self) -> bool {
        control::is_detached(self.control.as_fd())
    }

    /// A subscription to the interfaces of its namespace.
    pub(crate) fn watch(&self) -> Result<LinkWatch, Error> {
        run_in(self.netns.as_ref(), || Ok(LinkWatch::open()?))
    }

    /// Says what the router takes from the host: what already waits is as it was.
    pub fn set_offload(&self, offload: Offload) -> Result<(), Error> {
        control::set_offload(self.control.as_fd(), offload)
    }

    /// The name the kernel gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number inside its namespace.
    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// Changes the host's side, in its namespace.
    pub(crate) fn change<T: Send>(&self, f: impl FnOnce(u32) -> Result<T, Error> + Send) -> Result<T, Error> {
        run_in(self.netns.as_ref(), || f(self.ifindex))
    }

    /// The namespace it lives in; none for the one it was made from.
    pub fn netns(&self) -> Option<&NetnsRef> {
        self.config.host.netns.as_ref()
    }

    /// Plugs or unplugs the cable as the host sees it.
    pub fn set_carrier(&self, carrier: Carrier) -> Result<(), Error> {
        control::set_carrier(self.control.as_fd(), carrier)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let stays = matches!(self.config.lifetime, Lifetime::Persistent | Lifetime::Attached);
        if stays || self.outlives() {
            return;
        }
        if let Err(error) = run_in(self.netns.as_ref(), || host::delete(self.ifindex)) {
            // The interface went first; anything else ends when the queues are closed.
            tracing::debug!(tap = self.name, %error, "not deleted");
        }
    }
}
