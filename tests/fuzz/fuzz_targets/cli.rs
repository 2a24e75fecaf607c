//! Any text, as what a CLI client sends: against all commands of the stack. Commands that touch files are left out,
//! because a fuzzer would find them.
#![no_main]

use std::cell::OnceCell;

use libfuzzer_sys::fuzz_target;
use shoal_cli::Cli;
use shoal_fuzz::{modules, router};
use shoal_testkit::Router;

thread_local! {
    static BED: OnceCell<(Router, Cli)> = const { OnceCell::new() };
}

fuzz_target!(|text: &str| {
    // `exec` and captures read and write files, `packet-generator` may make packets without end.
    if text.len() > 4096 || ["exec", "pcap", "capture", "packet", "comment"].iter().any(|w| text.contains(w))
    {
        return;
    }
    BED.with(|bed| {
        let (router, cli) = bed.get_or_init(|| {
            let commands = modules().into_iter().flat_map(|m| m.commands);
            let types = modules().into_iter().flat_map(|m| m.arg_types).chain(shoal_module::cli::WIRE);
            (router(), Cli::new(commands, types).expect("the commands agree"))
        });
        for cursor in [0, text.len() / 2, text.len()] {
            if text.is_char_boundary(cursor) {
                let _ = cli.complete(router.control(), text, cursor);
            }
        }
        // Parsed whole and found right or wrong, but not run: what a command does is its own tests' business.
        let _ = cli.check(router.control(), text);
    });
});
