//! The process task that follows the kernel's interfaces, one for all host interfaces of a router.

use std::future::Future;
use std::rc::Weak;

use async_io::Async;

use crate::control::HostInterfaces;
use shoal_link::LinkWatch;

use crate::Error;

/// Its name in `show runtime`.
pub(crate) const NAME: &str = "af-packet-link-watch";

/// Tells `hosts` every change until there are none any more.
pub(crate) fn run(
    mut watch: LinkWatch,
    hosts: Weak<HostInterfaces>,
) -> Result<impl Future<Output = ()> + 'static, Error> {
    let fd = watch.fd().try_clone_to_owned().map_err(Error::os("dup(AF_NETLINK)"))?;
    let readable = Async::new_nonblocking(fd).map_err(Error::os("epoll(AF_NETLINK)"))?;
    Ok(async move {
        loop {
            loop {
                match watch.next_event() {
                    Ok(Some(event)) => match hosts.upgrade() {
                        Some(hosts) => hosts.link_event(&event),
                        None => return,
                    },
                    Ok(None) => break,
                    // One message that cannot be read; the next ones still count.
                    Err(shoal_link::Error::Netlink(why)) => {
                        tracing::warn!("malformed announcement of a link: {why}");
                    }
                    Err(e) => {
                        return tracing::error!("host interfaces do not follow the kernel any more: {e}");
                    }
                }
            }
            if let Err(e) = readable.readable().await {
                tracing::error!("host interfaces do not follow the kernel any more: {e}");
                return;
            }
        }
    })
}
