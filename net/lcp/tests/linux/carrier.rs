//! Linux sees whether the other end of an interface's cable is there; which of OSI's protocols it sees.

use super::{FakeHost, Interfaces, Lcp, MODULES, Router, Setup, run, setup};

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
