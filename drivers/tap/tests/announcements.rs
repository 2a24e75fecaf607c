//! What the real kernel announces when it announces more than fits.

use std::fs;
use std::time::Duration;

use shoal_interface::{EventOrigin, ListingCause};
use shoal_link::{Announcement, Announcements};
use shoal_testkit::netns::*;
use shoal_testkit::skip;

/// More routes than a socket with room for a megabyte takes.
const MANY: usize = 10_000;

/// As many routes as it surely takes.
const PART: usize = 500;

fn open(ns: &Namespace, ahead: usize) -> Announcements {
    let mut all = ns.inside(move || Announcements::open_with(1 << 20, ahead).unwrap());
    assert!(ends(&mut all));
    all
}

/// Whether no socket of this namespace has anything left to read.
fn all_is_read(ns: &Namespace) -> bool {
    let sockets = ns.inside(|| fs::read_to_string("/proc/thread-self/net/netlink").unwrap());
    let waiting = sockets.lines().skip(1).map(|one| one.split_whitespace().nth(4).unwrap());
    waiting.map(|bytes| bytes.parse::<usize>().unwrap()).sum::<usize>() == 0
}

/// Reads until a listing has ended; whether one has.
fn ends(all: &mut Announcements) -> bool {
    wait_for(Duration::from_secs(30), || {
        let mut read = std::iter::from_fn(|| all.next_one().unwrap());
        read.any(|one| matches!(one, Announcement::End))
    })
}

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
    let mut all = open(&ns, 0);
    batch(&ns, (0..MANY).map(|n| format!("route add blackhole {}\n", prefix(n))));
    // Its first state waits, what becomes of it is lost.
    ns.ip(&format!("route del blackhole {}", prefix(0)));
    let (mut announced, mut begun, mut listed, mut lo) = (0, None, 0, None);
    let ended = wait_for(Duration::from_secs(30), || {
        while let Some(one) = all.next_one().unwrap() {
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

#[test]
fn what_comes_while_the_main_thread_is_busy_is_read_nevertheless() {
    let ns = match Namespace::new("busy") {
        Ok(ns) => ns,
        Err(e) => skip!("what_comes_while_the_main_thread_is_busy_is_read_nevertheless: {e}"),
    };
    let mut all = open(&ns, 64 << 20);
    // Each part fits, so that a thread that must wait for a processor loses nothing; all of them do not.
    for part in 0..MANY / PART {
        let routes = part * PART..(part + 1) * PART;
        batch(&ns, routes.map(|n| format!("route add blackhole {}\n", prefix(n))));
        assert!(wait_for(Duration::from_secs(30), || all_is_read(&ns)), "part {part} is not read");
    }
    let mut announced = 0;
    let done = wait_for(Duration::from_secs(30), || {
        while let Some(one) = all.next_one().unwrap() {
            assert!(!matches!(one, Announcement::Begin(_)), "announcements were lost");
            announced += usize::from(matches!(one, Announcement::Route(EventOrigin::Announced, ..)));
        }
        announced == MANY
    });
    assert!(done, "{announced} announced");
    // The thread ends, whether it waits for the kernel or for room.
    drop(all);
    drop(open(&ns, 0));
}

#[test]
fn what_is_listed_while_all_changes_comes_to_its_end() {
    let ns = match Namespace::new("often") {
        Ok(ns) => ns,
        Err(e) => skip!("what_is_listed_while_all_changes_comes_to_its_end: {e}"),
    };
    let mut all = open(&ns, 64 << 20);
    std::thread::scope(|scope| {
        let changes = (0..10 * MANY).map(|n| {
            let word = if n % 2 == 0 { "add" } else { "del" };
            format!("route {word} blackhole {}\n", prefix(n / 2))
        });
        let changing = scope.spawn(|| batch(&ns, changes));
        let mut listings = 0;
        while !changing.is_finished() || listings < 10 {
            all.list(ListingCause::Audit);
            assert!(ends(&mut all), "listing {listings}");
            listings += 1;
        }
    });
}
