//! The program with its maps: what the router wants of it becomes entries, while frames pass.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use shoal_link::IfIndex;
use shoal_wire::MacAddress;

use crate::Error;
use crate::pinhole::{MOST_RULES, Net, Pinhole, Rule};
use crate::program::{self, Maps};
use crate::sys::XdpMode;
use crate::sys::bpf::{Map, MapKind, Program, XdpLink};

/// Most queues of an interface.
pub(crate) const MOST_QUEUES: u32 = 64;
/// Most addresses of the kernel's that are known to the program.
pub(crate) const MOST_ADDRESSES: usize = 2048;

/// What the program is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    /// Whether the router takes frames at all.
    pub(crate) take: bool,
    /// The router's MAC address, if it has one of its own.
    pub(crate) own_mac: Option<MacAddress>,
    /// The kernel's.
    pub(crate) kernel_mac: MacAddress,
    pub(crate) pinhole: &'a Pinhole,
    /// The kernel's addresses on the interface.
    pub(crate) addresses: &'a [IpAddr],
}

/// How many frames went where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterCounts {
    /// To the host, by a rule or because the router's interface is down.
    pub passed: u64,
    /// To the router.
    pub redirected: u64,
    /// To the host, because their queue has no socket.
    pub no_socket: u64,
}

/// Keys and their values.
type Entries = BTreeMap<Vec<u8>, u8>;

pub(crate) struct Filter {
    program: Program,
    settings: Map,
    sockets: Map,
    counters: Map,
    /// The kernel's addresses, prefixes of destinations and of sources, ports: maps with what is in them.
    tables: [(Map, Entries); 4],
}

/// A MAC address as the program reads it: four bytes and two.
fn mac(mac: MacAddress) -> [u8; 8] {
    let [front @ .., fifth, sixth] = mac.0;
    (u64::from(u32::from_ne_bytes(front)) | u64::from(u16::from_ne_bytes([fifth, sixth])) << 32).to_ne_bytes()
}

/// A key of prefixes; without its first four bytes, of addresses.
fn key(net: Net) -> Vec<u8> {
    let (family, mut address) = match net.addr {
        IpAddr::V4(a) => (4u32, a.octets().to_vec()),
        IpAddr::V6(a) => (6, a.octets().to_vec()),
    };
    address.resize(16, 0);
    let len = program::FAMILY_BITS + u32::from(net.len);
    [&len.to_ne_bytes()[..], &family.to_ne_bytes(), &address].concat()
}

/// Ports with what they count for; a port that counts everywhere does so whatever else its entries hold.
fn ports(pinhole: &Pinhole) -> Entries {
    let mut entries = Entries::new();
    for (protocol, number, here) in pinhole.ports() {
        let key = (u32::from(protocol) << 16 | u32::from(number)).to_ne_bytes();
        let value = entries.entry(key.to_vec()).or_insert(program::HERE);
        if !here {
            *value = program::ANYWHERE;
        }
    }
    entries
}

fn flags(wanted: &Wanted<'_>) -> u32 {
    let pinhole = wanted.pinhole;
    let any = |f: fn(&Rule) -> bool| pinhole.rules().iter().any(f);
    [
        (wanted.take, program::TAKE),
        (!pinhole.is_empty(), program::ANY),
        (wanted.own_mac.is_some(), program::OWN_MAC),
        (pinhole.has(Rule::Others), program::OTHERS),
        (pinhole.has(Rule::Host), program::HOST),
        (pinhole.has(Rule::Arp), program::ARP),
        (pinhole.has(Rule::Dhcp), program::ADVERTISEMENTS),
        (any(|r| matches!(r, Rule::To(_))), program::TO),
        (any(|r| matches!(r, Rule::From(_))), program::FROM),
        (pinhole.ports().next().is_some(), program::PORTS),
    ]
    .into_iter()
    .filter(|(said, _)| *said)
    .fold(0, |flags, (_, bit)| flags | bit)
}

impl Filter {
    /// Loads the program, which takes no frames yet.
    pub(crate) fn new(frags: bool) -> Result<Self, Error> {
        use MapKind::{Array, Hash, PerCpuArray, Prefixes, Sockets};
        let most = MOST_RULES as u32;
        let settings = Map::create(Array, "settings", 4, 24, 1)?;
        // Twice as many: what goes and what comes are there together for a moment.
        let hosts = Map::create(Hash, "hosts", program::ADDRESS_KEY, 1, 2 * MOST_ADDRESSES as u32)?;
        let to = Map::create(Prefixes, "pinhole_to", program::PREFIX_KEY, 1, 2 * most)?;
        let from = Map::create(Prefixes, "pinhole_from", program::PREFIX_KEY, 1, 2 * most)?;
        let ports = Map::create(Hash, "pinhole_ports", 4, 1, 2 * most + 8)?;
        let sockets = Map::create(Sockets, "sockets", 4, 4, MOST_QUEUES)?;
        let counters = Map::create(PerCpuArray, "counters", 4, 8, program::COUNTERS)?;
        let code = program::program(&Maps {
            settings: settings.descriptor(),
            hosts: hosts.descriptor(),
            to: to.descriptor(),
            from: from.descriptor(),
            ports: ports.descriptor(),
            sockets: sockets.descriptor(),
            counters: counters.descriptor(),
        });
        let code = code.map_err(|e| Error::os("assembling the XDP program")(std::io::Error::other(e)))?;
        let program = Program::load(&code, "shoal_pinhole", frags)?;
        let tables = [hosts, to, from, ports].map(|map| (map, Entries::new()));
        Ok(Filter { program, settings, sockets, counters, tables })
    }

    /// Makes it so. What is to be kept is written before the settings that ask for it, and what is not is removed after
    /// them, so that no session of the host falls into a gap.
    pub(crate) fn apply(&mut self, wanted: &Wanted<'_>) -> Result<(), Error> {
        let nets = |f: fn(&Rule) -> Option<Net>| {
            wanted.pinhole.rules().iter().filter_map(f).map(|net| (key(net), 1)).collect()
        };
        let whole = |a: &IpAddr| Net { addr: *a, len: if a.is_ipv4() { 32 } else { 128 } };
        let address = |a| (key(whole(a)).split_off(4), 1);
        let wants: [Entries; 4] = [
            wanted.addresses.iter().take(MOST_ADDRESSES).map(address).collect(),
            nets(|r| if let Rule::To(net) = r { Some(*net) } else { None }),
            nets(|r| if let Rule::From(net) = r { Some(*net) } else { None }),
            ports(wanted.pinhole),
        ];
        for ((map, there), wants) in self.tables.iter_mut().zip(&wants) {
            for (key, value) in wants {
                if there.get(key) != Some(value) {
                    map.put(key, &[*value])?;
                    there.insert(key.clone(), *value);
                }
            }
        }
        let own = wanted.own_mac.unwrap_or(MacAddress::ZERO);
        let settings =
            [&flags(wanted).to_ne_bytes()[..], &[0; 4], &mac(own), &mac(wanted.kernel_mac)].concat();
        self.settings.put(&0u32.to_ne_bytes(), &settings)?;
        for ((map, there), wants) in self.tables.iter_mut().zip(wants) {
            // One by one, so that an error leaves on record what is there.
            for key in there.keys().filter(|key| !wants.contains_key(*key)).cloned().collect::<Vec<_>>() {
                map.remove(&key)?;
                there.remove(&key);
            }
        }
        Ok(())
    }

    /// The frames of a queue go to a socket.
    pub(crate) fn put_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Error> {
        self.sockets.put(&queue.to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes())
    }

    /// Ties the program to an interface.
    pub(crate) fn attach(&self, ifindex: IfIndex, mode: XdpMode) -> Result<XdpLink, Error> {
        self.program.attach(ifindex, mode)
    }

    /// The counters so far.
    pub(crate) fn counts(&self) -> Result<FilterCounts, Error> {
        Ok(FilterCounts {
            passed: self.counters.sum(program::PASSED)?,
            redirected: self.counters.sum(program::REDIRECTED)?,
            no_socket: self.counters.sum(program::NO_SOCKET)?,
        })
    }

    /// What becomes of a frame.
    #[cfg(test)]
    pub(crate) fn run(&self, frame: &[u8]) -> Result<u32, Error> {
        self.program.run(frame)
    }
}
