//! What a running command waits for.

use futures_lite::future;
use shoal_graph::clock::Time;
use shoal_graph::process::Processes;
use shoal_icmp::{Heard, Listener};
use shoal_module::cli::Sink;

/// What ended the wait.
pub(crate) enum Woken {
    /// An answer.
    Heard(Heard),
    /// The time is over.
    TimeOut,
    /// The client left or interrupted the command.
    Gone,
}

/// Waits for an answer, a moment, or the client's leaving, in this order when several are there.
pub(crate) async fn wait(listener: &Listener, until: Time, processes: &Processes, sink: &Sink) -> Woken {
    let heard = async { Woken::Heard(listener.next().await) };
    let gone = async {
        sink.gone().await;
        Woken::Gone
    };
    let over = async {
        processes.sleep(until.since(processes.clock().now())).await;
        Woken::TimeOut
    };
    future::or(heard, future::or(gone, over)).await
}
