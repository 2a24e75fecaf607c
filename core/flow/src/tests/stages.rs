//! What happens between the stages of a look-up.

use crate::{FlowTable, Search, Settings, Sweep, SweepAction, Tick, Timeout};

const FOREVER: Timeout = Timeout::new(0);

fn table(flows: u64) -> FlowTable<[u64; 1], u64> {
    let mut table = FlowTable::new(Settings::flows(100_000), Tick(0)).unwrap();
    for n in 0..flows {
        table.insert([n], n, FOREVER, Tick(0)).unwrap();
    }
    table
}

#[test]
fn a_flow_that_came_after_the_second_stage_is_found() {
    let mut table = table(500);
    let mut searches: Vec<_> = (400..700).map(|n| table.search([n])).collect();
    table.seek(&mut searches);
    // The index grows under the searches.
    for n in 500..5000 {
        table.insert([n], n, FOREVER, Tick(0)).unwrap();
    }
    for search in &searches {
        assert_eq!(table.find(search).map(|flow| *flow.value()), Some(search.key()[0]));
    }
}

#[test]
fn a_flow_that_went_after_the_second_stage_is_not_found() {
    let mut table = table(500);
    let mut searches: Vec<_> = (0..500).map(|n| table.search([n])).collect();
    table.seek(&mut searches);
    table.sweep(&mut Sweep::default(), 500, |_, _| SweepAction::Remove);
    assert!(searches.iter().all(|search| table.peek(search).is_none()));
    // Others are in the same places by now.
    for n in 1000..1500 {
        table.insert([n], n, FOREVER, Tick(0)).unwrap();
    }
    assert!(searches.iter().all(|search| table.find(search).is_none()));
    // The same keys again, elsewhere in memory.
    for n in (0..500).rev() {
        table.insert([n], n + 7, FOREVER, Tick(0)).unwrap();
    }
    assert!(searches.iter().all(|search| table.peek(search) == Some(&(search.key()[0] + 7))));
}

#[test]
fn the_second_stage_may_be_left_out() {
    let mut table = table(3000);
    for n in 0..6000 {
        let search = table.search([n]);
        assert_eq!(table.find(&search).map(|flow| *flow.value()), (n < 3000).then_some(n));
    }
}

#[test]
fn a_search_for_nothing_finds_nothing() {
    let mut table = table(1);
    let mut searches = [Search::default(), table.search([0]), Search::default()];
    assert_ne!(searches[0], searches[1]);
    table.seek(&mut searches);
    assert_eq!(searches.map(|search| table.find(&search).is_some()), [false, true, false]);
    // It begins when the table is at hand.
    let mut search = Search::of([0]);
    assert!(table.find(&search).is_none());
    table.begin(&mut search);
    assert!(table.find(&search).is_some() && search == table.search([0]));
}

#[test]
fn searches_for_the_same_are_equal() {
    let table = table(10);
    let mut searches = [table.search([3]), table.search([3]), table.search([4])];
    assert!(searches[0] == searches[1] && searches[1] != searches[2]);
    table.seek(&mut searches);
    assert!(searches[0] == searches[1] && searches[1] != searches[2]);
}

#[test]
fn one_is_looked_for_as_many_are() {
    // Full, so that some flows are in their second bucket.
    let mut table = table(100_000);
    let mut searches: Vec<_> = (90_000..110_000).map(|n| table.search([n])).collect();
    let mut alone = searches.clone();
    alone.push(Search::default());
    table.seek(&mut searches);
    for search in &mut alone {
        table.seek_one(search);
    }
    assert_eq!(alone.pop(), Some(Search::default()));
    assert_eq!(alone, searches);
    assert!(searches.iter().all(|search| table.find(search).is_some() == (search.key()[0] < 100_000)));
}
