//! The process tasks: one that listens or connects for each interface, one for each front end that is there.

use std::rc::Weak;
use std::time::Duration;

use futures_lite::future::{or, yield_now};
use shoal_graph::process::{Processes, Receiver};
use shoal_link::Listener;

use crate::control::{Vhost, Vhosts};
use crate::socket::Link;

/// How long a client waits before it tries again.
const RETRY: Duration = Duration::from_secs(1);

/// Waits for front ends.
pub(crate) async fn listen(
    vhosts: Weak<Vhosts>,
    vhost: Weak<Vhost>,
    listener: Weak<Listener>,
    ended: Receiver<()>,
    processes: Processes,
) {
    loop {
        let peer = async { Some(Listener::accept(&listener).await?.and_then(Link::of)) };
        let next = or(async { ended.recv().await.ok().and(None) }, peer).await;
        match (next, vhost.upgrade()) {
            (Some(Ok(link)), Some(found)) => {
                if found.is_busy() {
                    found.refused.set(found.refused.get() + 1);
                    tracing::warn!(
                        "{}: a front end is there already, another is sent away",
                        found.path().display()
                    );
                    continue;
                }
                processes.spawn_unlisted(serve(vhosts.clone(), vhost.clone(), link));
                // It is busy as soon as that has run.
                drop(found);
                yield_now().await;
            }
            (Some(Err(error)), Some(found)) => {
                // Out of file descriptors, most likely: trying at once again would spin.
                tracing::warn!(%error, "{}: cannot take a front end", found.path().display());
                drop(found);
                processes.sleep(RETRY).await;
            }
            _ => return,
        }
    }
}

/// Looks for a front end, again and again.
pub(crate) async fn connect(
    vhosts: Weak<Vhosts>,
    vhost: Weak<Vhost>,
    ended: Receiver<()>,
    processes: Processes,
) {
    loop {
        let Some(found) = vhost.upgrade() else { return };
        match Link::connect(&found.path()) {
            // The one of a task before this one goes first.
            Ok(_) if found.is_busy() => drop(found),
            Ok(link) => {
                drop(found);
                let served = async {
                    serve(vhosts.clone(), vhost.clone(), link).await;
                    true
                };
                if !or(async { ended.recv().await.is_ok() }, served).await {
                    return;
                }
            }
            Err(e) => {
                found.note(format!("{}: {e}", found.path().display()));
                drop(found);
            }
        }
        let rested = async {
            processes.sleep(RETRY).await;
            true
        };
        if !or(async { ended.recv().await.is_ok() }, rested).await {
            return;
        }
    }
}

/// Ends a front end's session however its task ends.
struct Guard {
    vhosts: Weak<Vhosts>,
    vhost: Weak<Vhost>,
    why: String,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let (Some(vhosts), Some(vhost)) = (self.vhosts.upgrade(), self.vhost.upgrade()) {
            vhosts.end(&vhost, &self.why);
        }
    }
}

/// One front end.
async fn serve(vhosts: Weak<Vhosts>, vhost: Weak<Vhost>, link: Link) {
    let both = || Some((vhosts.upgrade()?, vhost.upgrade()?));
    let Some((all, one)) = both() else { return };
    if one.is_busy() {
        one.refused.set(one.refused.get() + 1);
        return;
    }
    let stop = all.begin(&one);
    drop((all, one));
    let mut guard = Guard { vhosts: vhosts.clone(), vhost: vhost.clone(), why: "interface modified".into() };
    let said = async {
        loop {
            let word = link.receive().await.map_err(|e| e.to_string())?;
            let answer = match both() {
                Some((all, one)) => all.hear(&one, word)?,
                None => return Ok::<(), String>(()),
            };
            if let Some(answer) = answer {
                link.send(&answer).await.map_err(|e| e.to_string())?;
            }
            // Others have something to do, too, while a front end never stops talking.
            yield_now().await;
        }
    };
    let stopped = async { Err(stop.recv().await.unwrap_or_else(|_| "interface deleted".into())) };
    if let Err(why) = or(stopped, said).await {
        guard.why = why;
    }
}
