//! What a running command waits for.

use futures_lite::future;
use shoal_graph::clock::Time;
use shoal_graph::process::Processes;
use shoal_icmp::{EchoAnswer, Listener};
use shoal_module::cli::Sink;

/// What ended the wait.
pub(crate) enum WaitEnd {
    /// An answer.
    Heard(EchoAnswer),
    /// The time is over.
    TimeOut,
    /// The client left or interrupted the command.
    Gone,
}

/// Waits for an answer, a moment, or the client's leaving, in this order when several are there.
pub(crate) async fn wait(listener: &Listener, until: Time, processes: &Processes, sink: &Sink) -> WaitEnd {
    let heard = async { WaitEnd::Heard(listener.next().await) };
    let gone = async {
        sink.gone().await;
        WaitEnd::Gone
    };
    let over = async {
        processes.sleep(until.since(processes.clock().now())).await;
        WaitEnd::TimeOut
    };
    future::or(heard, future::or(gone, over)).await
}
