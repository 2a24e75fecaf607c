//! Any bytes, as a start-up file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_config::{Machine, Source, check};

fuzz_target!(|data: &[u8]| {
    let machine =
        Machine { cores: vec![0, 1], allowed: vec![0, 1], numa_nodes: vec![0], uid: 0, as_vpp: false };
    match check(&[Source::file("startup.conf", data)], &[], &machine) {
        Ok(startup) => drop(startup.warning()),
        Err(report) => assert!(report.to_string().contains("startup.conf")),
    }
});
