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
        let (mut from, mut out) = (None, Vec::new());
        loop {
            let (keys, last) = fpm.told.borrow().after(from, AT_ONCE, |entry| changed.concerns(entry));
            for key in keys {
                fpm.decide_again(&key, &mut out);
            }
            fpm.send_late(&mut out).await;
            if last.is_none() {
                break;
            }
            from = last;
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
    let (pace, mut from, mut gone) = (Pace::default(), None, 0);
    loop {
        let (keys, last) = fpm.told.borrow().after(from, AT_ONCE, |entry| entry.generation < generation);
        for key in keys {
            fpm.forget(&key);
            Counts::one(&fpm.counts.swept);
            gone += 1;
        }
        if last.is_none() {
            break;
        }
        from = last;
        pace.give_way().await;
    }
    fpm.told.borrow_mut().sweep_next_hops(generation);
    if gone > 0 {
        tracing::info!("fpm: {gone} routes of before were not told again and are gone");
    }
}

/// Withdraws all announced routes.
pub(crate) async fn withdraw(fpm: Rc<Fpm>, all: AnnouncedRoutes) {
    let (pace, mut from) = (Pace::default(), None);
    loop {
        let (keys, last) = all.after(from, AT_ONCE, |entry| entry.installed);
        for key in keys {
            // One that has been announced again meanwhile is another one's.
            if fpm.told.borrow().get(&key).is_none_or(|now| !now.installed) {
                fpm.withdraw(&key);
            }
        }
        if last.is_none() {
            return;
        }
        from = last;
        pace.give_way().await;
    }
}
