//! Tasks of the main thread: packets to clients, and from them.

use std::future::poll_fn;
use std::os::unix::net::UnixDatagram;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use async_io::Async;
use shoal_graph::process::{Processes, Receiver};

use crate::Punt;
use crate::node::Item;
use crate::sockets::{DESCRIPTOR, LONGEST};

/// Packets that are handled before other tasks have a turn.
const TURN: usize = 64;

/// Lets other tasks run.
async fn give_way() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Sends what nodes have put aside.
pub(crate) async fn send(punt: Rc<Punt>, items: Receiver<Item>) {
    let mut bytes = Vec::new();
    for turn in 1.. {
        let Ok(item) = items.recv().await else { return };
        punt.deliver(item, &mut bytes);
        if turn % TURN == 0 {
            give_way().await;
        }
    }
}

/// Takes what clients send.
pub(crate) async fn receive(punt: Rc<Punt>, processes: Rc<Processes>, socket: Rc<Async<UnixDatagram>>) {
    // One byte more than there may be, so that longer ones are known.
    let mut bytes = vec![0; DESCRIPTOR + LONGEST + 1];
    for turn in 1.. {
        match socket.recv(&mut bytes).await {
            Ok(n) => punt.take(bytes.get(..n).unwrap_or_default()),
            Err(e) => {
                tracing::warn!("the punt socket: {e}");
                punt.take_failed();
                processes.sleep(Duration::from_millis(100)).await;
            }
        }
        if turn % TURN == 0 {
            give_way().await;
        }
    }
}
