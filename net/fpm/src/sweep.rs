//! Work on many routes, in slices: another look at those whose next hops changed, and taking away those that are not
//! announced again.

use std::rc::Rc;

use shoal_graph::process::Receiver;
use shoal_module::cli::Pace;

use crate::control::{Counts, Fpm};
use crate::table::AnnouncedRoutes;

/// Routes that are looked at between two questions for the time.
const AT_ONCE: usize = 64;

/// Looks again at routes whose next hops changed, each time the bell rings.
pub(crate) async fn look_again(fpm: Rc<Fpm>, bell: Receiver<()>) {
    let pace = Pace::default();
    while bell.recv().await.is_ok() {
        let changed = fpm.told.borrow_mut().take_changed();
        let Some(changed) = changed else { continue };
        let (mut next, mut out) = (Some(0), Vec::new());
        while let Some(number) = next {
            let keys;
            (keys, next) = fpm.told.borrow().part(number, |entry| changed.concerns(entry));
            for some in keys.chunks(AT_ONCE) {
                for key in some {
                    fpm.decide_again(key, &mut out);
                }
                fpm.send_late(&mut out).await;
                pace.give_way().await;
            }
            pace.give_way().await;
        }
    }
}

/// Takes away the routes that a connection has not announced again. If these are more than half of all, zebra has not
/// begun to tell, and they stay.
pub(crate) async fn sweep(fpm: Rc<Fpm>, generation: u64) {
    let (all, again) = (fpm.told.borrow().routes(), fpm.told.borrow().told_by(generation));
    if again * 2 < all {
        tracing::warn!(
            "fpm: zebra told {again} of {all} routes again: none is taken away; `clear fpm` takes all"
        );
        return;
    }
    let (pace, mut next, mut gone) = (Pace::default(), Some(0), 0);
    while let Some(number) = next {
        let keys;
        (keys, next) = fpm.told.borrow().part(number, |entry| entry.generation < generation);
        for some in keys.chunks(AT_ONCE) {
            for key in some {
                // It may have been announced again while others had their turn.
                if fpm.told.borrow().get(key).is_some_and(|entry| entry.generation < generation) {
                    fpm.forget(key);
                    Counts::one(&fpm.counts.swept);
                    gone += 1;
                }
            }
            pace.give_way().await;
        }
        pace.give_way().await;
    }
    fpm.told.borrow_mut().sweep_next_hops(generation);
    if gone > 0 {
        tracing::info!("fpm: {gone} routes of before were not told again and are gone");
    }
}

/// Withdraws all announced routes.
pub(crate) async fn withdraw(fpm: Rc<Fpm>, all: AnnouncedRoutes) {
    let (pace, mut next) = (Pace::default(), Some(0));
    while let Some(number) = next {
        let keys;
        (keys, next) = all.part(number, |entry| entry.installed.is_some());
        for some in keys.chunks(AT_ONCE) {
            for key in some {
                let Some(id) = all.get(key).and_then(|entry| entry.installed) else { continue };
                // One that has been announced again meanwhile is another one's.
                if fpm.told.borrow().get(key).is_none_or(|now| now.installed != Some(id)) {
                    fpm.withdraw(key, id);
                }
            }
            pace.give_way().await;
        }
    }
}
