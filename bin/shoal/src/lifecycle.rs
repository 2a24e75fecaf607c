//! A long life in one process: interfaces, addresses, tables, routes and neighbours come and go at random, as operators
//! say it, with packets in between. After each step all forwarding structures hold together; when all has gone, nothing
//! is left behind, round after round.

use std::rc::Rc;

use shoal_cli::Cli;
use shoal_fib::{Capacity, Family, Fib};
use shoal_module::{Control, Module};
use shoal_testkit::{Rng, Router};

/// Steps of a round.
const STEPS: usize = 1_000;
const ROUNDS: usize = 6;

fn cli(control: &Rc<Control>, line: &str) -> Result<String, String> {
    let cli = control.get::<Cli>().map_err(|e| e.to_string())?;
    let reply = cli.execute_now(control, line);
    if reply.is_ok() { Ok(reply.text()) } else { Err(reply.text()) }
}

/// All modules but those that need files, sockets or privileges.
pub(crate) fn router() -> Router {
    let needs_more = ["logging", "stats", "af_packet", "tap"];
    let modules: Vec<&'static Module> =
        crate::modules::all().filter(|m| !needs_more.contains(&m.name)).collect();
    let router = Router::with_cli(&modules, cli);
    let types = modules.iter().flat_map(|m| m.arg_types).chain(shoal_module::cli::WIRE);
    router.control().put(Cli::new(modules.iter().flat_map(|m| m.commands), types).unwrap());
    router
}

struct Life {
    router: Router,
    rng: Rng,
    accepted: usize,
}

impl Life {
    fn one_of(&mut self, words: &[&str]) -> String {
        (*self.rng.pick(words)).to_owned()
    }

    fn number(&mut self, below: usize) -> usize {
        self.rng.below(below)
    }

    fn interface(&mut self) -> String {
        format!("pg{}", self.number(4))
    }

    fn table(&mut self) -> usize {
        self.number(3)
    }

    /// Few addresses, so that things meet; hosts of the interfaces' networks and others.
    fn address(&mut self, six: bool) -> String {
        let (net, host) = (self.number(4), 1 + self.number(3));
        match (six, self.number(2)) {
            (false, 0) => format!("10.0.{net}.{host}"),
            (false, _) => format!("20.{net}.0.{host}"),
            (true, 0) => format!("2001:db8:{net}::{host}"),
            (true, _) => format!("2a00:{net}::{host}"),
        }
    }

    fn prefix(&mut self, six: bool) -> String {
        let len = if six { ["128", "64", "48", "32", "20", "0"] } else { ["32", "24", "16", "15", "8", "0"] };
        format!("{}/{}", self.address(six), self.one_of(&len))
    }

    fn path(&mut self, six: bool) -> String {
        // A next hop may be of the other family.
        let other = self.number(8) == 0;
        let hop = self.address(six != other);
        let (interface, table) = (self.interface(), self.table());
        let lookup = if six { "ip6-lookup-in-table" } else { "ip4-lookup-in-table" };
        let via = match self.number(10) {
            0..4 => format!("{hop} {interface}"),
            4..7 => hop,
            7 => interface,
            8 => format!("{lookup} {table}"),
            _ => self.one_of(&["drop", "unreachable", "prohibit", "local", "punt"]),
        };
        let weight = ["", " weight 3", " preference 1", " resilient"];
        format!(" via {via}{}", self.one_of(&weight))
    }

    fn route(&mut self) -> String {
        let six = self.number(2) == 0;
        let (prefix, table) = (self.prefix(six), self.table());
        let verb = self.one_of(&["add", "add", "add", "del"]);
        let count = self.one_of(&["", "", "", "count 7 "]);
        let paths = if verb == "del" && self.number(2) == 0 { 0 } else { 1 + self.number(3) };
        let paths: String = (0..paths).map(|_| self.path(six)).collect();
        format!("ip route {verb} {count}{prefix} table {table}{paths}")
    }

    fn step(&mut self) -> String {
        let six = self.number(2) == 0;
        let (interface, table, address) = (self.interface(), self.table(), self.address(six));
        let family = if six { "ip6" } else { "ip" };
        match self.number(20) {
            0 => format!("create packet-generator interface {interface}"),
            1 if self.number(3) == 0 => format!("delete packet-generator interface {interface}"),
            1 | 2 => format!("set interface state {interface} {}", self.one_of(&["up", "up", "down"])),
            3 | 4 => {
                let len = if six { 64 } else { 24 };
                let del = self.one_of(&["", "", "del "]);
                format!("set interface ip address {del}{interface} {address}/{len}")
            }
            5 => format!("{family} table {} {table}", self.one_of(&["add", "add", "del"])),
            6 => format!("set interface {family} table {interface} {table}"),
            7 | 8 => {
                let del = self.one_of(&["", "", "del "]);
                let mac = if del.is_empty() { " 02:00:00:00:00:09" } else { "" };
                format!("set ip neighbor {del}{interface} {address}{mac}")
            }
            9 => format!("set {family} flow-hash table {table} src dst"),
            _ => self.route(),
        }
    }

    fn packets(&mut self) {
        for n in 0..4u32 {
            let (src, dst, six) = (self.number(4) as u8, self.number(4) as u8, self.number(2) == 0);
            let Some(index) = self.router.interfaces().by_name(&format!("pg{n}")) else { continue };
            let packet = shoal_testkit::PacketBuilder::raw();
            let bytes = if six {
                let addr = |n: u8| std::net::Ipv6Addr::new(0x2001, 0xdb8, n.into(), 0, 0, 0, 0, 2);
                packet.ip6(addr(src), addr(dst)).udp(1, 2).build()
            } else {
                packet.ip4([10, 0, src, 2], [10, 0, dst, 2]).udp(1, 2).build()
            };
            self.router.inject(if six { "ip6-input" } else { "ip4-input" }, index, &bytes);
        }
        self.router.run();
    }

    fn check(&self, after: &str) {
        let broken = self.router.get::<Fib>().check();
        assert!(broken.is_empty(), "after `{after}': {broken:?}");
    }

    fn run(&mut self, line: &str) {
        self.accepted += usize::from(self.router.cli(line).is_ok());
        self.check(line);
    }

    /// Takes everything away, as an operator would.
    fn clear(&mut self) {
        for n in 0..4 {
            let _ = self.router.cli(&format!("delete packet-generator interface pg{n}"));
        }
        let fib = self.router.get::<Fib>();
        for family in Family::ALL {
            for table in fib.list_tables(family) {
                for entry in fib.entries(family, table.index).unwrap() {
                    let _ = self.router.cli(&format!("ip route del {} table {}", entry.prefix, table.id));
                }
            }
        }
        for (table, family) in (1..3).flat_map(|t| [(t, "ip"), (t, "ip6")]) {
            let _ = self.router.cli(&format!("{family} table del {table}"));
        }
        // What waited for neighbours is given up, what was retired is freed.
        for _ in 0..20 {
            self.router.advance(std::time::Duration::from_secs(1));
        }
        self.check("clearing");
    }
}

/// What must come back to where it was.
fn kept(capacity: &Capacity) -> [usize; 9] {
    let Capacity { tables, routes, path_lists, next_hops, adjacencies: a, .. } = capacity;
    [
        tables[0],
        tables[1],
        routes[0],
        routes[1],
        *path_lists,
        *next_hops,
        a.adjacencies,
        a.balances,
        a.buckets,
    ]
}

/// In a process of its own: what tables have taken is counted for the whole process, and so is the time that passes
/// before what they gave up is freed, so the tests beside this one would be counted too.
#[test]
fn what_comes_and_goes_leaves_nothing_behind() {
    const ALONE: &str = "SHOAL_LIFECYCLE_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return live();
    }
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let seeds =
        std::env::var("SHOAL_SEED").map_or(vec!["23".to_owned(), "3".into(), "10".into()], |s| vec![s]);
    for seed in seeds {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--nocapture", "--test-threads=1"])
            .envs([(ALONE, "1"), ("SHOAL_SEED", &seed)])
            .output()
            .unwrap();
        let said = [child.stdout, child.stderr].map(|s| String::from_utf8_lossy(&s).into_owned()).concat();
        println!("{said}");
        assert!(child.status.success() && said.contains("1 passed"), "see above");
    }
}

fn live() {
    let mut life = Life { router: router(), rng: Rng::new(Rng::seed(23)), accepted: 0 };
    life.router.may_hold(4096);
    life.clear();
    let fib = life.router.get::<Fib>();
    let (before, mut bytes) = (kept(&fib.capacity()), Vec::new());
    for round in 0..ROUNDS {
        for _ in 0..STEPS {
            let line = life.step();
            life.run(&line);
            if life.number(4) == 0 {
                life.packets();
                life.check("packets");
            }
        }
        life.clear();
        assert_eq!(kept(&fib.capacity()), before, "after round {round}");
        assert_eq!(life.router.buffers_in_use(), 0, "after round {round}");
        bytes.push(fib.capacity().memory);
    }
    assert!(life.accepted > STEPS, "only {} lines were accepted", life.accepted);
    // Memory that a table keeps for its next growth is not a leak, memory that grows without end is one.
    let (early, late) = bytes.split_at(ROUNDS / 2);
    println!("bytes after each round: {bytes:?}");
    assert!(late.iter().max() <= early.iter().max().map(|most| most * 5 / 4).as_ref(), "{bytes:?}");
}
