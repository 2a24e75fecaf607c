//! `trace_*`: packets are traced, and what each node saw of them is read.

use std::rc::Rc;

use shoal_graph::{FilterUse, Graph, NodeKind};
use shoal_message::{Message, Retval, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder, Get, Request};

use crate::commands::trace::{Passing, Shown, packet_text};
use crate::commands::trace_time::TraceTime;

/// Messages that VPP has in `tracedump.api`.
pub static TRACEDUMP: ApiPart = ApiPart {
    file: "tracedump",
    folder: Folder::Plugins,
    version: "0.2.0",
    messages: &[
        ApiMessage::request::<TraceSetFilters>(),
        ApiMessage::request::<TraceCapturePackets>(),
        ApiMessage::request::<TraceClearCapture>(),
        ApiMessage::get::<TraceDump>(),
        ApiMessage::sent::<TraceDumpReply>(),
        ApiMessage::sent::<TraceDetails>(),
        ApiMessage::request::<TraceClearCache>(),
        ApiMessage::dump::<TraceV2Dump>(),
        ApiMessage::sent::<TraceV2Details>(),
        ApiMessage::request::<TraceSetFilterFunction>(),
        ApiMessage::dump::<TraceFilterFunctionDump>(),
        ApiMessage::sent::<TraceFilterFunctionDetails>(),
    ],
};

/// What stands for no node, and for all threads.
const NONE: u32 = u32::MAX;

fn graph(call: &Call) -> Result<Rc<Graph>, Retval> {
    call.control.graph().map_err(|_| Retval::UNSPECIFIED)
}

/// Which traced packets are shown.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFilterFlag {
    /// All.
    #[entry("TRACE_FF_NONE")]
    None = 0,
    /// Those that passed a node.
    #[entry("TRACE_FF_INCLUDE_NODE")]
    IncludeNode = 1,
    /// Those that did not.
    #[entry("TRACE_FF_EXCLUDE_NODE")]
    ExcludeNode = 2,
    /// Those that a classifier wants.
    #[entry("TRACE_FF_INCLUDE_CLASSIFIER")]
    IncludeClassifier = 3,
    /// Those that it does not.
    #[entry("TRACE_FF_EXCLUDE_CLASSIFIER")]
    ExcludeClassifier = 4,
}

/// Says which traced packets are shown: those that passed a node, or did not.
#[derive(Message)]
#[message(request)]
pub struct TraceSetFilters {
    flag: TraceFilterFlag,
    /// Most packets that are shown.
    count: u32,
    /// The node.
    #[preset(4294967295)]
    node_index: u32,
    /// A classifier's table, which this router does not have.
    #[preset(4294967295)]
    classifier_table_index: u32,
}

impl Request for TraceSetFilters {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (graph, shown) = (graph(call)?, Shown::of(&call.control));
        let node = || {
            let all = graph.nodes();
            let node = all.iter().find(|node| node.index.number() == self.node_index);
            node.map(|node| node.index).ok_or(Retval::NO_SUCH_NODE)
        };
        shown.set(match self.flag {
            TraceFilterFlag::None => Passing::Any,
            TraceFilterFlag::IncludeNode => Passing::By(node()?, self.count),
            TraceFilterFlag::ExcludeNode => Passing::NotBy(node()?, self.count),
            TraceFilterFlag::IncludeClassifier | TraceFilterFlag::ExcludeClassifier => {
                return Err(Retval::NO_SUCH_TABLE);
            }
        });
        Ok(())
    }
}

/// Traces the next packets that enter at a node.
#[derive(Message)]
#[message(request)]
pub struct TraceCapturePackets {
    /// The node.
    node_index: u32,
    /// How many.
    max_packets: u32,
    /// Packets only that the trace filter function wants.
    use_filter: bool,
    /// Traces are complete without it.
    verbose: bool,
    /// Whether earlier traces are forgotten.
    pre_capture_clear: bool,
}

impl Request for TraceCapturePackets {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let graph = graph(call)?;
        let nodes = graph.nodes();
        let node = nodes.iter().find(|node| node.index.number() == self.node_index);
        let node = node.ok_or(Retval::NO_SUCH_NODE)?;
        if node.kind != NodeKind::Input {
            return Err(Retval::INVALID_VALUE);
        }
        let filter = self.use_filter.then(|| graph.filters().filter(FilterUse::Trace));
        if self.pre_capture_clear {
            graph.trace_clear();
        }
        graph.trace_add(node.index, self.max_packets, filter).map_err(|_| Retval::NO_SUCH_NODE)
    }
}

/// Forgets traced packets and ends tracing.
#[derive(Message)]
#[message(request)]
pub struct TraceClearCapture {}

impl Request for TraceClearCapture {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        graph(call)?.trace_clear();
        Ok(())
    }
}

/// A traced packet, and what follows it.
struct Traced {
    thread: u32,
    position: u32,
    text: String,
    more_this_thread: bool,
    more_threads: bool,
}

/// The packet at a place that is shown, or the next one on its thread or a later one.
fn next(call: &Call, (thread, position): (u32, u32)) -> Option<Traced> {
    let (graph, shown) = (call.control.graph().ok()?, Shown::of(&call.control));
    let mut threads = graph.threads().into_iter().map(|t| t.index).filter(|t| *t >= thread as usize);
    let first_there = |t: usize, from: usize| {
        graph.traces().with(t, |all| {
            let mut places = shown.places(all).skip_while(|at| *at < from);
            Some((places.next()?, places.next().is_some()))
        })
    };
    let (t, (at, more_this_thread)) = threads.by_ref().find_map(|t| {
        let from = if t == thread as usize { position as usize } else { 0 };
        Some((t, first_there(t, from)?))
    })?;
    let more_threads = threads.any(|t| first_there(t, 0).is_some());
    let time = TraceTime::of(&call.control);
    let text = graph.traces().with(t, |all| Some(packet_text(&graph, at, all.get(at)?, time)))?;
    Some(Traced { thread: t as u32, position: at as u32, text, more_this_thread, more_threads })
}

/// Asks for traced packets, from one on.
#[derive(Message)]
#[message(request, reply = TraceDumpReply, details = TraceDetails)]
pub struct TraceDump {
    /// Whether a snapshot is forgotten; there is none, what is told is what there is.
    clear_cache: u8,
    /// The thread of the first one; all bits set for none.
    thread_id: u32,
    /// Its place among those of the thread.
    position: u32,
    /// Most of them.
    max_records: u32,
}

/// Where to go on.
#[derive(Message)]
#[message(reply)]
pub struct TraceDumpReply {
    retval: i32,
    /// The thread of the next one.
    last_thread_id: u32,
    /// Its place.
    last_position: u32,
    more_this_thread: u8,
    more_threads: u8,
    /// Whether none were asked for.
    flush_only: u8,
    /// Whether there are no more.
    done: u8,
}

/// A traced packet. It has a client's index in front of its context, as no other details have.
#[derive(Message)]
#[message(indexed)]
pub struct TraceDetails {
    thread_id: u32,
    /// Its place among those of the thread.
    position: u32,
    more_this_thread: u8,
    more_threads: u8,
    /// Whether there are no more.
    done: u8,
    /// As its place.
    packet_number: u32,
    /// What each node saw, as `show trace` prints it.
    trace_data: String,
}

impl Get for TraceDump {
    fn get(self, call: &Call) -> Result<(Vec<TraceDetails>, TraceDumpReply), Retval> {
        /// Packets of one answer: some milliseconds' worth of text.
        const MOST: u32 = 100;
        let flush_only = self.thread_id == NONE;
        let (mut all, mut at, mut next_one) = (Vec::new(), (self.thread_id, self.position), None);
        if !flush_only {
            next_one = next(call, at);
        }
        while let Some(one) = next_one.take() {
            if all.len() >= self.max_records.min(MOST) as usize {
                next_one = Some(one);
                break;
            }
            let done = !one.more_this_thread && !one.more_threads;
            at = (one.thread, one.position + 1);
            all.push(TraceDetails {
                thread_id: one.thread,
                position: one.position,
                more_this_thread: one.more_this_thread.into(),
                more_threads: one.more_threads.into(),
                done: done.into(),
                packet_number: one.position,
                trace_data: one.text,
            });
            next_one = next(call, at);
        }
        let (place, same_thread, later) = match &next_one {
            Some(one) => {
                ((one.thread, one.position), one.thread == at.0, one.thread != at.0 || one.more_threads)
            }
            None => (at, false, false),
        };
        let reply = TraceDumpReply {
            retval: 0,
            last_thread_id: place.0,
            last_position: place.1,
            more_this_thread: same_thread.into(),
            more_threads: later.into(),
            flush_only: flush_only.into(),
            done: next_one.is_none().into(),
        };
        Ok((all, reply))
    }
}

/// Forgets a snapshot; there is none.
#[derive(Message)]
#[message(request)]
pub struct TraceClearCache {}

impl Request for TraceClearCache {
    fn handle(self, _: &Call) -> Result<(), Retval> {
        Ok(())
    }
}

/// Asks for traced packets of one thread or all, from one on.
#[derive(Message)]
#[message(request, details = TraceV2Details)]
pub struct TraceV2Dump {
    /// The thread; all bits set for all.
    #[preset(4294967295)]
    thread_id: u32,
    /// The place of the first one on each thread.
    position: u32,
    /// Most of them on each thread.
    #[preset(50)]
    max: u32,
    /// Whether a snapshot is forgotten; there is none.
    clear_cache: bool,
}

/// A traced packet.
#[derive(Message)]
#[message(reply)]
pub struct TraceV2Details {
    thread_id: u32,
    /// Its place among those of the thread.
    position: u32,
    /// Whether the thread has more.
    more: bool,
    /// What each node saw, as `show trace` prints it.
    trace_data: String,
}

impl Dump for TraceV2Dump {
    fn dump(self, call: &Call) -> impl Iterator<Item = TraceV2Details> + 'static {
        let all = call.control.graph().map(|graph| graph.threads()).unwrap_or_default();
        let threads = all.into_iter().map(|t| t.index as u32);
        let wanted = threads.filter(move |t| self.thread_id == NONE || *t == self.thread_id);
        let call = call.clone();
        wanted.flat_map(move |thread| {
            let (call, mut at) = (call.clone(), self.position);
            let of_thread = std::iter::from_fn(move || {
                let one = next(&call, (thread, at)).filter(|one| one.thread == thread)?;
                at = one.position + 1;
                Some(TraceV2Details {
                    thread_id: thread,
                    position: one.position,
                    more: one.more_this_thread,
                    trace_data: one.text,
                })
            });
            of_thread.take(self.max as usize)
        })
    }
}

/// Says by which function it is asked whether a packet is traced.
#[derive(Message)]
#[message(request)]
pub struct TraceSetFilterFunction {
    filter_function_name: String,
}

impl Request for TraceSetFilterFunction {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let chosen = graph(call)?.filters().select(FilterUse::Trace, &self.filter_function_name);
        chosen.map_err(|_| Retval::NO_SUCH_ENTRY)
    }
}

/// Asks which functions there are to ask whether a packet is traced.
#[derive(Message)]
#[message(request, details = TraceFilterFunctionDetails)]
pub struct TraceFilterFunctionDump {}

/// A function by which it can be asked whether a packet is traced.
#[derive(Message)]
#[message(reply)]
pub struct TraceFilterFunctionDetails {
    /// Whether it is the one in use.
    selected: bool,
    name: String,
}

impl Dump for TraceFilterFunctionDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = TraceFilterFunctionDetails> + 'static {
        let all = graph(call).map(|graph| graph.filters().list(FilterUse::Trace)).unwrap_or_default();
        let details = |f: shoal_graph::FilterInfo| TraceFilterFunctionDetails {
            selected: f.selected,
            name: f.name.to_owned(),
        };
        all.into_iter().map(details)
    }
}

#[cfg(test)]
mod tests {
    use shoal_graph::NodeIndex;

    use super::*;
    use crate::commands::testing::Router;
    use crate::commands::trace_filter::CLASSIFIER;

    fn node(router: &Router, name: &str) -> NodeIndex {
        router.graph().node(name).unwrap()
    }

    fn capture(node_index: u32, max_packets: u32) -> TraceCapturePackets {
        let (use_filter, verbose, pre_capture_clear) = (false, false, true);
        TraceCapturePackets { node_index, max_packets, use_filter, verbose, pre_capture_clear }
    }

    /// A router that traced so many packets.
    fn traced(count: usize) -> (Router, Call) {
        let router = Router::new();
        let call = Call::local(&router.control);
        let input = node(&router, "test-input").number();
        capture(input, count as u32).handle(&call).unwrap();
        router.packets(count);
        (router, call)
    }

    fn dump(
        call: &Call,
        thread_id: u32,
        position: u32,
        max_records: u32,
    ) -> (Vec<TraceDetails>, TraceDumpReply) {
        TraceDump { clear_cache: 0, thread_id, position, max_records }.get(call).unwrap()
    }

    fn v2(call: &Call, thread_id: u32, position: u32, max: u32) -> Vec<TraceV2Details> {
        TraceV2Dump { thread_id, position, max, clear_cache: false }.dump(call).collect()
    }

    #[test]
    fn declared_messages_are_those_of_vpp() {
        shoal_testkit::api::same_as_vpp(&[&TRACEDUMP]);
    }

    #[test]
    fn traced_packets_are_read_piece_by_piece() {
        let (router, call) = traced(5);
        let (first, reply) = dump(&call, 0, 0, 3);
        assert_eq!(first.iter().map(|d| d.position).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(first.iter().all(|d| d.more_this_thread == 1 && d.done == 0));
        assert!(first[0].trace_data.starts_with("Packet 1\n\n"), "{}", first[0].trace_data);
        assert!(first[0].trace_data.contains(": judge\n  60 bytes\n"), "{}", first[0].trace_data);
        assert_eq!((reply.last_thread_id, reply.last_position, reply.done), (0, 3, 0));
        assert_eq!((reply.more_this_thread, reply.more_threads), (1, 0));
        let (rest, reply) = dump(&call, reply.last_thread_id, reply.last_position, 100);
        assert_eq!(rest.iter().map(|d| d.position).collect::<Vec<_>>(), [3, 4]);
        assert_eq!((rest[1].done, reply.done, reply.more_this_thread), (1, 1, 0));
        let (none, reply) = dump(&call, NONE, 0, 100);
        assert_eq!((none.len(), reply.flush_only, reply.done), (0, 1, 1));
        assert_eq!(dump(&call, 77, 0, 100).0.len(), 0);
        TraceClearCapture {}.handle(&call).unwrap();
        assert_eq!(dump(&call, 0, 0, 100).0.len(), 0);
        drop(router);
    }

    #[test]
    fn the_newer_dump_has_a_place_and_a_bound() {
        let (_router, call) = traced(5);
        let all = v2(&call, NONE, 0, 50);
        assert_eq!(
            all.iter().map(|d| (d.position, d.more)).collect::<Vec<_>>()[3..],
            [(3, true), (4, false)]
        );
        assert_eq!(v2(&call, 0, 4, 50).len(), 1);
        assert_eq!(v2(&call, 0, 0, 2).len(), 2);
        assert_eq!(v2(&call, 7, 0, 50).len(), 0);
        assert_eq!(v2(&call, NONE, u32::MAX, u32::MAX).len(), 0);
    }

    #[test]
    fn packets_that_passed_a_node_are_chosen() {
        let (router, call) = traced(3);
        let choose = |flag, node_index, count| {
            TraceSetFilters { flag, count, node_index, classifier_table_index: NONE }.handle(&call)
        };
        let judge = node(&router, "judge").number();
        choose(TraceFilterFlag::IncludeNode, judge, 2).unwrap();
        assert_eq!(v2(&call, NONE, 0, 50).len(), 2);
        assert!(!router.run("show trace").contains("Packet 3\n"));
        choose(TraceFilterFlag::ExcludeNode, judge, 2).unwrap();
        assert_eq!(v2(&call, NONE, 0, 50).len(), 0);
        assert!(router.run("show trace").contains("No packets in trace buffer"));
        assert_eq!(choose(TraceFilterFlag::IncludeNode, 9999, 2), Err(Retval::NO_SUCH_NODE));
        assert_eq!(choose(TraceFilterFlag::IncludeClassifier, judge, 2), Err(Retval::NO_SUCH_TABLE));
        router.run("trace filter none");
        assert_eq!(v2(&call, NONE, 0, 50).len(), 3);
        router.run("trace filter include judge 1");
        assert_eq!(v2(&call, NONE, 0, 50).len(), 1);
        router.run("trace filter exclude error-drop 9");
        assert_eq!(v2(&call, NONE, 0, 50).len(), 0);
        router.refused("trace filter include nowhere 9");
    }

    #[test]
    fn mistakes_have_vpps_numbers() {
        let (router, call) = traced(1);
        assert_eq!(capture(9999, 1).handle(&call), Err(Retval::NO_SUCH_NODE));
        let judge = node(&router, "judge").number();
        assert_eq!(capture(judge, 1).handle(&call), Err(Retval::INVALID_VALUE));
        let function =
            |name: &str| TraceSetFilterFunction { filter_function_name: name.into() }.handle(&call);
        assert_eq!(function(CLASSIFIER), Ok(()));
        assert_eq!(function("bpf_trace"), Err(Retval::NO_SUCH_ENTRY));
        let all: Vec<_> = TraceFilterFunctionDump {}.dump(&call).map(|d| (d.selected, d.name)).collect();
        assert_eq!(all, [(false, "bpf_trace_filter".to_owned()), (true, CLASSIFIER.to_owned())]);
    }
}
