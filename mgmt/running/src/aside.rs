//! Work that waits for a disk or thinks for long, on a thread of its own: the control thread must not.

use shoal_graph::process::channel;

/// Runs `work` on another thread, and gives way until it is done.
///
/// # Errors
/// There can be no other thread, in words.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let (sender, done) = channel(1);
    let run = move || {
        // Whoever waited may have been dropped with its task.
        let _ = sender.send_blocking(work());
    };
    let thread = std::thread::Builder::new().name("configuration".into()).spawn(run);
    thread.map_err(|e| format!("no thread for the work: {e}"))?;
    done.recv().await.map_err(|_| "the work was given up".to_owned())
}
