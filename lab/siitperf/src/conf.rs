//! `siitperf.conf`: a key and a value on each line, `#` before comments.

use std::fmt::Display;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use shoal_lab_frame::{DESTINATION_PORTS, Mac, SOURCE_PORTS, nearest};
use shoal_lab_plan::Family;

use crate::error::InputError;

/// What a configuration file says. Pairs are left and right; those of ports forward and reverse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conf {
    /// `IP-L-Vers`, `IP-R-Vers`: what each side sends in the foreground.
    pub versions: [Family; 2],
    /// `IPv4-L-Real`, `IPv4-R-Real`: the tester's own addresses.
    pub real4: [Ipv4Addr; 2],
    /// `IPv6-L-Real`, `IPv6-R-Real`.
    pub real6: [Ipv6Addr; 2],
    /// `IPv4-L-Virt`, `IPv4-R-Virt`: by which that side is known across a translating device.
    pub virt4: [Ipv4Addr; 2],
    /// `IPv6-L-Virt`, `IPv6-R-Virt`.
    pub virt6: [Ipv6Addr; 2],
    /// `MAC-L-Tester`, `MAC-R-Tester`.
    pub mac_tester: [Mac; 2],
    /// `MAC-L-DUT`, `MAC-R-DUT`.
    pub mac_dut: [Mac; 2],
    /// `Forward`, `Reverse`: which directions are active.
    pub active: [bool; 2],
    /// `Promisc`: receive what is not for the port's MAC, too.
    pub promisc: bool,
    /// `Num-L-Nets`, `Num-R-Nets`.
    pub networks: [u16; 2],
    /// `Fwd-…` and `Rev-…`: ports.
    pub ports: [PortKeys; 2],
    /// `IP-L-…` and `IP-R-…`: hosts.
    pub hosts: [HostKeys; 2],
    /// `Stateful`: 0 no, 1 the initiator is at the left, 2 at the right.
    pub stateful: u8,
    /// `Enumerate-ports`: 0 no, 1 rising, 2 falling, 3 permuted.
    pub enumerate_ports: u8,
    /// `Enumerate-ips`.
    pub enumerate_ips: u8,
    /// `Responder-tuples` (`Responder-ports` of old): 0 one, 1 rising, 2 falling, 3 random.
    pub responder_tuples: u8,
    /// What was read and has no effect here, for people.
    pub notes: Vec<String>,
}

/// How ports of a direction vary: 0 fixed, 1 rising, 2 falling, 3 random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortKeys {
    /// `var-sport`.
    pub source: u8,
    /// `var-dport`.
    pub destination: u8,
    /// `sport-min`, `sport-max`.
    pub source_range: (u16, u16),
    /// `dport-min`, `dport-max`.
    pub destination_range: (u16, u16),
}

/// How a side's hosts vary: 0 fixed, 1 rising, 2 falling, 3 random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostKeys {
    /// `var`.
    pub order: u8,
    /// `min`, `max`.
    pub range: (u16, u16),
    /// `IPv4-…-offset`.
    pub offset4: u8,
    /// `IPv6-…-offset`.
    pub offset6: u8,
}

impl Default for Conf {
    /// What the original takes where the file says nothing.
    fn default() -> Self {
        let ports = PortKeys {
            source: 0,
            destination: 0,
            source_range: SOURCE_PORTS,
            destination_range: DESTINATION_PORTS,
        };
        let hosts = HostKeys { order: 0, range: (2, 65_534), offset4: 2, offset6: 14 };
        Conf {
            versions: [Family::Ip6, Family::Ip4],
            real4: [Ipv4Addr::UNSPECIFIED; 2],
            real6: [Ipv6Addr::UNSPECIFIED; 2],
            virt4: [Ipv4Addr::UNSPECIFIED; 2],
            virt6: [Ipv6Addr::UNSPECIFIED; 2],
            mac_tester: [[0; 6]; 2],
            mac_dut: [[0; 6]; 2],
            active: [true; 2],
            promisc: true,
            networks: [1; 2],
            ports: [ports; 2],
            hosts: [hosts; 2],
            stateful: 0,
            enumerate_ports: 0,
            enumerate_ips: 0,
            responder_tuples: 0,
            notes: Vec::new(),
        }
    }
}

/// All keys.
pub const KEYS: [&str; 51] = [
    "IP-L-Vers",
    "IP-R-Vers",
    "IPv4-L-Real",
    "IPv4-R-Real",
    "IPv6-L-Real",
    "IPv6-R-Real",
    "IPv4-L-Virt",
    "IPv4-R-Virt",
    "IPv6-L-Virt",
    "IPv6-R-Virt",
    "MAC-L-Tester",
    "MAC-R-Tester",
    "MAC-L-DUT",
    "MAC-R-DUT",
    "Forward",
    "Reverse",
    "Promisc",
    "Num-L-Nets",
    "Num-R-Nets",
    "CPU-L-Send",
    "CPU-R-Recv",
    "CPU-R-Send",
    "CPU-L-Recv",
    "MEM-Channels",
    "Fwd-var-sport",
    "Fwd-var-dport",
    "Fwd-sport-min",
    "Fwd-sport-max",
    "Fwd-dport-min",
    "Fwd-dport-max",
    "Rev-var-sport",
    "Rev-var-dport",
    "Rev-sport-min",
    "Rev-sport-max",
    "Rev-dport-min",
    "Rev-dport-max",
    "IP-L-var",
    "IP-R-var",
    "IP-L-min",
    "IP-L-max",
    "IP-R-min",
    "IP-R-max",
    "IPv4-L-offset",
    "IPv4-R-offset",
    "IPv6-L-offset",
    "IPv6-R-offset",
    "Stateful",
    "Enumerate-ports",
    "Enumerate-ips",
    "Responder-tuples",
    "Responder-ports",
];

impl FromStr for Conf {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let mut conf = Conf::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(key) = words.next() else { continue };
            if !KEYS.contains(&key) {
                let nearest = nearest(key, &KEYS).to_owned();
                return Err(InputError::Key { line: number, key: key.to_owned(), nearest });
            }
            let entry = Entry { line: number, key, value: words.next() };
            conf.set(&entry)?;
            if words.next().is_some() {
                // The original reads one value and does not look further, so files that work there may have more.
                conf.notes
                    .push(format!("line {number}: what stands behind the value of `{key}` has no effect"));
            }
        }
        conf.whole()?;
        Ok(conf)
    }
}

impl Conf {
    fn set(&mut self, entry: &Entry<'_>) -> Result<(), InputError> {
        let [left, right] = &mut self.hosts;
        let [forward, reverse] = &mut self.ports;
        match entry.key {
            "IP-L-Vers" => self.versions[0] = entry.version()?,
            "IP-R-Vers" => self.versions[1] = entry.version()?,
            "IPv4-L-Real" => self.real4[0] = entry.parsed("198.18.0.2")?,
            "IPv4-R-Real" => self.real4[1] = entry.parsed("198.19.0.2")?,
            "IPv6-L-Real" => self.real6[0] = entry.parsed("2001:2::2")?,
            "IPv6-R-Real" => self.real6[1] = entry.parsed("2001:2:0:8000::2")?,
            "IPv4-L-Virt" => self.virt4[0] = entry.parsed("198.18.0.2")?,
            "IPv4-R-Virt" => self.virt4[1] = entry.parsed("198.19.0.2")?,
            "IPv6-L-Virt" => self.virt6[0] = entry.parsed("2001:2::2")?,
            "IPv6-R-Virt" => self.virt6[1] = entry.parsed("2001:2:0:1000::2")?,
            "MAC-L-Tester" => self.mac_tester[0] = entry.mac()?,
            "MAC-R-Tester" => self.mac_tester[1] = entry.mac()?,
            "MAC-L-DUT" => self.mac_dut[0] = entry.mac()?,
            "MAC-R-DUT" => self.mac_dut[1] = entry.mac()?,
            "Forward" => self.active[0] = entry.number(0..=1)? == 1,
            "Reverse" => self.active[1] = entry.number(0..=1)? == 1,
            "Promisc" => self.promisc = entry.number(0..=1)? == 1,
            "Num-L-Nets" => self.networks[0] = entry.number(1..=256)? as u16,
            "Num-R-Nets" => self.networks[1] = entry.number(1..=256)? as u16,
            "CPU-L-Send" | "CPU-R-Recv" | "CPU-R-Send" | "CPU-L-Recv" | "MEM-Channels" => {
                let value = entry.number(0..=65_535)?;
                self.notes
                    .push(format!("{} {value} has no effect: the lab places its threads itself", entry.key));
            }
            "Stateful" => self.stateful = entry.number(0..=2)? as u8,
            "Enumerate-ports" => self.enumerate_ports = entry.order()?,
            "Enumerate-ips" => self.enumerate_ips = entry.order()?,
            "Responder-tuples" | "Responder-ports" => self.responder_tuples = entry.order()?,
            key => match key.get(..5) {
                Some("Fwd-v" | "Fwd-s" | "Fwd-d") => forward.set(entry)?,
                Some("Rev-v" | "Rev-s" | "Rev-d") => reverse.set(entry)?,
                Some("IP-L-" | "IPv4-" | "IPv6-") if key.contains("-L-") => left.set(entry)?,
                _ => right.set(entry)?,
            },
        }
        Ok(())
    }

    /// What only the whole file shows.
    fn whole(&self) -> Result<(), InputError> {
        if self.stateful == 0 && self.active == [false; 2] {
            return Err(InputError::NoDirection);
        }
        let ranges = [
            ("Fwd-sport-max", self.ports[0].source_range),
            ("Fwd-dport-max", self.ports[0].destination_range),
            ("Rev-sport-max", self.ports[1].source_range),
            ("Rev-dport-max", self.ports[1].destination_range),
            ("IP-L-max", self.hosts[0].range),
            ("IP-R-max", self.hosts[1].range),
        ];
        for (key, (min, max)) in ranges {
            if max < min {
                let text = format!("`{key}` is {max}, below the smallest value {min}; the nearest is {min}");
                return Err(InputError::Together(text));
            }
        }
        for (side, networks, hosts) in
            [("L", self.networks[0], self.hosts[0]), ("R", self.networks[1], self.hosts[1])]
        {
            if networks > 1 && hosts.order > 0 {
                return Err(InputError::Together(format!(
                    "`Num-{side}-Nets` is {networks} while `IP-{side}-var` is {}; many hosts need 1 network",
                    hosts.order
                )));
            }
        }
        Ok(())
    }
}

impl PortKeys {
    fn set(&mut self, entry: &Entry<'_>) -> Result<(), InputError> {
        match entry.key.get(4..).unwrap_or_default() {
            "var-sport" => self.source = entry.order()?,
            "var-dport" => self.destination = entry.order()?,
            "sport-min" => self.source_range.0 = entry.number(0..=65_535)? as u16,
            "sport-max" => self.source_range.1 = entry.number(0..=65_535)? as u16,
            "dport-min" => self.destination_range.0 = entry.number(0..=65_535)? as u16,
            _ => self.destination_range.1 = entry.number(0..=65_535)? as u16,
        }
        Ok(())
    }
}

impl HostKeys {
    fn set(&mut self, entry: &Entry<'_>) -> Result<(), InputError> {
        let key = entry.key;
        match key.rsplit('-').next().unwrap_or_default() {
            "var" => self.order = entry.order()?,
            "min" => self.range.0 = entry.number(0..=65_535)? as u16,
            "max" => self.range.1 = entry.number(0..=65_535)? as u16,
            _ if key.starts_with("IPv4") => self.offset4 = entry.number(1..=2)? as u8,
            _ => self.offset6 = entry.number(6..=14)? as u8,
        }
        Ok(())
    }
}

/// A line's key and value.
struct Entry<'a> {
    line: usize,
    key: &'a str,
    value: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn value(&self, example: &str) -> Result<&'a str, InputError> {
        let Entry { line, key, .. } = *self;
        self.value.ok_or_else(|| InputError::NoValue {
            line,
            key: key.to_owned(),
            example: example.to_owned(),
        })
    }

    fn wrong(&self, wanted: &str) -> InputError {
        InputError::Value {
            line: self.line,
            key: self.key.to_owned(),
            value: self.value.unwrap_or_default().to_owned(),
            wanted: wanted.to_owned(),
        }
    }

    fn number(&self, range: RangeInclusive<u32>) -> Result<u32, InputError> {
        let (min, max) = (*range.start(), *range.end());
        let number: i64 = self.value(&min.to_string())?.parse().map_err(|_| {
            self.wrong(&format!("it must be a number from {min} to {max}, for instance {min}"))
        })?;
        let near = number.clamp(min.into(), max.into());
        if near != number {
            return Err(self.wrong(&format!("it must be {min} to {max}, the nearest is {near}")));
        }
        Ok(near as u32)
    }

    fn order(&self) -> Result<u8, InputError> {
        Ok(self.number(0..=3)? as u8)
    }

    fn version(&self) -> Result<Family, InputError> {
        match self.value("4")? {
            "4" => Ok(Family::Ip4),
            "6" => Ok(Family::Ip6),
            _ => Err(self.wrong("it must be 4 or 6")),
        }
    }

    fn parsed<T: FromStr<Err: Display>>(&self, example: &str) -> Result<T, InputError> {
        let value = self.value(example)?;
        value.parse().map_err(|error: T::Err| self.wrong(&format!("{error}, for instance {example}")))
    }

    fn mac(&self) -> Result<Mac, InputError> {
        let example = "02:00:00:00:00:01";
        let value = self.value(example)?;
        let mut bytes =
            value.split(':').map(|part| u8::from_str_radix(part, 16).ok().filter(|_| part.len() <= 2));
        let mac: Option<Vec<u8>> = bytes.by_ref().collect();
        mac.and_then(|mac| Mac::try_from(mac).ok()).ok_or_else(|| {
            self.wrong(&format!("it must be six bytes in hexadecimal, for instance {example}"))
        })
    }
}
