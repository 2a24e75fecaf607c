//! `show interface`: state, MTU, counters; addresses, features, tags.

use std::fmt;

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

/// All or the named interfaces, by name.
pub(super) fn chosen(interfaces: &Interfaces, args: &Args) -> Result<Vec<Info>, CliError> {
    let named: Vec<InterfaceArg> = args.all("interface")?;
    let indices =
        if named.is_empty() { interfaces.indices() } else { named.into_iter().map(|i| i.0).collect() };
    let mut infos = indices.into_iter().map(|i| interfaces.info(i)).collect::<Result<Vec<_>, _>>()?;
    infos.sort_by(|a, b| a.name.cmp(&b.name));
    infos.dedup_by_key(|i| i.index);
    Ok(infos)
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let infos = chosen(&interfaces, args)?;
    if args.has("address") {
        let of = |i: Info| Address { up: is_up(&i), lines: interfaces.addresses(i.index), name: i.name };
        return Ok(Output::view(Addresses(infos.into_iter().map(of).collect())));
    }
    if args.has("features") {
        let of = |i: Info| feature::OnInterface::new(interfaces.graph(), &i, args.has("verbose"));
        return Ok(Output::view(feature::OnInterfaces(infos.into_iter().map(of).collect())));
    }
    if args.has("tag") {
        let of = |i: Info| Tag { name: i.name, tag: i.tag };
        return Ok(Output::view(Tags(infos.into_iter().map(of).collect())));
    }
    let zeros = if args.has("verbose") { Zeros::Show } else { Zeros::Hide };
    let of = |i: Info| Row::new(&interfaces, i, zeros);
    Ok(Output::view(Table(infos.into_iter().map(of).collect())))
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
        ("ip4", &c.ip4),
        ("ip6", &c.ip6),
        ("rx-no-buf", &c.rx_no_buf),
        ("rx-miss", &c.rx_miss),
        ("rx-error", &c.rx_error),
        ("tx-error", &c.tx_error),
    ];
    pairs.into_iter().chain(singles.map(|(name, counter)| (name, counter.sum(at)))).collect()
}

#[derive(Serialize)]
#[serde(transparent)]
struct Table(Vec<Row>);

/// Blanks in front of a counter that has no interface before it.
const BEFORE_COUNTERS: usize = 32 + 5 + 10 + 21;

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&line(&[
            centre("Name", 32),
            centre("Idx", 5),
            centre("State", 10),
            centre("MTU (L3/IP4/IP6/MPLS)", 21),
            centre("Counter", 16),
            centre("Count", 16),
        ]))?;
        for row in &self.0 {
            let Mtus { l3, ip4, ip6, mpls } = row.mtu;
            let head = [
                left(&row.name, 32),
                number(row.sw_if_index, 5),
                centre(row.state, 10),
                centre(format!("{l3}/{ip4}/{ip6}/{mpls}"), 21),
            ]
            .concat();
            if row.counters.is_empty() {
                f.write_str(&line(std::slice::from_ref(&head)))?;
            }
            for (at, (name, value)) in row.counters.iter().enumerate() {
                let head = if at == 0 { head.clone() } else { " ".repeat(BEFORE_COUNTERS) };
                f.write_str(&line(&[head, left(name, 16), format!("{value:>16}")]))?;
            }
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

#[derive(Serialize)]
#[serde(transparent)]
struct Addresses(Vec<Address>);

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Address { name, up, lines } in &self.0 {
            writeln!(f, "{name} ({}):", if *up { "up" } else { "dn" })?;
            for line in lines {
                // Sources may give the bare address, or say more (`unnumbered, use loop0`).
                let layer = if line.starts_with(|c: char| c.is_ascii_digit()) { "L3 " } else { "" };
                writeln!(f, "  {layer}{line}")?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Tag {
    name: String,
    tag: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Tags(Vec<Tag>);

impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Tag { name, tag }| {
            writeln!(f, "{name}: {}", if tag.is_empty() { "(none)" } else { tag.as_str() })
        })
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
        let counters = vec![("rx packets", 5), ("rx bytes", 490)];
        let mtu = |l3| Mtus { l3, ip4: 0, ip6: 0, mpls: 0 };
        let row = |name: &str, sw_if_index, state, mtu, counters| {
            let name = name.to_owned();
            Row { name, sw_if_index, state, mtu, counters }
        };
        let table =
            Table(vec![row("local0", 0, "down", mtu(0), vec![]), row("pg0", 1, "up", mtu(9000), counters)]);
        // The example of VPP's own documentation.
        assert_eq!(
            table.to_string(),
            "              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count\n\
             local0                            0     down          0/0/0/0\n\
             pg0                               1      up          9000/0/0/0     rx packets                     5\n\
             \x20                                                                   rx bytes                     490\n"
        );
        let json = serde_json::to_value(&table).unwrap();
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
