//! The start-up file: VPP syntax, checked whole before anything is touched.
//!
//! Text becomes tokens ([`lex`]), tokens a tree ([`parse`]), the tree settings: every word is looked up in the
//! sections that the router and its modules declare (`shoal_module::config`), every value is read and held
//! against the [`Machine`]. The result is a [`StartUp`] or one [`Report`] of all mistakes.
//!
//! ```
//! use shoal_config::{Machine, Source, check};
//!
//! let machine = Machine { cores: vec![0, 1], allowed: vec![0, 1], numa_nodes: vec![0], uid: 0, as_vpp: false };
//! let startup = check(&[Source::words(["cpu", "{", "workers", "1", "}"])], &[], &machine).unwrap();
//! assert_eq!(startup.cpu.workers, [Some(1)]);
//!
//! let report = check(&[Source::file("startup.conf", "cpu { wrokers 1 }")], &[], &machine).unwrap_err();
//! assert!(report.to_string().contains("startup.conf:1:7: cpu has no setting 'wrokers'; did you mean 'workers'?"));
//! ```
//!
//! Deliberately absent: files are opened, groups looked up and sockets bound by the daemon, not here.
#![forbid(unsafe_code)]

mod check;
mod invocation;
pub mod lex;
mod machine;
pub mod parse;
mod place;
mod reference;
mod report;
mod sections;
mod startup;
mod value;

pub use invocation::{DEFAULT_FILE, Input, Invocation, InvocationError, USAGE};
pub use lex::Source;
pub use machine::Machine;
pub use reference::markdown;
pub use report::{Problem, Report};
pub use sections::OWN;
pub use startup::*;

use shoal_module::config::{Section, Settings};

/// Checks every source against the router's own sections and those of `declared` modules.
///
/// Sources count in their order: of a setting given twice the last one wins.
pub fn check(
    sources: &[Source],
    declared: &[&'static Section],
    machine: &Machine,
) -> Result<StartUp, Report> {
    let items = parse::parse(sources).map_err(|problems| Report::new(problems, sources))?;
    let known = check::known(declared);
    let mut check = check::Check {
        known: &known,
        machine,
        problems: Vec::new(),
        no_effect: Vec::new(),
        settings: std::collections::BTreeMap::new(),
    };
    check.stanzas(items);
    let check::Check { mut problems, no_effect, settings, .. } = check;
    let none = Settings::default();
    let section = |name| settings.get(name).unwrap_or(&none);
    let cpu = place::cpu(section("cpu"), machine, &mut problems);
    place::buffers(section("buffers"), machine, &mut problems);
    place::plugins(section("plugins"), &mut problems);
    if problems.is_empty() {
        Ok(startup::build(settings, no_effect, cpu, machine))
    } else {
        Err(Report::new(problems, sources))
    }
}
