//! Many interfaces in a whole router: the last ones are made, addressed and deleted as fast as the first, and a
//! constraint of features that names none is seen at the start.

use std::time::{Duration, Instant};

use shoal_config::Plugins;
use shoal_module::{Control, InitError, Module};
use shoal_testkit::Router;

use crate::modules;

/// Interfaces of the test, those at each end that are compared, and how many of them are timed together.
const ALL: usize = 4_000;
const PART: usize = 1_000;
const TOGETHER: usize = 20;

/// All modules but those that need files, sockets or privileges, of these.
fn without_files(of: impl Iterator<Item = &'static Module>) -> Vec<&'static Module> {
    let needs_more = ["logging", "stats", "af_packet", "tap"];
    of.filter(|m| !needs_more.contains(&m.name)).collect()
}

/// The time of the last part against that of the first.
fn steady(what: &str, times: &[Duration]) {
    let sum = |part: &[Duration]| part.iter().sum::<Duration>();
    // The shortest of many short ones: others that use the machine do not disturb all of them.
    let least = |parts: &[Duration]| parts.chunks(TOGETHER).map(sum).min().unwrap();
    let (first, last) = (least(&times[..PART]), least(&times[times.len() - PART..]));
    assert!(last < first * 4, "{what}: {first:?} for the first {TOGETHER}, {last:?} for the last");
}

fn timed(times: &mut Vec<Duration>, work: impl FnOnce()) {
    let begun = Instant::now();
    work();
    times.push(begun.elapsed());
}

#[test]
fn the_last_of_many_interfaces_costs_no_more_than_the_first() {
    let router = Router::new(&without_files(modules::all()));
    let interfaces = router.interfaces();
    let (ip4, ip6) = (
        router.control().get::<shoal_ip4::Ip4>().unwrap(),
        router.control().get::<shoal_ip6::Ip6>().unwrap(),
    );
    let mut all = Vec::new();
    let (mut made, mut addressed, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..ALL as u32 {
        timed(&mut made, || {
            let index = interfaces.create_loopback(None, None).unwrap();
            interfaces.set_admin(index, true).unwrap();
            all.push(index);
        });
        timed(&mut addressed, || {
            let four = format!("10.{}.{}.1/24", number >> 8, number & 0xff);
            ip4.add_address(all[all.len() - 1], four.parse().unwrap()).unwrap();
            ip6.add_address(all[all.len() - 1], format!("2001:db8:{number:x}::1/64").parse().unwrap())
                .unwrap();
        });
    }
    for index in all {
        timed(&mut deleted, || interfaces.delete_loopback(index).unwrap());
    }
    steady("made", &made);
    steady("addressed", &addressed);
    // In deletion the last ones find the smallest tables, so the first are compared with them.
    deleted.reverse();
    steady("deleted", &deleted);
}

/// Says which features all modules have, before they start.
static KNOWN: Module = Module { name: "known", init: know, ..Module::NONE };

fn know(control: &std::rc::Rc<Control>) -> Result<(), InitError> {
    control.graph()?.know_features(modules::all().flat_map(|module| module.features).copied());
    Ok(())
}

#[test]
fn every_feature_that_a_constraint_names_is_one_of_a_module_there_or_left_out() {
    for default in [true, false] {
        let plugins = Plugins { default: Some(default), ..Plugins::default() };
        let modules = without_files(modules::enabled(&plugins).into_iter());
        let modules: Vec<_> = std::iter::once(&KNOWN).chain(modules).collect();
        // It panics when a name is not known.
        drop(Router::new(&modules));
    }
}
