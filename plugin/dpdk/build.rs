//! Compiles the shim and links DPDK, as pkg-config says.

use std::error::Error;
use std::process::Command;

fn pkg_config(words: &[&str]) -> Result<Vec<String>, Box<dyn Error>> {
    let output = Command::new("pkg-config").args(words).arg("libdpdk").output()?;
    if !output.status.success() {
        return Err("DPDK's headers are not installed, expected libdpdk-dev of Debian 12 or the like".into());
    }
    Ok(String::from_utf8(output.stdout)?.split_whitespace().map(str::to_owned).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut shim = cc::Build::new();
    for flag in pkg_config(&["--cflags"])? {
        shim.flag(&flag);
    }
    shim.include("../include").include("shim").opt_level(3).std("gnu11").warnings(true).extra_warnings(true);
    shim.files(["shim/control.c", "shim/data.c"]).try_compile("shoal_dpdk_shim")?;
    // What of it the shim itself calls; the rest comes with that.
    for library in ["rte_ethdev", "rte_eal", "rte_mbuf", "rte_mempool", "rte_net"] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    for flag in pkg_config(&["--libs-only-L"])? {
        println!("cargo::rustc-link-search=native={}", flag.trim_start_matches("-L"));
    }
    for file in ["shim/control.c", "shim/data.c", "shim/shim.h", "shim/port.h", "../include/shoal_plugin.h"] {
        println!("cargo::rerun-if-changed={file}");
    }
    Ok(())
}
