//! What rebuilds tables and routes.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::rc::Rc;

use shoal_adj::{Adjacencies, Family};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_module::{Control, Phase, Running, word};
use shoal_wire::IpPrefix;

use crate::{Fib, FibIndex, FlowFields, InOrder, Path, TableInfo, Via};

/// Steps through a table between which others have a turn: some hundred microseconds.
const STEPS: usize = 256;

fn command(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "ip",
        Family::Ip6 => "ip6",
    }
}

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(fib) = running.part::<Fib>(control) else { return };
    if running.part::<Adjacencies>(control).is_some_and(|all| all.all_count()) {
        running.line(Phase::System, "set adj counters enable");
    }
    for info in Family::ALL.into_iter().flat_map(|family| fib.list_tables(family)) {
        // What a table was made for makes it again.
        if !fib.is_lent(info.family, info.index) {
            table(&info, running);
        }
        if let Some(interfaces) = running.part::<Interfaces>(control) {
            let mut routes = Routes::new(Rc::clone(&fib), interfaces, &info);
            running.many(Phase::Routes, move |text| routes.write(text));
        }
        counters(&fib, &info, running);
    }
}

fn table(info: &TableInfo, running: &mut Running) {
    let (family, id) = (command(info.family), info.id);
    let name = info.given_name.as_deref().map(|name| format!(" {}", word(name))).unwrap_or_default();
    if info.index != FibIndex::DEFAULT {
        running.line(Phase::Tables, format!("{family} table add {id}{name}"));
    }
    if info.flow_fields != FlowFields::DEFAULT {
        let mut line = format!("set {family} flow-hash table {id}");
        for (field, _) in FlowFields::ALL.into_iter().filter(|(_, field)| info.flow_fields.has(*field)) {
            line.push(' ');
            line.push_str(field);
        }
        running.line(Phase::Tables, line);
    }
}

fn counters(fib: &Fib, info: &TableInfo, running: &mut Running) {
    let (family, id) = (command(info.family), info.id);
    let (all, some) = fib.said_to_count(info.family, info.index);
    if all {
        running.line(Phase::Policies, format!("set {family} route counters enable table {id}"));
    }
    for prefix in some {
        running.line(Phase::Policies, format!("set {family} route counters enable {prefix} table {id}"));
    }
}

/// The routes of a table, by address, then length.
struct Routes {
    fib: Rc<Fib>,
    interfaces: Rc<Interfaces>,
    family: Family,
    id: u32,
    walk: Option<InOrder>,
    /// Paths that were written last: many routes have the same.
    last: Option<(Rc<[Path]>, String)>,
}

impl Routes {
    fn new(fib: Rc<Fib>, interfaces: Rc<Interfaces>, info: &TableInfo) -> Self {
        let TableInfo { family, index, id, .. } = *info;
        let walk = fib.in_order(family, index).ok();
        Routes { fib, interfaces, family, id, walk, last: None }
    }

    fn write(&mut self, text: &mut String) -> ControlFlow<()> {
        let mut some = Vec::new();
        for _ in 0..STEPS {
            let Some(walk) = self.walk.as_mut().filter(|walk| walk.goes_on()) else { break };
            self.fib.next_said(walk, |prefix, paths| some.push((prefix, paths)));
        }
        for (prefix, paths) in some {
            self.route(&prefix, paths, text);
        }
        if self.walk.is_some_and(|walk| walk.goes_on()) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn route(&mut self, prefix: &IpPrefix, paths: Rc<[Path]>, text: &mut String) {
        let same = self.last.as_ref().is_some_and(|(last, _)| Rc::ptr_eq(last, &paths));
        if !same {
            let words = via(&self.fib, &self.interfaces, (self.family, self.id), &paths);
            self.last = Some((paths, words));
        }
        let words = self.last.as_ref().map_or("", |(_, words)| words);
        if words.is_empty() {
            return;
        }
        // Writing to a String cannot fail.
        let _ = match self.id {
            0 => writeln!(text, "ip route add {prefix}{words}"),
            id => writeln!(text, "ip route add {prefix} table {id}{words}"),
        };
    }
}

/// Paths in the words of [`via_syntax`](crate::via_syntax), of packets of a family whose next hops are looked up in the
/// table of this id unless they say another. What has no words is left out.
pub fn via(fib: &Fib, interfaces: &Interfaces, of: (Family, u32), paths: &[Path]) -> String {
    let mut text = String::new();
    for path in in_order_of_ids(fib, of.0, paths).iter() {
        let Some(words) = words(fib, interfaces, of, path.via) else { continue };
        // Writing to a String cannot fail.
        let _ = write!(text, " via {words}");
        if path.weight != 1 {
            let _ = write!(text, " weight {}", path.weight);
        }
        if path.preference != 0 {
            let _ = write!(text, " preference {}", path.preference);
        }
        if path.spread.is_resilient() {
            text.push_str(" resilient");
        }
    }
    text
}

/// Paths in an order that does not depend on when their tables were made, as their own does.
fn in_order_of_ids<'a>(fib: &Fib, family: Family, paths: &'a [Path]) -> Cow<'a, [Path]> {
    if paths.iter().filter(|path| path.via.table(family).is_some()).count() < 2 {
        return Cow::Borrowed(paths);
    }
    let by_id = |path: &Path| {
        let id = |family, index| FibIndex(fib.id_of(family, index).unwrap_or(u32::MAX));
        let via = match path.via {
            Via::Recursive { next_hop, fib } => {
                Via::Recursive { next_hop, fib: id(Family::of(next_hop), fib) }
            }
            Via::Lookup(index) => Via::Lookup(id(family, index)),
            Via::SourceLookup(index) => Via::SourceLookup(id(family, index)),
            other => other,
        };
        Path { via, ..*path }
    };
    let mut all = paths.to_vec();
    all.sort_by_cached_key(by_id);
    Cow::Owned(all)
}

fn words(fib: &Fib, interfaces: &Interfaces, (family, id): (Family, u32), via: Via) -> Option<String> {
    let name = |i: SwIfIndex| interfaces.name(i).ok().map(|name| word(&name).into_owned());
    Some(match via {
        Via::Attached { interface, .. } => name(interface)?,
        Via::NextHop { interface, next_hop } => format!("{next_hop} {}", name(interface)?),
        Via::Recursive { next_hop, fib: index } => {
            let table = fib.id_of(Family::of(next_hop), index).ok()?;
            let table = if table == id { String::new() } else { format!(" next-hop-table {table}") };
            format!("{next_hop}{table}")
        }
        Via::InterfaceRx { interface } => format!("rx-{family} {}", name(interface)?),
        Via::Dvr { interface } => format!("dvr {}", name(interface)?),
        Via::Local { .. } => "local".into(),
        Via::Lookup(index) => {
            format!("{family}-lookup-in-table {}", fib.id_of(family, index).ok()?)
        }
        Via::SourceLookup(index) => format!("source-lookup-in-table {}", fib.id_of(family, index).ok()?),
        Via::Punt => "punt".into(),
        Via::Drop => "drop".into(),
        Via::Unreachable => "unreachable".into(),
        Via::Prohibit => "prohibit".into(),
        Via::Broadcast { .. } | Via::PathMtu { .. } | Via::NoRoute | Via::Node(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::Source;
    use crate::router::{ip, router};

    #[test]
    fn routes_come_in_order_and_in_pieces() {
        let router = router(3);
        let fib = router.control.get::<Fib>().unwrap();
        let net = |n: u32| IpPrefix::new(IpAddr::from((0x0b00_0000 + (n << 8)).to_be_bytes()), 24).unwrap();
        let path = Path::recursive(ip("192.0.2.9"), FibIndex::DEFAULT).weight(3);
        fib.add_many(FibIndex::DEFAULT, (0..600).map(net), Source::Cli, &[path]).unwrap();
        fib.add(
            FibIndex::DEFAULT,
            "0.0.0.0/0".parse::<IpPrefix>().unwrap(),
            Source::Cli,
            &[Via::Drop.into()],
        )
        .unwrap();
        let mut all = Running::default();
        running(&router.control, &mut all);
        let pieces: Vec<String> = all.pieces().collect();
        assert!(
            pieces.len() >= 3 && pieces.iter().all(|p| p.lines().count() <= STEPS + 1),
            "{}",
            pieces.len()
        );
        let text = pieces.concat();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("# routes"));
        assert_eq!(lines.next(), Some("ip route add 0.0.0.0/0 via drop"));
        assert_eq!(lines.next(), Some("ip route add 11.0.0.0/24 via 192.0.2.9 weight 3"));
        assert_eq!(lines.last(), Some("ip route add 11.2.87.0/24 via 192.0.2.9 weight 3"));
    }

    #[test]
    fn paths_come_in_the_order_of_tables_ids_whenever_these_were_made() {
        let router = router(1);
        let fib = router.control.get::<Fib>().unwrap();
        let tables = [2, 1].map(|id| fib.add_table(Family::Ip4, id, None).unwrap());
        let prefix: IpPrefix = "198.51.100.0/24".parse().unwrap();
        let paths = tables.map(|index| Path::from(Via::Lookup(index)).resilient());
        fib.add(FibIndex::DEFAULT, prefix, Source::Cli, &paths).unwrap();
        let mut all = Running::default();
        running(&router.control, &mut all);
        let text = all.pieces().collect::<String>();
        let line = "ip route add 198.51.100.0/24 via ip4-lookup-in-table 1 resilient via ip4-lookup-in-table 2 resilient\n";
        assert!(text.contains(line), "{text}");
    }
}
