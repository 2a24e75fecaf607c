//! Hears of a TAP that the host deletes. Readers of its descriptor learn it; rings just stay empty.

use std::future::Future;
use std::rc::Weak;

use async_io::Async;
use shoal_link::LinkWatch;

use crate::Error;
use crate::control::TapInterface;

/// Looks after each change of an interface in the TAP's namespace, until the TAP is gone.
pub(crate) fn run(
    mut watch: LinkWatch,
    tap: Weak<TapInterface>,
) -> Result<impl Future<Output = ()> + 'static, Error> {
    let fd = watch.fd().try_clone_to_owned().map_err(Error::os("dup(AF_NETLINK)"))?;
    let readable = Async::new_nonblocking(fd).map_err(Error::os("epoll(AF_NETLINK)"))?;
    Ok(async move {
        loop {
            // What has changed does not matter: an interface that moves to another namespace seems deleted, too.
            while let Ok(Some(_)) | Err(shoal_link::Error::Netlink(_)) = watch.next_event() {}
            match tap.upgrade() {
                Some(tap) if tap.tap.is_gone() => return tap.port.set_gone(),
                Some(_) => {}
                None => return,
            }
            if let Err(error) = readable.readable().await {
                return tracing::error!(%error, "deletions of TAPs by the host are not noticed any more");
            }
        }
    })
}
