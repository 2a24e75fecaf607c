//! `dpdk { ... }` of the start-up file, and the words of `dpdk attach`.

use crate::nearest::nearest;

/// A word, or the brace before or behind a block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Open,
    Close,
}

/// Which hardware offloads are asked for. By default all are what the device can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offloads {
    pub(crate) multi_segs: bool,
    pub(crate) tx_checksum: bool,
    pub(crate) rx_checksum: bool,
    pub(crate) tso: bool,
}

/// Settings of one device, or of all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Port {
    pub(crate) name: Option<String>,
    pub(crate) rx_queues: Option<u16>,
    pub(crate) tx_queues: Option<u16>,
    pub(crate) rx_desc: Option<u16>,
    pub(crate) tx_desc: Option<u16>,
    pub(crate) mtu: Option<u16>,
    pub(crate) tso: Option<bool>,
    pub(crate) workers: Vec<u16>,
    /// Receive interrupts, if the device has them.
    pub(crate) interrupts: Option<bool>,
    /// Added behind the device's name for the driver.
    pub(crate) devargs: Option<String>,
}

/// A device that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// With its arguments: `0000:00:05.0`, `net_pcap0,rx_pcap=in.pcap`.
    pub(crate) device: String,
    pub(crate) port: Port,
}

/// The whole stanza.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stanza {
    pub(crate) devices: Vec<Wanted>,
    pub(crate) default: Port,
    pub(crate) offloads: Offloads,
    pub(crate) no_pci: bool,
    pub(crate) no_hugetlb: bool,
    pub(crate) telemetry: bool,
    pub(crate) decimal_names: bool,
    pub(crate) uio_driver: Option<String>,
    pub(crate) socket_mem: Option<String>,
    pub(crate) blocked: Vec<String>,
    pub(crate) mbufs: u32,
    /// Further arguments of the EAL.
    pub(crate) eal: Vec<String>,
}

/// Packets of the ordinary pool, by default: VPP's number of buffers.
const MBUFS: u32 = 16_384;

impl Default for Stanza {
    fn default() -> Self {
        let offloads = Offloads { multi_segs: true, tx_checksum: true, rx_checksum: true, tso: true };
        Stanza {
            devices: Vec::new(),
            default: Port::default(),
            offloads,
            no_pci: false,
            no_hugetlb: false,
            telemetry: false,
            decimal_names: false,
            uio_driver: None,
            socket_mem: None,
            blocked: Vec::new(),
            mbufs: MBUFS,
            eal: Vec::new(),
        }
    }
}

/// Settings of a device.
const OF_PORT: [&str; 12] = [
    "name",
    "num-rx-queues",
    "num-tx-queues",
    "num-rx-desc",
    "num-tx-desc",
    "mtu",
    "tso",
    "workers",
    "no-rx-interrupts",
    "devargs",
    "rss",
    "vlan-strip-offload",
];

/// Settings of the stanza.
const OF_STANZA: [&str; 27] = [
    "dev",
    "vdev",
    "uio-driver",
    "no-pci",
    "no-hugetlb",
    "no-multi-seg",
    "no-tx-checksum-offload",
    "no-rx-checksum-offload",
    "enable-tcp-udp-checksum",
    "no-tso",
    "socket-mem",
    "num-mbufs",
    "num-mem-channels",
    "blacklist",
    "block",
    "log-level",
    "telemetry",
    "no-telemetry",
    "decimal-interface-names",
    "iova-mode",
    "huge-dir",
    "file-prefix",
    "max-simd-bitwidth",
    "eal-args",
    "allow",
    "no-dsa",
    "proc-type",
];

fn lex(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    let end = |word: &mut Option<String>, tokens: &mut Vec<Token>| {
        tokens.extend(word.take().map(Token::Word));
    };
    while let Some(c) = letters.next() {
        match c {
            '{' | '}' => {
                end(&mut word, &mut tokens);
                tokens.push(if c == '{' { Token::Open } else { Token::Close });
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('"') => break,
                        Some('\\') => word.extend(letters.next()),
                        Some(c) => word.push(c),
                        None => return Err("a quote is never closed".to_owned()),
                    }
                }
            }
            c if c.is_whitespace() => end(&mut word, &mut tokens),
            c => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut tokens);
    Ok(tokens)
}

/// Words that are left.
struct Reader {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    /// What messages call the place.
    place: String,
}

fn unknown(place: &str, word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("{place} has no setting `{word}', did you mean `{near}'?"),
        None => format!("{place} has no setting `{word}', expected one of {}", known.join(", ")),
    }
}

impl Reader {
    fn new(text: &str, place: &str) -> Result<Self, String> {
        Ok(Reader { tokens: lex(text)?.into_iter().peekable(), place: place.to_owned() })
    }

    /// The value of a setting.
    fn value(&mut self, key: &str, expected: &str) -> Result<String, String> {
        match self.tokens.next() {
            Some(Token::Word(word)) => Ok(word),
            _ => Err(format!("{}: {key} needs {expected}", self.place)),
        }
    }

    fn number(&mut self, key: &str, least: u32, most: u32) -> Result<u32, String> {
        let expected = format!("a number from {least} to {most}");
        let word = self.value(key, &expected)?;
        let n = word.parse().ok().filter(|n| (least..=most).contains(n));
        n.ok_or_else(|| format!("{}: {key} is `{word}', expected {expected}", self.place))
    }

    fn switch(&mut self, key: &str) -> Result<bool, String> {
        match self.value(key, "on or off")?.as_str() {
            "on" => Ok(true),
            "off" => Ok(false),
            other => Err(format!("{}: {key} is `{other}', expected on or off", self.place)),
        }
    }

    /// `{ ... }` behind a device, if there is one.
    fn block(&mut self, place: &str, port: &mut Port) -> Result<(), String> {
        if self.tokens.peek() != Some(&Token::Open) {
            return Ok(());
        }
        self.tokens.next();
        let outer = std::mem::replace(&mut self.place, place.to_owned());
        loop {
            match self.tokens.next() {
                Some(Token::Close) => break,
                Some(Token::Word(key)) => self.port(&key, port)?,
                Some(Token::Open) => return Err(format!("{place}: a block stands where a setting is")),
                None => return Err(format!("{place}: a brace is never closed")),
            }
        }
        self.place = outer;
        Ok(())
    }

    fn port(&mut self, key: &str, port: &mut Port) -> Result<(), String> {
        let small = |n: u32| Some(n as u16);
        match key {
            "name" => port.name = Some(self.value(key, "the interface's name")?),
            "num-rx-queues" => port.rx_queues = small(self.number(key, 1, 64)?),
            "num-tx-queues" => port.tx_queues = small(self.number(key, 1, 64)?),
            "num-rx-desc" => port.rx_desc = small(self.number(key, 1, 32_768)?),
            "num-tx-desc" => port.tx_desc = small(self.number(key, 1, 32_768)?),
            "mtu" => port.mtu = small(self.number(key, 64, 65_535)?),
            "tso" => port.tso = Some(self.switch(key)?),
            "no-rx-interrupts" => port.interrupts = Some(false),
            "devargs" => port.devargs = Some(self.value(key, "arguments of the device's driver")?),
            "workers" => {
                let list = self.value(key, "a list of workers such as 0,2-3")?;
                port.workers = workers(&list).map_err(|why| format!("{}: {why}", self.place))?;
            }
            // RSS is on wherever there are several queues; tags stay in packets.
            "vlan-strip-offload" => {
                if self.switch(key)? {
                    return Err(format!("{}: {key} on is not done, expected off", self.place));
                }
            }
            "rss" => {
                let mut depth = 0;
                let place = &self.place;
                loop {
                    match self.tokens.next() {
                        Some(Token::Open) => depth += 1,
                        Some(Token::Close) => depth -= 1,
                        Some(Token::Word(_)) => {}
                        None => return Err(format!("{place}: rss needs a block")),
                    }
                    if depth == 0 {
                        return Ok(());
                    }
                }
            }
            other => return Err(unknown(&self.place, other, &OF_PORT)),
        }
        Ok(())
    }
}

fn workers(list: &str) -> Result<Vec<u16>, String> {
    let wrong = || format!("workers `{list}' is no list, expected such as 0,2-3, each 0 to 62");
    let mut all = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u16, u16) = (from.parse().map_err(|_| wrong())?, to.parse().map_err(|_| wrong())?);
        if from > to || to > 62 {
            return Err(wrong());
        }
        all.extend(from..=to);
    }
    Ok(all)
}

/// A device's name without the arguments behind it.
pub(crate) fn plain(device: &str) -> &str {
    device.split(',').next().unwrap_or_default()
}

/// Whether a device's name is an address on the PCI bus: `0000:00:05.0`, or `00:05.0`.
pub(crate) fn pci(device: &str) -> Option<(u32, u32, u32, u32)> {
    let plain = plain(device);
    let parts: Vec<&str> = plain.split(':').collect();
    let (domain, bus, rest) = match parts.as_slice() {
        [bus, rest] => ("0", *bus, *rest),
        [domain, bus, rest] => (*domain, *bus, *rest),
        _ => return None,
    };
    let (slot, function) = rest.split_once('.')?;
    let hex = |text: &str, most: u32| u32::from_str_radix(text, 16).ok().filter(|n| *n <= most);
    Some((hex(domain, u32::MAX)?, hex(bus, 0xff)?, hex(slot, 0x1f)?, hex(function, 7)?))
}

fn wanted(device: String, port: Port, place: &str) -> Result<Wanted, String> {
    let name = plain(&device);
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '_' | '-' | '@' | '/');
    if name.is_empty() || !name.chars().all(fine) {
        let expected = "expected an address such as 0000:00:05.0 or a virtual device such as net_null0";
        return Err(format!("{place}: `{device}' is no device, {expected}"));
    }
    let device = match &port.devargs {
        Some(more) => format!("{device},{more}"),
        None => device,
    };
    Ok(Wanted { device, port })
}

/// The words of `dpdk attach`: a device, and settings of it, in a block or not.
pub(crate) fn attach(words: &str) -> Result<Wanted, String> {
    let mut reader = Reader::new(words, "dpdk attach")?;
    let expected = "a device such as 0000:00:05.0 or net_null0";
    let device = reader.value("it", expected)?;
    let mut port = Port::default();
    reader.place.clone_from(&device);
    reader.block(&device, &mut port)?;
    while let Some(token) = reader.tokens.next() {
        match token {
            Token::Word(key) => reader.port(&key, &mut port)?,
            Token::Open | Token::Close => return Err(format!("{device}: a brace that nothing goes with")),
        }
    }
    wanted(device, port, "dpdk attach")
}

/// The inside of the stanza.
pub(crate) fn stanza(text: &str) -> Result<Stanza, String> {
    let mut all = Stanza::default();
    let mut reader = Reader::new(text, "the stanza")?;
    while let Some(token) = reader.tokens.next() {
        match token {
            Token::Word(key) => setting(&mut reader, &key, &mut all)?,
            Token::Open | Token::Close => return Err("a block stands where a setting is".to_owned()),
        }
    }
    for (at, device) in all.devices.iter().enumerate() {
        let name = plain(&device.device);
        if all.devices.iter().take(at).any(|other| plain(&other.device) == name) {
            return Err(format!("{name} is there twice"));
        }
    }
    Ok(all)
}

fn setting(reader: &mut Reader, key: &str, all: &mut Stanza) -> Result<(), String> {
    let eal = |all: &mut Stanza, flag: &str, value: String| all.eal.push(format!("--{flag}={value}"));
    match key {
        "dev" => {
            let device = reader.value(key, "an address such as 0000:00:05.0, or default")?;
            let mut port = Port::default();
            reader.block(&format!("dev {device}"), &mut port)?;
            if device == "default" {
                all.default = port;
            } else if pci(&device).is_some() {
                all.devices.push(wanted(device, port, "dev")?);
            } else {
                let expected = "expected an address such as 0000:00:05.0, or default";
                return Err(format!("dev {device}: no address of a PCI device, {expected}"));
            }
        }
        "vdev" => {
            let device = reader.value(key, "a virtual device such as net_null0")?;
            let mut port = Port::default();
            reader.block(&format!("vdev {device}"), &mut port)?;
            all.devices.push(wanted(device, port, "vdev")?);
        }
        "uio-driver" => all.uio_driver = Some(reader.value(key, "a driver such as vfio-pci, or auto")?),
        "no-pci" => all.no_pci = true,
        "no-hugetlb" => all.no_hugetlb = true,
        "no-multi-seg" => all.offloads.multi_segs = false,
        "no-tx-checksum-offload" => (all.offloads.tx_checksum, all.offloads.tso) = (false, false),
        "no-rx-checksum-offload" => all.offloads.rx_checksum = false,
        // Checksums are on by themselves.
        "enable-tcp-udp-checksum" | "no-dsa" | "no-telemetry" => {}
        "no-tso" => all.offloads.tso = false,
        "telemetry" => {
            all.telemetry = match reader.tokens.peek() {
                Some(Token::Word(word)) if word == "on" || word == "off" => reader.switch(key)?,
                _ => true,
            }
        }
        "decimal-interface-names" => all.decimal_names = true,
        "socket-mem" => {
            all.socket_mem = Some(reader.value(key, "megabytes of each NUMA node, such as 512,0")?)
        }
        "num-mbufs" => all.mbufs = reader.number(key, 1024, 16 << 20)?,
        "num-mem-channels" => eal_short(all, "-n", reader.number(key, 1, 32)?),
        "blacklist" | "block" => {
            let device = reader.value(key, "an address such as 0000:00:05.0")?;
            if pci(&device).is_none() {
                return Err(format!("{key} {device}: expected an address such as 0000:00:05.0"));
            }
            all.blocked.push(device);
        }
        "log-level" => eal(all, "log-level", reader.value(key, "a level such as debug or lib.eal:debug")?),
        "iova-mode" => {
            let mode = reader.value(key, "pa or va")?;
            if mode != "pa" && mode != "va" {
                return Err(format!("iova-mode is `{mode}', expected pa or va"));
            }
            eal(all, key, mode);
        }
        "max-simd-bitwidth" => {
            let bits = reader.number(key, 64, 512)?;
            eal(all, "force-max-simd-bitwidth", bits.to_string());
        }
        // Nothing is shared with other processes: everything is in memory of this one.
        "huge-dir" | "file-prefix" | "proc-type" => drop(reader.value(key, "a word")?),
        "eal-args" => {
            let words = reader.value(key, "arguments of the EAL in quotes")?;
            all.eal.extend(words.split_whitespace().map(str::to_owned));
        }
        "allow" => {
            let device = reader.value(key, "an address such as 0000:00:05.0")?;
            return Err(format!("allow {device}: write dev {device}"));
        }
        other => return Err(unknown("the stanza", other, &OF_STANZA)),
    }
    Ok(())
}

fn eal_short(all: &mut Stanza, flag: &str, n: u32) {
    all.eal.extend([flag.to_owned(), n.to_string()]);
}

impl Port {
    /// What holds for a device: its own words before those of all.
    pub(crate) fn over(&self, default: &Port) -> Port {
        Port {
            name: self.name.clone(),
            rx_queues: self.rx_queues.or(default.rx_queues),
            tx_queues: self.tx_queues.or(default.tx_queues),
            rx_desc: self.rx_desc.or(default.rx_desc),
            tx_desc: self.tx_desc.or(default.tx_desc),
            mtu: self.mtu.or(default.mtu),
            tso: self.tso.or(default.tso),
            workers: if self.workers.is_empty() { default.workers.clone() } else { self.workers.clone() },
            interrupts: self.interrupts.or(default.interrupts),
            devargs: self.devargs.clone(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn a_stanza_as_vpps_is_read() {
        let all = stanza(
            "dev default { num-rx-queues 2 num-tx-queues 3\n num-rx-desc 512 }\n\
             dev 0000:00:05.0 { name east workers 0,2-3 num-rx-queues 4 tso off }\n dev 0000:02:00.1\n\
             vdev \"net_pcap0,rx_pcap=a b.pcap\" { name pcap }\n uio-driver vfio-pci no-hugetlb socket-mem 64,0 \
             no-multi-seg blacklist 0000:00:06.0 log-level lib.eal:debug telemetry off num-mbufs 2048",
        )
        .unwrap();
        let names: Vec<_> = all.devices.iter().map(|d| d.device.as_str()).collect();
        assert_eq!(names, ["0000:00:05.0", "0000:02:00.1", "net_pcap0,rx_pcap=a b.pcap"]);
        let first = all.devices[0].port.over(&all.default);
        assert_eq!((first.rx_queues, first.tx_queues, first.rx_desc), (Some(4), Some(3), Some(512)));
        assert_eq!(
            (first.workers, first.tso, first.name.as_deref()),
            (vec![0, 2, 3], Some(false), Some("east"))
        );
        assert_eq!(all.devices[1].port.over(&all.default).rx_queues, Some(2));
        let quiet = stanza("dev default { no-rx-interrupts } dev 0000:00:05.0").unwrap();
        assert_eq!(quiet.devices[0].port.over(&quiet.default).interrupts, Some(false));
        assert_eq!(first.interrupts, None);
        assert!(
            all.no_hugetlb && !all.no_pci && !all.telemetry && !all.offloads.multi_segs && all.offloads.tso
        );
        assert_eq!((all.mbufs, all.socket_mem.as_deref()), (2048, Some("64,0")));
        assert_eq!(
            (all.blocked, all.eal),
            (vec!["0000:00:06.0".into()], vec!["--log-level=lib.eal:debug".into()])
        );
        assert_eq!(stanza("").unwrap(), Stanza::default());
    }

    #[test]
    fn wrong_words_are_named_with_the_nearest_right_one() {
        for (text, said) in [
            (
                "dev 0000:00:05.0 { num-rx-quues 2 }",
                "dev 0000:00:05.0 has no setting `num-rx-quues', did you mean `num-rx-queues'?",
            ),
            ("vdv net_null0", "did you mean `vdev'?"),
            ("elephant", "the stanza has no setting `elephant', expected one of dev, vdev"),
            ("dev", "dev needs an address"),
            ("dev net_null0", "no address of a PCI device"),
            ("dev 0000:00:05.9", "no address of a PCI device"),
            ("dev default { num-rx-queues 0 }", "num-rx-queues is `0', expected a number from 1 to 64"),
            ("dev default { num-rx-queues many }", "expected a number"),
            ("dev default { name", "name needs"),
            ("dev default {", "a brace is never closed"),
            ("vdev net_null0 vdev net_null0,size=5", "net_null0 is there twice"),
            ("vdev \"net_null0", "a quote is never closed"),
            ("vdev \"a b\"", "is no device"),
            ("{ }", "a block stands"),
            ("dev default { workers 3-1 }", "workers `3-1' is no list"),
            ("dev default { tso perhaps }", "expected on or off"),
            ("allow 0000:00:05.0", "write dev 0000:00:05.0"),
            ("iova-mode x", "expected pa or va"),
            ("num-mbufs 3", "expected a number from 1024"),
            ("dev default { rss { ipv4", "rss needs a block"),
            ("dev default { no-rx-interupts }", "did you mean `no-rx-interrupts'?"),
        ] {
            let why = stanza(text).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
            assert_eq!(why.lines().count(), 1);
        }
    }

    #[test]
    fn devices_are_attached_with_words_in_a_block_or_not() {
        let plain = attach("net_null0,size=100 name x num-rx-queues 2").unwrap();
        let block = attach("net_null0,size=100 { name x num-rx-queues 2 }").unwrap();
        assert_eq!(plain, block);
        assert_eq!((plain.device.as_str(), plain.port.rx_queues), ("net_null0,size=100", Some(2)));
        assert_eq!(attach("0000:00:05.0 devargs a=1,b=2").unwrap().device, "0000:00:05.0,a=1,b=2");
        for (words, said) in
            [("", "it needs a device"), ("net_null0 { x", "has no setting `x'"), ("net_null0 }", "a brace")]
        {
            let why = attach(words).unwrap_err();
            assert!(why.contains(said), "{words}: {why}");
        }
    }

    #[test]
    fn addresses_of_pci_are_told_from_names() {
        assert_eq!(pci("0000:0a:1f.7"), Some((0, 10, 31, 7)));
        assert_eq!(pci("05:00.1,arg=1"), Some((0, 5, 0, 1)));
        for name in ["net_null0", "0000:00:20.0", "0000:00:05", "a:b:c:d.0", "", "net_memif,x=a:b.1"] {
            assert_eq!(pci(name), None, "{name}");
        }
    }
}
