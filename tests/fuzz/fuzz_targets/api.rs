//! A stream of a client of the binary API, cut at any places: frames that lie about their length, then requests of every
//! kind with any bytes as fields. Four bytes of the input say which request and how long its fields are.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use shoal_api::frames::Frames;
use shoal_api::memclnt;
use shoal_fuzz::{modules, router};
use shoal_message::Input;
use shoal_module::api::handler::{Handler, Outcome};
use shoal_module::api::{Answers, Call};
use shoal_testkit::Router;

struct Bed {
    router: Router,
    handlers: Vec<Handler>,
    rounds: u32,
}

thread_local! {
    static BED: RefCell<Option<Bed>> = const { RefCell::new(None) };
}

fn bed() -> Bed {
    let parts = modules().into_iter().flat_map(|module| module.api).copied();
    let messages = std::iter::once(&memclnt::API).chain(parts).flat_map(|part| part.messages);
    Bed { router: router(), handlers: messages.filter_map(|m| m.handler).collect(), rounds: 0 }
}

fuzz_target!(|bytes: &[u8]| {
    // As a stream.
    let cut = bytes.first().map_or(1, |b| usize::from(*b) + 1);
    let mut frames = Frames::default();
    'stream: for piece in bytes.chunks(cut) {
        frames.push(piece);
        loop {
            match frames.message() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => break 'stream,
            }
        }
    }
    // As requests.
    BED.with_borrow_mut(|place| {
        let bed = place.get_or_insert_with(bed);
        let call = Call::local(bed.router.control());
        let mut rest = bytes;
        while let Some(([which, more, length, fill], behind)) = rest.split_first_chunk::<4>() {
            let at = usize::from(*which) | usize::from(*more & 3) << 8;
            let handler = bed.handlers[at % bed.handlers.len()];
            let (given, behind) = behind.split_at(usize::from(*length).min(behind.len()));
            rest = behind;
            // Long messages are mostly alike: what is not given is filled up.
            let mut fields = given.to_vec();
            fields.resize(given.len() + usize::from(*fill) * 2, 0);
            let mut to = Vec::new();
            let mut answers = Answers::new(&mut to, 1, 1, 2);
            if let Ok(Outcome::More(mut rows)) = handler(&call, Input::new(&fields), &mut answers) {
                (0..100).all(|_| rows(&mut answers));
            }
        }
        bed.router.run();
        bed.rounds += 1;
        // What was made stays: from time to time all restarts.
        if bed.rounds > 2_000 {
            *place = None;
        }
    });
});
