//! Starts one device, says how to attach to it, and keeps it until a line comes in or the input ends.
//!
//!   cargo run -p shoal-lab-dut --example device -- linux-route af-packet [FORWARDING]
//!
//! FORWARDING is `route`, `cross-connect`, `bridge` or `snat` (behind 203.0.113.1-9); what the device can do if it is left out.
//! PREFIX and FOLDER in the environment are the settings of those names, ROUTES is how many more routes of each family.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to people")]

use std::env;
use std::io::stdin;
use std::process::ExitCode;

use shoal_lab_dut::{KNOWN, Settings, device};
use shoal_lab_plan::{Addresses, Device, Forwarding, Nat, Scenario};

fn run() -> Result<(), String> {
    let mut words = env::args().skip(1);
    let (Some(name), Some(transport)) = (words.next(), words.next()) else {
        let names: Vec<&str> = KNOWN.iter().map(|k| k.name).collect();
        return Err(format!("usage: device NAME TRANSPORT [FORWARDING]; names are {}", names.join(", ")));
    };
    let able = KNOWN.iter().find(|k| k.name == name).and_then(|k| k.forwardings.first());
    let forwarding = words.next().or_else(|| able.map(|f| (*f).to_owned())).unwrap_or_default();
    let forwarding = match forwarding.as_str() {
        "cross-connect" => Forwarding::CrossConnect,
        "bridge" => Forwarding::Bridge,
        "snat" => Forwarding::Snat(Nat { first: [203, 0, 113, 1].into(), last: [203, 0, 113, 9].into() }),
        _ => Forwarding::Route,
    };
    let scenario = Scenario {
        forwarding,
        addresses: Addresses::default(),
        networks: 1,
        routes: env::var("ROUTES").ok().and_then(|n| n.parse().ok()).unwrap_or(0),
        workers: 1,
        mtu: 1500,
    };
    let mut settings = Settings::default();
    if let Ok(prefix) = env::var("PREFIX") {
        settings.prefix = prefix;
    }
    if let Some(folder) = env::var_os("FOLDER") {
        settings.folder = folder.into();
    }
    settings.shoal = env::var_os("SHOAL").map(Into::into);
    let mut device: Box<dyn Device> = device(&name, &settings).map_err(|e| e.to_string())?;
    let ports = device.start(&scenario, &transport).map_err(|e| e.to_string())?;
    println!("{ports:#?}");
    println!("{:#?}", device.describe());
    println!("ready");
    let mut line = String::new();
    stdin().read_line(&mut line).map_err(|e| e.to_string())?;
    println!("{:#?}", device.counters().map_err(|e| e.to_string())?);
    println!("CPU time: {:?} us", device.cpu_time());
    device.stop();
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("device: {why}");
            ExitCode::FAILURE
        }
    }
}
