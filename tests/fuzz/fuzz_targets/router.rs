//! Any frames, into the in-process router. Each is preceded by two bytes of length; the first byte of the input says
//! which interface, and whether the superpath is on.
#![no_main]

use std::cell::RefCell;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use shoal_fuzz::router;
use shoal_testkit::Router;

thread_local! {
    static BED: RefCell<Option<Router>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, mut rest)) = data.split_first() else { return };
    BED.with_borrow_mut(|bed| {
        let router = bed.get_or_insert_with(router);
        router.interfaces().enable_superpath(how & 4 == 0).expect("it can be switched");
        let interface = shoal_interface::SwIfIndex(1 + u32::from(how & 3) % 3);
        while let Some((length, more)) = rest.split_first_chunk::<2>() {
            let n = usize::from(u16::from_be_bytes(*length)).min(more.len());
            let (frame, later) = more.split_at(n);
            router.generator().inject(interface, frame.to_vec()).expect("the interface is there");
            rest = later;
        }
        router.run();
        // Whatever waits for a neighbour gives up.
        router.advance(Duration::from_secs(20));
        assert_eq!(router.buffers_in_use(), 0, "buffers did not come back");
    });
});
