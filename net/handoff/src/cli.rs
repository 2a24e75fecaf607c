//! Commands: `set interface handoff`, `set handoff default`, `show handoff queues`.

use std::fmt;

use serde::Serialize;
use shoal_interface::cli::column::{centre, left, line, number};
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, FromArg, Output, check};
use shoal_wire::hash::Symmetry;

use crate::{DefaultPlacement, Depth, Handoff, HandoffError, Label, Rules, Workers};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set interface handoff <interface> [workers <workers:worker-list> | auto] [symmetrical | asymmetrical] \
         [inner | outer] [flow-label] [disable | default]",
        "Spread received packets over workers by their flow",
        set,
    )
    .examples(&["set interface handoff local0 auto", "set interface handoff local0 disable"])
    .doc(
        "`workers` is a list such as `0-2,5`; workers are counted from 0, `show threads` lists them. `auto` takes all, \
         while they are more than the interface has receive queues. With `symmetrical` both directions of a flow go to \
         the same worker; `asymmetrical` is the default. Packets of tunnels (VXLAN, VXLAN-GPE, Geneve, GTP-U, GRE, IP \
         in IP) are told apart by what is inside, unless `outer` is given. With `flow-label` the label of IPv6 packets \
         stands for their flow, if it is not zero. Fragments go by addresses and protocol, what is no IP by MAC \
         addresses. A worker that is ended leaves its flows to the others. Packets that find a ring full are counted \
         as `error-drop: handoff ring full`. `default` removes the settings of the interface. `set interface handoff pg0 workers 0-1` needs two workers.",
    ),
    Command::new(
        "set handoff default {auto | off}",
        "Choose what becomes of interfaces of which `set interface handoff' says nothing",
        set_default,
    )
    .examples(&["set handoff default off", "set handoff default auto"])
    .doc(
        "`auto`: their packets are spread over all workers while those are more than all receive queues together. \
         `off`: packets stay on the thread of their queue. `handoff { default off }` in the start-up file says the same.",
    ),
    Command::new("show handoff queues", "Show who spreads packets, and the rings they take between threads", show)
        .examples(&["show handoff queues"])
        .doc("Frames and packets handed over since the threads met, and packets dropped because the ring was full."),
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] =
    &[ArgType::new("worker-list", "numbers of workers, such as 0-2,5", check::<WorkerList>)];

/// Largest number of a worker in a list.
const MOST: u32 = shoal_graph::MAX_THREADS as u32 - 2;

/// `0-2,5`.
struct WorkerList(Vec<u32>);

impl FromArg for WorkerList {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let expected = || Expected::new(format!("numbers of workers from 0 to {MOST}, such as 0-2,5"));
        let mut workers = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
                return Err(expected());
            };
            if first > last || last > MOST {
                return Err(expected());
            }
            workers.extend(first..=last);
        }
        workers.sort_unstable();
        workers.dedup();
        Ok(WorkerList(workers))
    }
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let handoff = control.get::<Handoff>()?;
    let InterfaceArg(interface) = args.get("interface")?;
    let workers = args.opt::<WorkerList>("workers")?;
    if args.has("default") {
        handoff.forget(interface).map_err(|e| CliError::failed(e.to_string()))?;
        return Ok(Output::none());
    }
    if args.has("disable") {
        handoff.disable(interface).map_err(|e| CliError::failed(e.to_string()))?;
        return Ok(Output::none());
    }
    let rules = Rules {
        symmetry: if args.has("symmetrical") { Symmetry::Symmetric } else { Symmetry::Directed },
        depth: if args.has("outer") { Depth::Outer } else { Depth::Inner },
        label: if args.has("flow-label") { Label::Counts } else { Label::Ignored },
    };
    let these = || Workers::These(workers.map(|WorkerList(list)| list).unwrap_or_default());
    let workers = if args.has("auto") { Workers::Auto } else { these() };
    handoff.enable(interface, workers, rules).map_err(|e| match e {
        HandoffError::NoWorker { nearest, .. } => {
            CliError::argument("workers", e.to_string()).nearest(Some(nearest.to_string()))
        }
        other => CliError::failed(other.to_string()),
    })?;
    Ok(Output::none())
}

fn set_default(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Handoff>()?.set_unsaid(if args.has("auto") {
        DefaultPlacement::Auto
    } else {
        DefaultPlacement::Off
    });
    Ok(Output::none())
}

#[derive(Serialize)]
struct Ring {
    from: String,
    to: String,
    waiting: usize,
    capacity: usize,
    frames: u64,
    packets: u64,
    dropped: u64,
}

#[derive(Serialize)]
struct Spread {
    interface: String,
    /// Those that take its packets now.
    workers: Vec<u32>,
    asked: Option<Vec<u32>>,
    auto: bool,
    symmetrical: bool,
    inner: bool,
    flow_label: bool,
}

#[derive(Serialize)]
struct Queues {
    default: &'static str,
    interfaces: Vec<Spread>,
    rings: Vec<Ring>,
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (handoff, interfaces) = (control.get::<Handoff>()?, control.get::<Interfaces>()?);
    let threads = control.graph()?.threads();
    let name = |n| threads.iter().find(|t| t.index == n).map(|t| t.name.clone()).unwrap_or_default();
    let rings = handoff.rings().into_iter().map(|ring| Ring {
        from: name(ring.from),
        to: name(ring.to),
        waiting: ring.waiting,
        capacity: ring.capacity,
        frames: ring.sent.frames,
        packets: ring.sent.packets,
        dropped: ring.sent.dropped,
    });
    let spread = |on: crate::OnInterface| Spread {
        interface: interfaces.name(on.interface).unwrap_or_default(),
        workers: on.workers,
        auto: !matches!(on.asked, Some(Workers::These(_))),
        asked: on.asked.and_then(|asked| if let Workers::These(list) = asked { Some(list) } else { None }),
        symmetrical: on.rules.symmetry == Symmetry::Symmetric,
        inner: on.rules.depth == Depth::Inner,
        flow_label: on.rules.label == Label::Counts,
    };
    let interfaces = handoff.interfaces().into_iter().map(spread).collect();
    let default = if handoff.unsaid() == DefaultPlacement::Auto { "auto" } else { "off" };
    Ok(Output::view(Queues { default, interfaces, rings: rings.collect() }))
}

fn numbers(workers: &[u32]) -> String {
    workers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spread { interface, workers, asked, auto, symmetrical, inner, flow_label } = self;
        match workers.as_slice() {
            [] => write!(f, "{interface}: not spread")?,
            workers => write!(f, "{interface}: workers {}", numbers(workers))?,
        }
        match asked {
            Some(asked) if asked != workers => write!(f, " (asked for {})", numbers(asked))?,
            _ if *auto => write!(f, " (auto)")?,
            _ => {}
        }
        write!(f, ", {}", if *symmetrical { "symmetrical" } else { "asymmetrical" })?;
        let also = [(!*inner, ", outer headers"), (*flow_label, ", flow label")];
        also.iter().filter(|(on, _)| *on).try_for_each(|(_, text)| f.write_str(text))
    }
}

impl fmt::Display for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for spread in &self.interfaces {
            writeln!(f, "{spread}")?;
        }
        if self.rings.is_empty() {
            return writeln!(f, "no workers, so no rings");
        }
        let heads = [("Waiting", 10), ("Ring size", 11), ("Frames", 14), ("Packets", 14), ("Dropped", 14)];
        let names = [left("From", 14), left("To", 14)].into_iter();
        f.write_str(&line(&names.chain(heads.map(|(head, width)| centre(head, width))).collect::<Vec<_>>()))?;
        for Ring { from, to, waiting, capacity, frames, packets, dropped } in &self.rings {
            f.write_str(&line(&[
                left(from, 14),
                left(to, 14),
                number(waiting, 10),
                number(capacity, 11),
                number(frames, 14),
                number(packets, 14),
                number(dropped, 14),
            ]))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Option<Vec<u32>> {
        WorkerList::from_arg(text, &Control::new()).ok().map(|WorkerList(list)| list)
    }

    #[test]
    fn lists_of_workers_are_read_and_nonsense_is_refused() {
        assert_eq!(list("0"), Some(vec![0]));
        assert_eq!(list("5,0-2,1"), Some(vec![0, 1, 2, 5]));
        assert_eq!(list("62"), Some(vec![62]));
        for wrong in ["", ",", "a", "1-", "-1", "3-1", "63", "0-4294967295", "0,,1", "1.5", "99999999999999"]
        {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rings_are_a_table_under_the_interfaces_that_use_them() {
        let spread = |interface: &str, workers: Vec<u32>, asked: Option<Vec<u32>>| Spread {
            interface: interface.into(),
            workers,
            auto: asked.is_none(),
            asked,
            symmetrical: true,
            inner: true,
            flow_label: false,
        };
        let outer =
            Spread { inner: false, flow_label: true, symmetrical: false, ..spread("b", vec![1], None) };
        let queues = Queues {
            default: "off",
            interfaces: vec![
                spread("pg0", vec![0, 2], Some(vec![0, 2])),
                spread("a", vec![0], Some(vec![0, 1])),
                spread("c", vec![], None),
                outer,
            ],
            rings: vec![Ring {
                from: "vpp_main".into(),
                to: "vpp_wk_0".into(),
                waiting: 1,
                capacity: 64,
                frames: 10,
                packets: 2560,
                dropped: 256,
            }],
        };
        assert_eq!(
            queues.to_string(),
            "pg0: workers 0,2, symmetrical\n\
             a: workers 0 (asked for 0,1), symmetrical\n\
             c: not spread (auto), symmetrical\n\
             b: workers 1 (auto), asymmetrical, outer headers, flow label\n\
             From          To              Waiting  Ring size     Frames        Packets       Dropped\n\
             vpp_main      vpp_wk_0           1         64          10           2560           256\n"
        );
        assert_eq!(
            Queues { default: "off", interfaces: vec![], rings: vec![] }.to_string(),
            "no workers, so no rings\n"
        );
    }
}
