//! Linux sees whether the other end of an interface's cable is there; which of OSI's protocols it sees.

use super::mirror::hear;
use super::{
    FakeHost, HostEvent, HostLink, Interfaces, Lcp, ListingCause, MODULES, Router, Setup, host_link, run,
    setup,
};

#[test]
fn a_link_that_goes_down_is_a_pulled_cable_for_linux() {
    let Setup { router, phy, .. } = setup();
    let cables = || std::mem::take(&mut *router.get::<FakeHost>().2.borrow_mut());
    assert_eq!(cables(), [true], "the image begins with the link as it is");
    router.interfaces().set_link(phy.index(), false).unwrap();
    router.interfaces().set_link(phy.index(), true).unwrap();
    assert_eq!(cables(), [false, true]);
    // An interface without an image tells no one.
    router.get::<Lcp>().delete(phy.index()).unwrap();
    router.interfaces().set_link(phy.index(), false).unwrap();
    assert!(cables().is_empty());
}

#[test]
fn an_image_of_an_interface_without_a_link_has_no_carrier() {
    let mut router = Router::new(MODULES);
    let phy = router.pg(0);
    router.get::<Interfaces>().set_link(phy.index(), false).unwrap();
    router.get::<Lcp>().create(phy.index(), "e0", None).unwrap();
    assert_eq!(*router.get::<FakeHost>().2.borrow(), [false]);
}

#[test]
fn an_image_that_begins_down_takes_no_interface_down() {
    let mut router = Router::new(MODULES);
    let phy = router.pg(0).index();
    let interfaces = router.get::<Interfaces>();
    interfaces.set_admin(phy, false).unwrap();
    router.get::<Lcp>().create(phy, "e0", None).unwrap();
    // Without lcp-sync Linux is not asked to use the image.
    interfaces.set_admin(phy, true).unwrap();
    let state = |up| HostEvent::Link(HostLink { up, ..host_link(7, "e0") });
    let is_up = || interfaces.data(phy).unwrap().is_up();
    hear(&router, [HostEvent::Begin(ListingCause::Start), state(false), HostEvent::End]);
    assert!(is_up(), "that is no change");
    hear(&router, [state(true), state(false)]);
    assert!(!is_up());
    hear(&router, [state(true)]);
    assert!(is_up());
}

#[test]
fn osi_protocols_have_names_and_numbers() {
    let router = Router::new(MODULES);
    for protocol in ["isis", "0x82", "129"] {
        run(&router, "lcp osi-proto", &format!("enable protocol={protocol}")).unwrap();
    }
    assert_eq!(run(&router, "show lcp osi-proto", "").unwrap().to_text(), "0x81\n0x82\n0x83\n");
    let error = run(&router, "lcp osi-proto", "enable protocol=is-is").unwrap_err();
    assert!(format!("{error:?}").contains("isis"), "{error:?}");
    run(&router, "lcp osi-proto", "disable protocol=isis").unwrap();
    assert_eq!(run(&router, "show lcp osi-proto", "").unwrap().to_text(), "0x81\n0x82\n");
}
