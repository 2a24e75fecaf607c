//! What the kernel lists while it changes.

use shoal_interface::{HostMulticastRoute, HostNextHop, HostPath, HostRoute};

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

/// A kind of thing that Linux lists: what says that there is one, that it has gone, and how many are known.
type Kind = (HostEvent, HostEvent, fn(&Router) -> usize);

fn kinds() -> [Kind; 5] {
    let address =
        |present| HostEvent::Address { host_index: 7, address: ([10, 9, 0, 1].into(), 24), present };
    let address6 = |present| {
        let address = "2001:db8:9::1".parse().unwrap();
        HostEvent::Address { host_index: 7, address: (address, 64), present }
    };
    let neighbor =
        |mac| HostEvent::Neighbor { host_index: 7, address: [10, 0, 0, 9].into(), mac, by_operator: true };
    let path = HostPath { host_index: 7, next_hop: Some([10, 0, 0, 7].into()), weight: 1 };
    let next_hop = |hop| HostEvent::NextHop { id: 5, hop };
    let multicast = |present| {
        let (source, group) = ([10, 0, 0, 2].into(), [239, 1, 1, 1].into());
        let route = HostMulticastRoute { table: 253, source, group, input: Some(7), outputs: Vec::new() };
        HostEvent::MulticastRoute { route, present }
    };
    [
        (address(true), address(false), |router| router.get::<Lcp>().followed()[0].addresses),
        (address6(true), address6(false), |router| router.get::<Lcp>().followed()[0].addresses),
        (neighbor(Some(MacAddress([2, 0, 0, 0, 0, 9]))), neighbor(None), |router| {
            router.get::<Lcp>().followed()[0].neighbors
        }),
        (next_hop(Some(HostNextHop::One(path))), next_hop(None), |router| {
            router.get::<Lcp>().followed()[0].next_hops
        }),
        (multicast(true), multicast(false), |router| router.get::<Lcp>().followed()[0].multicast_routes),
    ]
}

#[test]
fn a_listing_is_too_old_to_bring_back_or_to_miss_what_was_announced_meanwhile() {
    for (there, gone, count) in kinds() {
        let Setup { router, .. } = setup();
        let known = || count(&router);
        let listed = |event| hear_as(&router, EventOrigin::Listed, [event]);
        hear(&router, [link(true, true)]);
        let none = known();
        hear(&router, [there.clone()]);
        assert_eq!(known(), none + 1, "{there:?}");
        // It goes, and the listing names it behind that.
        listed(HostEvent::Begin(ListingCause::Audit));
        listed(link(true, true));
        hear(&router, [gone]);
        listed(there.clone());
        assert_eq!(known(), none, "{there:?}");
        listed(HostEvent::End);
        assert_eq!((known(), router.get::<Lcp>().drift().len()), (none, 0), "{there:?}");
        // It comes, and the listing has passed its place.
        listed(HostEvent::Begin(ListingCause::Audit));
        listed(link(true, true));
        hear(&router, [there.clone()]);
        listed(HostEvent::End);
        assert_eq!((known(), router.get::<Lcp>().drift().len()), (none + 1, 0), "{there:?}");
        // The next list counts again.
        listed(HostEvent::Begin(ListingCause::Audit));
        listed(link(true, true));
        listed(HostEvent::End);
        assert_eq!((known(), router.get::<Lcp>().drift().len()), (none, 1), "{there:?}");
    }
}

#[test]
fn a_listing_names_routes_whose_way_went_meanwhile() {
    let to = ["203.0.113.0/24", "2001:db8:1::/48"];
    let by = |prefix: &str, hop: &str| route(prefix, 20, via(hop));
    let [plain, plain6] = [by(to[0], "10.0.0.7"), by(to[1], "fe80::7")];
    let numbered = HostRoute { next_hop_id: Some(5), ..plain.clone() };
    let path = HostPath { host_index: 7, next_hop: Some([10, 0, 0, 7].into()), weight: 1 };
    let number = |hop: Option<HostNextHop>| HostEvent::NextHop { id: 5, hop };
    let one = || number(Some(HostNextHop::One(path)));
    let gone = HostEvent::Gone { host_index: 7 };
    // What the kernel takes away without a word: what goes, and what it has listed just before. Whether the next hop was known before.
    for ((goes, route), is_known) in [
        (link(false, false), &plain),
        (link(false, false), &plain6),
        (gone, &plain),
        (number(None), &numbered),
        (link(true, false), &numbered),
    ]
    .iter()
    .flat_map(|case| [(case, true), (case, false)])
    {
        let Setup { router, .. } = setup();
        let listed = |event| hear_as(&router, EventOrigin::Listed, [event]);
        hear(&router, [link(true, true)]);
        hear(&router, is_known.then(one));
        listed(HostEvent::Begin(ListingCause::Audit));
        listed(link(true, true));
        hear(&router, [goes.clone()]);
        listed(one());
        listed(HostEvent::Route { route: (*route).clone(), present: true });
        listed(HostEvent::End);
        let info = router.get::<Lcp>().followed()[0].clone();
        assert_eq!((info.prefixes, info.next_hops, info.drifted), (0, 0, 0), "{goes:?} {is_known}");
    }
}
