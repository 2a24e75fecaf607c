//! `ip route add count N`, a few at a time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::router;

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use router::{Router, prefix, router};
use shoal_fib::{Family, FibIndex};
use shoal_module::cli::{Args, CliError, ClientGone, Command, Later, Reader, Sink};

fn command() -> &'static Command {
    shoal_fib::cli::COMMANDS.iter().find(|c| c.syntax.starts_with("ip route")).unwrap()
}

fn args(router: &Router, items: &str) -> Args {
    items.split_whitespace().fold(Args::new(Rc::clone(&router.control), items), |args, item| {
        match item.split_once('=') {
            Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
            None => args.with_word(item.to_owned().leak(), 0..0),
        }
    })
}

/// A client that leaves when it is told to.
#[derive(Default)]
struct Client(Cell<bool>);

impl Reader for Client {
    fn write(&self, _: &str) -> Result<(), ClientGone> {
        Ok(())
    }
    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        if self.0.get() { Poll::Ready(()) } else { Poll::Pending }
    }
    fn is_gone(&self) -> bool {
        self.0.get()
    }
}

fn begin(router: &Router, items: &str) -> (Later, Rc<Client>) {
    let (client, args) = (Rc::new(Client::default()), args(router, items));
    let long = command().long.unwrap();
    assert!((long.when)(&args));
    ((long.run)(Rc::clone(&router.control), args, Sink::new(Rc::clone(&client) as _)), client)
}

/// One turn of the main thread.
fn turn(work: &mut Later) -> Option<Result<(), String>> {
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => None,
        Poll::Ready(Ok(_)) => Some(Ok(())),
        Poll::Ready(Err(CliError::Failed(message) | CliError::Argument { message, .. })) => {
            Some(Err(message))
        }
    }
}

/// Runs to the end; how often others had their turn.
fn finish(mut work: Later) -> (Result<(), String>, usize) {
    let mut turns = 0;
    loop {
        if let Some(done) = turn(&mut work) {
            return (done, turns);
        }
        turns += 1;
    }
}

fn count(router: &Router, family: Family) -> usize {
    router.fib.table(family, FibIndex::DEFAULT).unwrap().lengths.iter().sum::<usize>() - 5
}

const FAMILIES: [(Family, &str, &str); 2] =
    [(Family::Ip4, "10.0.0.0/24", "10.0.64.0/24"), (Family::Ip6, "2001:db8::/64", "2001:db8:0:40::/64")];

#[test]
fn many_are_added_and_deleted_while_others_have_their_turn() {
    let router = router(1);
    for (family, first, _) in FAMILIES {
        let before = router.locks();
        let (done, turns) = finish(begin(&router, &format!("add count=20000 prefix={first} via drop")).0);
        assert_eq!((done, count(&router, family)), (Ok(()), 20_000));
        assert!(turns > 10, "{turns}");
        assert_eq!(router.fib.check(), Vec::<String>::new());
        let (done, turns) = finish(begin(&router, &format!("del count=20000 prefix={first}")).0);
        assert_eq!((done, count(&router, family)), (Ok(()), 0));
        assert!(turns > 10, "{turns}");
        assert_eq!((router.fib.check(), router.locks()), (Vec::new(), before));
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_nothing_behind() {
    let router = router(1);
    for (family, first, other) in FAMILIES {
        let before = router.locks();
        let path = [shoal_fib::Path::from(shoal_fib::Via::Prohibit)];
        router.fib.add(FibIndex::DEFAULT, prefix(other), shoal_fib::Source::Cli, &path).unwrap();
        let (mut work, client) = begin(&router, &format!("add count=20000 prefix={first} via drop"));
        while count(&router, family) < 1_000 {
            assert_eq!(turn(&mut work), None);
        }
        client.0.set(true);
        let (done, _) = finish(work);
        assert_eq!(done, Err("interrupted, no route was added".into()));
        let entry = router.fib.entry(FibIndex::DEFAULT, prefix(other)).unwrap();
        assert_eq!((count(&router, family), entry.lists[0].paths.len()), (1, 1));
        assert_eq!(router.fib.check(), Vec::<String>::new());

        // Dropped in the middle, it takes everything back, too.
        let (mut work, _client) = begin(&router, &format!("add count=20000 prefix={first} via drop"));
        while count(&router, family) < 1_000 {
            assert_eq!(turn(&mut work), None);
        }
        drop(work);
        assert_eq!(count(&router, family), 1);
        router.fib.remove(FibIndex::DEFAULT, prefix(other), shoal_fib::Source::Cli).unwrap();
        assert_eq!((router.fib.check(), router.locks()), (Vec::new(), before));
    }
}

#[test]
fn a_deletion_that_is_interrupted_says_how_many_are_gone() {
    let router = router(1);
    for (family, first, _) in FAMILIES {
        finish(begin(&router, &format!("add count=20000 prefix={first} via drop")).0).0.unwrap();
        let (mut work, client) = begin(&router, &format!("del count=20000 prefix={first}"));
        while count(&router, family) == 20_000 {
            assert_eq!(turn(&mut work), None);
        }
        client.0.set(true);
        let gone = 20_000 - count(&router, family);
        assert_eq!(finish(work).0, Err(format!("{gone} of 20000 are gone: interrupted")));
        assert_eq!(count(&router, family), 20_000 - gone);
        // One that is missing is found before any is deleted.
        let nth = |n: usize| shoal_fib::consecutive(prefix(first), 20_000).unwrap().nth(n).unwrap();
        let left = nth(gone);
        router.fib.remove(FibIndex::DEFAULT, nth(19_900), shoal_fib::Source::Cli).unwrap();
        let left_count = 20_000 - gone;
        let (done, _) = finish(begin(&router, &format!("del count={left_count} prefix={left}")).0);
        assert!(done.unwrap_err().contains("is not in table 0"));
        assert_eq!(count(&router, family), left_count - 1);
        assert_eq!(router.fib.check(), Vec::<String>::new());
    }
}

#[test]
fn few_are_done_at_once_and_too_many_are_refused_before_anything_is_done() {
    let router = router(1);
    let long = command().long.unwrap();
    assert!(!(long.when)(&args(&router, "add count=100 prefix=10.0.0.0/24 via drop")));
    assert!(!(long.when)(&args(&router, "add prefix=10.0.0.0/24 via drop")));
    for (family, first) in [(Family::Ip4, "255.255.0.0/24"), (Family::Ip6, "ffff:ffff:ffff:ff00::/64")] {
        let (done, _) = finish(begin(&router, &format!("add count=1000 prefix={first} via drop")).0);
        assert!(done.unwrap_err().contains("nearest 256"));
        assert_eq!(count(&router, family), 0);
    }
}
