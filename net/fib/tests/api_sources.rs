//! Sources of routes that clients name.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use shoal_fib::{Covering, FibIndex, Source};
use shoal_message::Retval;
use shoal_module::api::Call;

use crate::api::{ADD, OK, add_del, ask, retval, route, to};
use crate::router::{prefix, router};

#[test]
fn a_client_names_a_source_and_its_routes_stand_by_its_priority() {
    let router = router(1);
    let call = Call::local(&router.control);
    let add = |priority: u8, name: &str| {
        let mut request = vec![priority, 0];
        request.extend(name.bytes());
        request.resize(66, 0);
        let row = ask(&call, "fib_source_add", &request).remove(0);
        (Retval(i32::from_be_bytes([row[0], row[1], row[2], row[3]])), row[4])
    };
    let (done, high) = add(0x20, "bird");
    let (also, low) = add(0x90, "static");
    assert_eq!((done, also), (OK, OK));
    assert_eq!(add(0x20, "bird"), (OK, high), "it is the same");
    assert_eq!(add(0x21, "bird").0, Retval::VALUE_EXIST);
    assert_eq!(add(0x21, "API").0, Retval::VALUE_EXIST);
    assert_eq!(add(0x21, "").0, Retval::VALUE_EXIST);
    assert_eq!((add(3, "best").0, add(0xff, "worst").0), (Retval::INVALID_VALUE, Retval::INVALID_VALUE));
    let sources = ask(&call, "fib_source_dump", &[]);
    let told = |id: u8| sources.iter().find(|row| row[1] == id).map(|row| (row[0], row[2..6].to_vec()));
    assert_eq!(told(high), Some((0x20, b"bird".to_vec())));
    assert!(sources.is_sorted_by_key(|row| row[0]), "the best first");
    let say = |src: u8, via: &str| {
        let mut request = vec![1, 0];
        request.extend(route(0, "12.0.0.0/8", &[to(via, 1)], Some(src)));
        assert_eq!(retval(&call, "ip_route_add_del_v2", &request), OK);
    };
    let decides =
        || router.fib.route(FibIndex::DEFAULT, prefix("12.0.0.0/8"), Covering::Itself).unwrap().source;
    let number = |src: u8| decides() as u8 + 1 == src;
    say(low, "192.0.2.3");
    assert!(number(low));
    assert_eq!(add_del(&call, ADD, 0, "12.0.0.0/8", &[to("192.0.2.2", 1)]), OK);
    assert_eq!(decides(), Source::Api);
    say(high, "192.0.2.4");
    assert!(number(high));
    for priority in [0x30, 0x40, 0x10] {
        assert_eq!(add(priority, &format!("more {priority}")).0, OK);
    }
    assert_eq!(add(0x50, "too many").0, Retval::LIMIT_EXCEEDED);
}
