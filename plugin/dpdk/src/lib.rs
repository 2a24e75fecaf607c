//! DPDK's devices as interfaces: `dpdk_plugin.so`.
//!
//! `config` reads the stanza `dpdk { ... }` and what operators write, `control` decides, `names` names, `show` prints;
//! `sys` is the border to the shim in C, which has the data path. The EAL starts with the stanza, or with the first
//! device that is attached; the router's threads stay its own.
#![deny(unsafe_code)]

mod bind;
mod config;
mod control;
mod eal;
mod names;
mod nearest;
mod show;
#[allow(unsafe_code)]
mod sys;

use shoal_plugin_sdk::{Plugin, Words};

/// The driver, with all it knows.
static DPDK: control::Dpdk = control::Dpdk::new();

shoal_plugin_sdk::export!(
    Plugin::new("dpdk", env!("CARGO_PKG_VERSION"), "Data Plane Development Kit (DPDK)")
        .driver(&DPDK)
        .command("show dpdk version", "Show DPDK's version and the EAL's arguments", Words::None, |_| {
            Ok(show::version(&DPDK))
        })
        .command("show dpdk buffer", "Show DPDK's pools of packets", Words::None, |_| Ok(show::buffer()))
        .command("show dpdk devices", "Show the ports that DPDK has", Words::None, |_| {
            Ok(show::devices(&DPDK))
        })
);
