//! Counters as Prometheus wants them: families with a name, a help text and labels.
//!
//! What has an interface is labelled with its name, what has a node with the node's; counts are by thread, so that
//! `sum without (thread)` adds them up and a lame worker can be seen. Names that this page does not know come under
//! a name made of their own, so that nothing that is counted is lost.

mod tables;

use std::fmt::{self, Write};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use shoal_stats_client::{Counter, Pair, Value};

use tables::{ByInterface, INTERFACES, NEIGHBOURS, NODES, NUMBERS, PATHS, THREADS};

/// All counters in the text format of OpenMetrics. `figures` are what the endpoint counts of itself: answers,
/// refused connections, microseconds of the last reading.
pub fn render(counters: Vec<Counter>, figures: (u64, u64, u64)) -> String {
    let mut registry = Registry::with_prefix("shoal");
    registry.register_collector(Box::new(Snapshot { counters, figures }));
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

/// A label's value, with a backslash before what would end it.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => safe.push_str("\\\\"),
            '"' => safe.push_str("\\\""),
            '\n' => safe.push_str("\\n"),
            c => safe.push(c),
        }
    }
    safe
}

#[derive(Debug)]
struct Snapshot {
    counters: Vec<Counter>,
    figures: (u64, u64, u64),
}

/// A family's name and help text.
type Family<'a> = (&'a str, &'a str);
type Encoder<'a> = DescriptorEncoder<'a>;

fn counters<S: EncodeLabelSet>(
    to: &mut Encoder<'_>,
    (name, help): Family<'_>,
    samples: impl Iterator<Item = (S, u64)>,
) -> fmt::Result {
    let mut samples = samples.peekable();
    if samples.peek().is_none() {
        return Ok(());
    }
    let mut family = to.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, n) in samples {
        family.encode_family(&labels)?.encode_counter::<[(&str, &str); 0], _, u64>(&n, None)?;
    }
    Ok(())
}

fn gauges<S: EncodeLabelSet>(
    to: &mut Encoder<'_>,
    (name, help): Family<'_>,
    samples: impl Iterator<Item = (S, u64)>,
) -> fmt::Result {
    let mut samples = samples.peekable();
    if samples.peek().is_none() {
        return Ok(());
    }
    let mut family = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, n) in samples {
        family.encode_family(&labels)?.encode_gauge(&n)?;
    }
    Ok(())
}

/// The number of a family without labels.
fn alone(n: u64) -> impl Iterator<Item = ([(&'static str, &'static str); 0], u64)> {
    std::iter::once(([], n))
}

/// Names of objects, fit for labels; without those of deleted objects.
fn objects(value: Option<&Value>) -> Vec<Option<String>> {
    let Some(Value::Names(names)) = value else { return Vec::new() };
    let fit =
        |name: &Option<String>| name.as_deref().filter(|n| !n.is_empty() && *n != "deleted").map(escaped);
    names.iter().map(fit).collect()
}

/// Every number of a table that belongs to an object with a name: name, thread, number.
fn named<'a, T>(
    threads: &'a [Vec<T>],
    names: &'a [Option<String>],
    number: impl Fn(&T) -> u64 + Copy + 'a,
) -> impl Iterator<Item = (&'a str, usize, u64)> {
    threads.iter().enumerate().flat_map(move |(thread, row)| {
        let there = row.iter().zip(names).filter_map(|(n, name)| Some((n, name.as_deref()?)));
        there.map(move |(n, name)| (name, thread, number(n)))
    })
}

fn packets(pair: &Pair) -> u64 {
    pair.packets
}

fn bytes(pair: &Pair) -> u64 {
    pair.bytes
}

impl Snapshot {
    fn find(&self, name: &str) -> Option<&Value> {
        self.counters.iter().find(|c| &*c.name == name).map(|c| &c.value)
    }

    fn interfaces(&self, to: &mut Encoder<'_>) -> fmt::Result {
        let names = objects(self.find("/if/names"));
        let tags = objects(self.find("/if/tags"));
        let there = names.iter().enumerate().filter_map(|(i, name)| Some((i, name.as_deref()?)));
        let family = ("interface_info", "An interface, its sw_if_index and its tag");
        let info = |(i, name): (usize, &str)| {
            let tag = tags.get(i).and_then(Clone::clone).unwrap_or_default();
            ([("interface", name.to_owned()), ("index", i.to_string()), ("description", tag)], 1)
        };
        gauges(to, family, there.map(info))?;
        for ByInterface { counter, name, help } in INTERFACES {
            let value = self.find(counter);
            table(to, value, &names, "interface", (name, help))?;
        }
        for ByInterface { counter, name, help } in NEIGHBOURS {
            table(to, self.find(counter), &names, "interface", (name, help))?;
        }
        Ok(())
    }

    fn nodes(&self, to: &mut Encoder<'_>) -> fmt::Result {
        // A node and what went wrong in it; nodes of devices have slashes in their names, errors have not.
        let error = |c: &Counter| {
            let (node, reason) = c.name.strip_prefix("/err/")?.rsplit_once('/')?;
            Some(([("node", escaped(node)), ("reason", escaped(reason))], c.value.sum()))
        };
        let family = ("node_errors", "Packets that a node dropped or noted, by reason");
        counters(to, family, self.counters.iter().filter_map(error))?;
        let names = objects(self.find("/sys/node/names"));
        for ByInterface { counter, name, help } in NODES {
            table(to, self.find(counter), &names, "node", (name, help))?;
        }
        Ok(())
    }

    fn system(&self, to: &mut Encoder<'_>) -> fmt::Result {
        for (counter, kind, name, help) in NUMBERS {
            let Some(value) = self.find(counter) else { continue };
            match kind {
                MetricType::Counter => counters(to, (name, help), alone(value.sum()))?,
                _ => gauges(to, (name, help), alone(value.sum()))?,
            }
        }
        for (counter, kind, name, help) in THREADS {
            let Some(Value::Simple(rows)) = self.find(counter) else { continue };
            let threads = rows.first().into_iter().flatten().enumerate();
            let threads = threads.map(|(thread, n)| ([("thread", thread.to_string())], *n));
            match kind {
                MetricType::Counter => counters(to, (name, help), threads)?,
                _ => gauges(to, (name, help), threads)?,
            }
        }
        // The segment keeps total, used, free and more of each heap in this order.
        let heap = |c: &Counter| {
            let Value::Simple(rows) = &c.value else { return None };
            let (heap, row) = (escaped(c.name.strip_prefix("/mem/")?), rows.first()?.clone());
            let label = move |(state, n)| ([("heap", heap.clone()), ("state", String::from(state))], n);
            Some(["total", "used", "free"].into_iter().zip(row).map(label))
        };
        let family = ("memory_bytes", "Memory, by heap");
        gauges(to, family, self.counters.iter().filter_map(heap).flatten())?;
        let pool = |c: &Counter| {
            let (pool, state) = c.name.strip_prefix("/buffer-pools/")?.rsplit_once('/')?;
            Some(([("pool", escaped(pool)), ("state", escaped(state))], c.value.sum()))
        };
        gauges(to, ("buffers", "Packet buffers, by pool"), self.counters.iter().filter_map(pool))
    }

    /// Everything that has no better name: `/net/route/to` is `shoal_net_route_to_packets_total`. What never counted
    /// is left out: tables of routes are long.
    fn others(&self, to: &mut Encoder<'_>) -> fmt::Result {
        let known = |name: &str| {
            let tables = || INTERFACES.iter().chain(NEIGHBOURS).chain(NODES);
            tables().any(|t| t.counter == name)
                || NUMBERS.iter().any(|n| n.0 == name)
                || THREADS.iter().any(|n| n.0 == name)
                || PATHS.iter().any(|path| name.starts_with(path))
        };
        for Counter { name, value } in self.counters.iter().filter(|c| !known(&c.name)) {
            let plain: String = name
                .trim_start_matches('/')
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
                .collect();
            let help = format!("{}, by its place in the stats segment", name.escape_default());
            match value {
                Value::Gauge(n) => gauges(to, (&plain, &help), alone(*n))?,
                Value::Scalar(n) => counters(to, (&plain, &help), alone(*n))?,
                Value::Simple(threads) => counters(to, (&plain, &help), indexed(threads, |n| *n))?,
                Value::Combined(threads) => {
                    counters(to, (&format!("{plain}_packets"), &help), indexed(threads, packets))?;
                    counters(to, (&format!("{plain}_bytes"), &help), indexed(threads, bytes))?;
                }
                // Links show what is in their tables already.
                Value::SimpleLink(_)
                | Value::CombinedLink(_)
                | Value::Names(_)
                | Value::Histogram(_)
                | Value::Other(_) => {}
            }
        }
        Ok(())
    }

    fn own(&self, to: &mut Encoder<'_>) -> fmt::Result {
        let (scrapes, refused, last) = self.figures;
        counters(to, ("metrics_scrapes", "Answers that this endpoint gave"), alone(scrapes))?;
        counters(
            to,
            ("metrics_refused", "Connections beyond what this endpoint serves at a time"),
            alone(refused),
        )?;
        gauges(to, ("metrics_last_scrape_microseconds", "Time the last reading took"), alone(last))
    }
}

/// A table by named object; packets and bytes become two families.
fn table(
    to: &mut Encoder<'_>,
    value: Option<&Value>,
    names: &[Option<String>],
    label: &'static str,
    (name, help): Family<'_>,
) -> fmt::Result {
    let labels = |(object, thread, n): (&str, usize, u64)| {
        ([(label, object.to_owned()), ("thread", thread.to_string())], n)
    };
    match value {
        Some(Value::Simple(threads)) => counters(to, (name, help), named(threads, names, |n| *n).map(labels)),
        Some(Value::Combined(threads)) => {
            let mut both = String::new();
            write!(both, "{name}_packets")?;
            counters(to, (&both, help), named(threads, names, packets).map(labels))?;
            both.clear();
            write!(both, "{name}_bytes")?;
            counters(to, (&both, help), named(threads, names, bytes).map(labels))
        }
        _ => Ok(()),
    }
}

/// Every number of a table that is not 0.
fn indexed<'a, T>(
    threads: &'a [Vec<T>],
    number: impl Fn(&T) -> u64 + Copy + 'a,
) -> impl Iterator<Item = ([(&'static str, String); 2], u64)> + 'a {
    threads.iter().enumerate().flat_map(move |(thread, row)| {
        let counted = row.iter().map(number).enumerate().filter(|(_, n)| *n != 0);
        counted.map(move |(i, n)| ([("index", i.to_string()), ("thread", thread.to_string())], n))
    })
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.interfaces(&mut encoder)?;
        self.nodes(&mut encoder)?;
        self.system(&mut encoder)?;
        self.others(&mut encoder)?;
        self.own(&mut encoder)
    }
}
