//! Prints a table as commands of the CLI.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use shoal_lab_routes::commands::{self, Wanted};
use shoal_lab_routes::dump;
use shoal_lab_routes::feed::Router;
use shoal_lab_routes::mrt::{Route, Routes};

/// Prints a routing table like the Internet's as commands of Shoal's CLI, or loads it into a running router.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    from: Option<RouteSource>,
    /// Load the table into the router with this CLI socket instead of printing it
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Print the table as a route collector's dump, MRT (binary), and not as commands
    #[arg(long, conflicts_with = "socket")]
    dump: bool,
    /// IPv4 prefixes
    #[arg(long, default_value_t = Wanted::INTERNET.ip4 as u32)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    ip4: u32,
    /// IPv6 prefixes
    #[arg(long, default_value_t = Wanted::INTERNET.ip6 as u32)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    ip6: u32,
    /// Neighbours that routes lead to, of each family
    #[arg(long, default_value_t = Wanted::INTERNET.next_hops, global = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=60_000))]
    next_hops: u16,
    /// How many routes of a hundred have a next hop that another route leads to
    #[arg(long, default_value_t = Wanted::INTERNET.recursive)]
    #[arg(value_parser = clap::value_parser!(u8).range(..=100))]
    recursive: u8,
    /// The first IPv4 neighbour; the others follow it
    #[arg(long, default_value_t = Wanted::INTERNET.first4, global = true)]
    first4: Ipv4Addr,
    /// The first IPv6 neighbour
    #[arg(long, default_value_t = Wanted::INTERNET.first6, global = true)]
    first6: Ipv6Addr,
    /// The same seed gives the same table
    #[arg(long, default_value_t = Wanted::INTERNET.seed)]
    seed: u64,
}

#[derive(Subcommand)]
enum RouteSource {
    /// The table of a route collector: an MRT file, TABLE_DUMP_V2, not compressed
    Mrt {
        /// The file; `-` is standard input
        file: PathBuf,
        /// Keep the dump's next hops; without it they become the neighbours
        #[arg(long)]
        keep_next_hops: bool,
    },
    /// A file of commands, as it is
    Text {
        /// The file; `-` is standard input
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe || arguments.socket.is_some() => {
            eprintln!("routes: {e}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn run(a: &Arguments) -> io::Result<()> {
    let Some(socket) = &a.socket else {
        let mut out = BufWriter::new(io::stdout().lock());
        return write(a, &mut out).and_then(|()| out.flush());
    };
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", socket.display()));
    let expected = a.from.is_none().then_some(u64::from(a.ip4) + u64::from(a.ip6));
    let mut router = Router::connect(socket, expected).map_err(named)?;
    write(a, &mut router)?;
    println!("{}", router.finish()?);
    Ok(())
}

fn write(a: &Arguments, out: &mut impl Write) -> io::Result<()> {
    match &a.from {
        None if a.dump => dump::write(&wanted(a), out),
        None => commands::write(&wanted(a), out),
        Some(RouteSource::Text { file }) => io::copy(&mut open(file)?, out).map(drop),
        Some(RouteSource::Mrt { file, keep_next_hops }) => {
            let mut routes = Routes::new(open(file)?);
            let mut neighbours = Neighbours { of: a, seen: HashMap::new() };
            while let Some(Route { network, len, next_hop }) = routes.read()? {
                let via = if *keep_next_hops { next_hop } else { neighbours.instead_of(network, next_hop) };
                writeln!(out, "ip route add {network}/{len} via {via}")?;
            }
            Ok(())
        }
    }
}

fn open(file: &Path) -> io::Result<Box<dyn Read>> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(BufReader::new(io::stdin().lock())));
    }
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", file.display()));
    Ok(Box::new(BufReader::with_capacity(1 << 20, File::open(file).map_err(named)?)))
}

/// Which neighbour stands for a next hop of a dump.
struct Neighbours<'a> {
    of: &'a Arguments,
    seen: HashMap<IpAddr, u32>,
}

impl Neighbours<'_> {
    fn instead_of(&mut self, network: IpAddr, next_hop: IpAddr) -> IpAddr {
        let new = self.seen.len() as u32 % u32::from(self.of.next_hops);
        let n = *self.seen.entry(next_hop).or_insert(new);
        match network {
            IpAddr::V4(_) => Ipv4Addr::from_bits(self.of.first4.to_bits().wrapping_add(n)).into(),
            IpAddr::V6(_) => Ipv6Addr::from_bits(self.of.first6.to_bits().wrapping_add(n.into())).into(),
        }
    }
}

fn wanted(a: &Arguments) -> Wanted {
    Wanted {
        ip4: a.ip4 as usize,
        ip6: a.ip6 as usize,
        next_hops: a.next_hops,
        recursive: a.recursive,
        first4: a.first4,
        first6: a.first6,
        seed: a.seed,
    }
}
