//! Prints a table as commands of the CLI.
#![forbid(unsafe_code)]

use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;

use clap::Parser;
use shoal_lab_routes::commands::{self, Wanted};

/// Prints a routing table like the Internet's as commands of Shoal's CLI.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// IPv4 prefixes
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    ip4: u32,
    /// IPv6 prefixes
    #[arg(long, default_value_t = 230_000, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    ip6: u32,
    /// Neighbours that routes lead to, of each family
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=60_000))]
    next_hops: u16,
    /// How many routes of a hundred have a next hop that another route leads to
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u8).range(..=100))]
    recursive: u8,
    /// The first IPv4 neighbour; the others follow it
    #[arg(long, default_value = "10.0.1.2")]
    first4: Ipv4Addr,
    /// The first IPv6 neighbour
    #[arg(long, default_value = "fd00:1::2")]
    first6: Ipv6Addr,
    /// The same seed gives the same table
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let a = Arguments::parse();
    let wanted = Wanted {
        ip4: a.ip4 as usize,
        ip6: a.ip6 as usize,
        next_hops: a.next_hops,
        recursive: a.recursive,
        first4: a.first4,
        first6: a.first6,
        seed: a.seed,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    match commands::write(&wanted, &mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("routes: {e}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
