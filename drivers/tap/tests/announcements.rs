//! What the real kernel announces when it announces more than fits.

use std::fs;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use shoal_interface::{EventOrigin, ListingCause};
use shoal_link::{Announcement, Announcements};
use shoal_testkit::netns::*;
use shoal_testkit::skip;

/// More routes than a socket with room for a megabyte takes.
const MANY: usize = 10_000;

/// Lets `ip` do this often.
fn batch(ns: &Namespace, lines: impl Iterator<Item = String>) {
    let file = std::env::temp_dir().join(ns.name());
    fs::write(&file, lines.collect::<String>()).unwrap();
    ns.ip(&format!("-batch {}", file.display()));
    fs::remove_file(file).unwrap();
}

fn prefix(n: usize) -> String {
    format!("{}.{}.{}.{}/32", 20 + (n >> 24), n >> 16 & 255, n >> 8 & 255, n & 255)
}

#[test]
fn what_waited_when_others_were_lost_comes_before_the_listing() {
    let ns = match Namespace::new("lost") {
        Ok(ns) => ns,
        Err(e) => skip!("what_waited_when_others_were_lost_comes_before_the_listing: {e}"),
    };
    let mut all = ns.inside(|| Announcements::open().unwrap());
    setsockopt(&all.fd(), sockopt::RcvBuf, &(1 << 20)).unwrap();
    let read = |all: &mut Announcements| all.next_one().unwrap();
    assert!(wait_for(Duration::from_secs(30), || matches!(read(&mut all), Some(Announcement::End))));
    batch(&ns, (0..MANY).map(|n| format!("route add blackhole {}\n", prefix(n))));
    // Its first state waits, what becomes of it is lost.
    ns.ip(&format!("route del blackhole {}", prefix(0)));
    let (mut announced, mut begun, mut listed, mut lo) = (0, None, 0, None);
    let ended = wait_for(Duration::from_secs(30), || {
        while let Some(one) = read(&mut all) {
            match one {
                Announcement::Begin(cause) => begun = Some((cause, announced)),
                Announcement::Route(EventOrigin::Announced, ..) => {
                    announced += 1;
                    // More than half of what waits has been read, and not all.
                    if announced == MANY / 5 {
                        ns.ip("link set lo mtu 1234");
                    }
                }
                Announcement::Route(EventOrigin::Listed, route, _) => {
                    assert_ne!(route.prefix.0.to_string(), "20.0.0.0");
                    listed += usize::from(route.table == 254);
                }
                Announcement::Message(EventOrigin::Listed, message) => {
                    let message = format!("{message:?}");
                    if message.starts_with("NewLink") && message.contains("IfName(\"lo\")") {
                        lo = Some(message);
                    }
                }
                Announcement::End => return true,
                _ => {}
            }
        }
        false
    });
    assert!(ended, "{announced} announced, {listed} listed");
    assert!(announced < MANY, "nothing was lost, so nothing was proved");
    assert_eq!(begun, Some((ListingCause::Lost, announced)), "what waited before the loss is older");
    assert_eq!(listed, MANY - 1);
    assert!(lo.is_some_and(|lo| lo.contains("Mtu(1234)")), "what changed while they were read");
}
