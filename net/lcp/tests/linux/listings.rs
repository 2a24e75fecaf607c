//! What the kernel lists while it changes.

use shoal_interface::HostRoute;

use super::mirror::{given, hear, hear_as, link, route, via};
use super::*;

#[test]
fn a_listing_that_is_older_than_an_announcement_changes_nothing() {
    for (prefix, next_hop, other) in
        [("203.0.113.0/24", "10.0.0.7", "10.0.0.8"), ("2001:db8:1::/48", "fe80::7", "fe80::8")]
    {
        let Setup { router, .. } = setup();
        let [old, new] = [next_hop, other].map(|next_hop| route(prefix, 20, via(next_hop)));
        let says = |route: &HostRoute, present| HostEvent::Route { route: route.clone(), present };
        let paths = |next_hop: &str| {
            [shoal_fib::Path::next_hop(next_hop.parse::<IpAddr>().unwrap(), shoal_interface::SwIfIndex(1))]
        };
        let begin = || HostEvent::Begin(ListingCause::Audit);
        let listed = |event| hear_as(&router, EventOrigin::Listed, [event]);
        hear(&router, [link(true, true), says(&old, true)]);
        assert!(given(&router, prefix, &paths(next_hop)));
        // It goes while the kernel lists it, and the list is heard behind that.
        listed(begin());
        listed(link(true, true));
        hear(&router, [says(&old, false)]);
        listed(says(&old, true));
        listed(HostEvent::End);
        let known = router.get::<Lcp>().followed()[0].installed;
        assert_eq!((known, router.get::<Lcp>().drift().len()), (0, 0), "{prefix}");
        // It becomes another one meanwhile.
        hear(&router, [says(&old, true)]);
        listed(begin());
        listed(link(true, true));
        hear(&router, [says(&new, true)]);
        listed(says(&old, true));
        listed(HostEvent::End);
        assert!(given(&router, prefix, &paths(other)), "{prefix}");
        // The next list counts again.
        listed(begin());
        listed(link(true, true));
        listed(says(&old, true));
        listed(HostEvent::End);
        assert!(given(&router, prefix, &paths(next_hop)), "{prefix}");
    }
}
