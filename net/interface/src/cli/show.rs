//! `show interface`: state, MTU, counters; addresses, features, tags.

use std::fmt;
use std::rc::Rc;

use serde::{Serialize, Serializer};
use shoal_buffer::SwIfIndex;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::column::{centre, left, line, number};
use super::feature;
use crate::{IfFlags, Info, InterfaceArg, Interfaces};

pub(super) const SHOW_INTERFACE: Command = Command::new(
    "show interface [<interface>] ... [address] [features] [tag] [verbose]",
    "Show interfaces with state, MTU and counters",
    show,
)
.examples(&[
    "show interface",
    "sh int addr",
    "show interface local0 features",
    "show interface features local0",
    "show interface verbose",
])
.doc("Only counters that are not zero are shown, all of them with `verbose`.");

/// All or the named interfaces, by name. A long list of them costs four bytes each.
pub(super) fn chosen(interfaces: &Interfaces, args: &Args) -> Result<Vec<SwIfIndex>, CliError> {
    let named: Vec<InterfaceArg> = args.all("interface")?;
    let mut indices =
        if named.is_empty() { interfaces.indices() } else { named.into_iter().map(|i| i.0).collect() };
    for index in &indices {
        interfaces.data(*index)?;
    }
    indices.sort_by_cached_key(|index| interfaces.name(*index).ok());
    indices.dedup();
    Ok(indices)
}

/// A row of each of these interfaces that is still there when its turn comes.
fn rows<R>(
    interfaces: Rc<Interfaces>,
    indices: Vec<SwIfIndex>,
    mut row: impl FnMut(&Interfaces, Info) -> R,
) -> impl Iterator<Item = R> {
    indices.into_iter().filter_map(move |index| Some(row(&interfaces, interfaces.info(index).ok()?)))
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let all = chosen(&interfaces, args)?;
    if args.has("address") {
        let of = |interfaces: &Interfaces, i: Info| Address {
            up: is_up(&i),
            lines: interfaces.addresses(i.index),
            name: i.name,
        };
        return Ok(Output::rows("", rows(interfaces, all, of)));
    }
    if args.has("features") {
        let verbose = args.has("verbose");
        let of = move |interfaces: &Interfaces, i: Info| feature::OnInterface::new(interfaces, &i, verbose);
        return Ok(Output::rows("", rows(interfaces, all, of)));
    }
    if args.has("tag") {
        return Ok(Output::rows("", rows(interfaces, all, |_, i| Tag { name: i.name, tag: i.tag })));
    }
    let zeros = if args.has("verbose") { Zeros::Show } else { Zeros::Hide };
    Ok(Output::rows(head(), rows(interfaces, all, move |interfaces, i| Row::new(interfaces, i, zeros))))
}

fn is_up(info: &Info) -> bool {
    info.flags.has(IfFlags::ADMIN_UP)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Zeros {
    Show,
    Hide,
}

#[derive(Serialize)]
struct Mtus {
    l3: u16,
    ip4: u16,
    ip6: u16,
    mpls: u16,
}

#[derive(Serialize)]
struct Row {
    name: String,
    sw_if_index: u32,
    state: &'static str,
    mtu: Mtus,
    #[serde(serialize_with = "as_map")]
    counters: Vec<(&'static str, u64)>,
}

fn as_map<S: Serializer>(counters: &[(&'static str, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counters.iter().copied())
}

impl Row {
    fn new(interfaces: &Interfaces, info: Info, zeros: Zeros) -> Self {
        let mut counters = counters(interfaces, info.index);
        counters.retain(|(_, n)| *n != 0 || zeros == Zeros::Show);
        let crate::Mtu { l3, ip4, ip6, mpls } = info.mtu;
        Row {
            state: if is_up(&info) { "up" } else { "down" },
            name: info.name,
            sw_if_index: info.index.0,
            mtu: Mtus { l3, ip4, ip6, mpls },
            counters,
        }
    }
}

/// VPP's order: packets and bytes first, then single events.
fn counters(interfaces: &Interfaces, index: SwIfIndex) -> Vec<(&'static str, u64)> {
    let (c, at) = (interfaces.graph().graph_counters(), index.0 as usize);
    let ((rx_packets, rx_bytes), (tx_packets, tx_bytes)) = (c.rx.sum(at), c.tx.sum(at));
    let pairs = [
        ("rx packets", rx_packets),
        ("rx bytes", rx_bytes),
        ("tx packets", tx_packets),
        ("tx bytes", tx_bytes),
    ];
    let singles = [
        ("drops", &c.drops),
        ("punt", &c.punt),
        ("ip4", &interfaces.counters.ip4),
        ("ip6", &interfaces.counters.ip6),
        ("rx-no-buf", &c.rx_no_buf),
        ("rx-miss", &c.rx_miss),
        ("rx-error", &c.rx_error),
        ("tx-error", &c.tx_error),
    ];
    pairs.into_iter().chain(singles.map(|(name, counter)| (name, counter.sum(at)))).collect()
}

/// Blanks in front of a counter that has no interface before it.
const BEFORE_COUNTERS: usize = 32 + 5 + 10 + 21;

fn head() -> String {
    line(&[
        centre("Name", 32),
        centre("Idx", 5),
        centre("State", 10),
        centre("MTU (L3/IP4/IP6/MPLS)", 21),
        centre("Counter", 16),
        centre("Count", 16),
    ])
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mtus { l3, ip4, ip6, mpls } = self.mtu;
        let head = [
            left(&self.name, 32),
            number(self.sw_if_index, 5),
            centre(self.state, 10),
            centre(format!("{l3}/{ip4}/{ip6}/{mpls}"), 21),
        ]
        .concat();
        if self.counters.is_empty() {
            f.write_str(&line(std::slice::from_ref(&head)))?;
        }
        for (at, (name, value)) in self.counters.iter().enumerate() {
            let head = if at == 0 { head.clone() } else { " ".repeat(BEFORE_COUNTERS) };
            f.write_str(&line(&[head, left(name, 16), format!("{value:>16}")]))?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Address {
    name: String,
    up: bool,
    #[serde(rename = "addresses")]
    lines: Vec<String>,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { name, up, lines } = self;
        writeln!(f, "{name} ({}):", if *up { "up" } else { "dn" })?;
        for line in lines {
            // Sources may give the bare address, or say more (`unnumbered, use loop0`).
            let layer = if line.starts_with(|c: char| c.is_ascii_digit()) { "L3 " } else { "" };
            writeln!(f, "  {layer}{line}")?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Tag {
    name: String,
    tag: String,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tag { name, tag } = self;
        writeln!(f, "{name}: {}", if tag.is_empty() { "(none)" } else { tag.as_str() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn run(control: &std::rc::Rc<Control>, words: &[&'static str]) -> Output {
        let args = words.iter().fold(Args::new(std::rc::Rc::clone(control), ""), |a, w| a.with_word(w, 0..0));
        show(control, &args).unwrap()
    }

    #[test]
    fn the_table_has_vpps_columns() {
        let counters = || vec![("rx packets", 5), ("rx bytes", 490)];
        let mtu = |l3| Mtus { l3, ip4: 0, ip6: 0, mpls: 0 };
        let row = |name: &str, sw_if_index, state, mtu, counters| {
            let name = name.to_owned();
            Row { name, sw_if_index, state, mtu, counters }
        };
        let rows = || [row("local0", 0, "down", mtu(0), vec![]), row("pg0", 1, "up", mtu(9000), counters())];
        let table = || Output::rows(head(), rows().into_iter());
        // The example of VPP's own documentation.
        assert_eq!(
            table().to_text(),
            "              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count\n\
             local0                            0     down          0/0/0/0\n\
             pg0                               1      up          9000/0/0/0     rx packets                     5\n\
             \x20                                                                   rx bytes                     490\n"
        );
        let json = table().to_json();
        assert_eq!(json[1]["counters"]["rx bytes"], 490);
    }

    #[test]
    fn local0_is_shown_without_counters_or_with_zeros() {
        let control = testing::router(|_| Ok(()));
        assert!(run(&control, &[]).to_text().ends_with("0/0/0/0\n"));
        assert!(run(&control, &["verbose"]).to_text().contains("tx-error"));
    }

    #[test]
    fn addresses_are_those_the_sources_know() {
        let control = testing::router(|_| Ok(()));
        let interfaces = control.get::<Interfaces>().unwrap();
        interfaces.add_address_source(|_| vec!["172.16.1.1/24".into(), "unnumbered, use loop0".into()]);
        assert_eq!(
            run(&control, &["address"]).to_text(),
            "local0 (dn):\n  L3 172.16.1.1/24\n  unnumbered, use loop0\n"
        );
    }

    #[test]
    fn tags_are_shown() {
        let control = testing::router(|_| Ok(()));
        control.get::<Interfaces>().unwrap().set_tag(SwIfIndex(0), "uplink").unwrap();
        assert_eq!(run(&control, &["tag"]).to_text(), "local0: uplink\n");
    }
}
