//! `get_node_index`, `add_node_next`, `get_next_index`: numbers of nodes and of the edges between them;
//! `graph_node_get`: all of them.

use shoal_graph::{NodeBrief, NodeIndex, NodeKind};
use shoal_message::{Count, Message, Retval, Text, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Get, Request};

/// Messages that VPP has in `graph.api`.
pub static GRAPH: ApiPart = ApiPart {
    file: "graph",
    folder: Folder::Plugins,
    version: "1.0.0",
    messages: &[
        ApiMessage::get::<GraphNodeGet>(),
        ApiMessage::sent::<GraphNodeGetReply>(),
        ApiMessage::sent::<GraphNodeDetails>(),
    ],
};

/// What stands where there is no number.
const NONE: u32 = u32::MAX;

/// Asks for the number of a node.
#[derive(Message)]
#[message(request, reply = GetNodeIndexReply)]
pub struct GetNodeIndex {
    /// Its name.
    node_name: Text<64>,
}

/// The number of a node.
#[derive(Message)]
#[message(reply)]
pub struct GetNodeIndexReply {
    retval: i32,
    /// The number; all bits set if there is no such node.
    node_index: u32,
}

/// A node, or what to say if there is none.
fn node(call: &Call, name: &str, none: Retval) -> Result<NodeIndex, Retval> {
    let graph = call.control.graph().map_err(|_| Retval::UNSPECIFIED)?;
    graph.node(name).map_err(|_| none)
}

/// Which edge leads from one node to another.
fn edge(call: &Call, from: &str, to: &str, none: Retval) -> Result<u32, Retval> {
    let node = node(call, from, Retval::NO_SUCH_NODE)?;
    let to = self::node(call, to, Retval::NO_SUCH_NODE2)?;
    let graph = call.control.graph().map_err(|_| Retval::UNSPECIFIED)?;
    let place = graph.next_nodes(node).iter().position(|next| *next == to).ok_or(none)?;
    Ok(place as u32)
}

impl Request for GetNodeIndex {
    fn handle(self, call: &Call) -> Result<GetNodeIndexReply, Retval> {
        Ok(match node(call, self.node_name.as_str(), Retval::NO_SUCH_NODE) {
            Ok(node) => GetNodeIndexReply { retval: 0, node_index: node.number() },
            Err(retval) => GetNodeIndexReply { retval: retval.0, node_index: NONE },
        })
    }
}

/// Asks for an edge from one node to another. The edges of this router are those its nodes declare: the answer is the
/// number of one that is there, or that it cannot be made.
#[derive(Message)]
#[message(request, reply = AddNodeNextReply)]
pub struct AddNodeNext {
    /// Where it begins.
    node_name: Text<64>,
    /// Where it ends.
    next_name: Text<64>,
}

/// The number of an edge.
#[derive(Message)]
#[message(reply)]
pub struct AddNodeNextReply {
    retval: i32,
    /// The number among the edges of the node; all bits set if there is none.
    next_index: u32,
}

impl Request for AddNodeNext {
    fn handle(self, call: &Call) -> Result<AddNodeNextReply, Retval> {
        let edge = edge(call, self.node_name.as_str(), self.next_name.as_str(), Retval::UNIMPLEMENTED);
        Ok(match edge {
            Ok(next_index) => AddNodeNextReply { retval: 0, next_index },
            Err(retval) => AddNodeNextReply { retval: retval.0, next_index: NONE },
        })
    }
}

/// Asks for the number of the edge from one node to another.
#[derive(Message)]
#[message(request, reply = GetNextIndexReply)]
pub struct GetNextIndex {
    /// Where it begins.
    node_name: Text<64>,
    /// Where it ends.
    next_name: Text<64>,
}

/// The number of an edge.
#[derive(Message)]
#[message(reply)]
pub struct GetNextIndexReply {
    retval: i32,
    /// The number among the edges of the node; all bits set if there is none.
    next_index: u32,
}

impl Request for GetNextIndex {
    fn handle(self, call: &Call) -> Result<GetNextIndexReply, Retval> {
        let edge = edge(call, self.node_name.as_str(), self.next_name.as_str(), Retval::NO_SUCH_ENTRY);
        Ok(match edge {
            Ok(next_index) => GetNextIndexReply { retval: 0, next_index },
            Err(retval) => GetNextIndexReply { retval: retval.0, next_index: NONE },
        })
    }
}

/// What a node is: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("NODE_FLAG_FRAME_NO_FREE_AFTER_DISPATCH", 1)]
#[entry("NODE_FLAG_IS_OUTPUT", 2)]
#[entry("NODE_FLAG_IS_DROP", 4)]
#[entry("NODE_FLAG_IS_PUNT", 8)]
#[entry("NODE_FLAG_IS_HANDOFF", 16)]
#[entry("NODE_FLAG_TRACE", 32)]
#[entry("NODE_FLAG_SWITCH_FROM_INTERRUPT_TO_POLLING_MODE", 64)]
#[entry("NODE_FLAG_SWITCH_FROM_POLLING_TO_INTERRUPT_MODE", 128)]
#[entry("NODE_FLAG_TRACE_SUPPORTED", 256)]
pub struct NodeFlag(u32);

impl NodeFlag {
    /// The words of `show graph node` for the bits.
    pub(crate) const WORDS: [(&'static str, u32); 9] = [
        ("no_free", 1),
        ("output", 2),
        ("drop", 4),
        ("punt", 8),
        ("handoff", 16),
        ("trace", 32),
        ("polling", 64),
        ("interrupt", 128),
        ("input", 256),
    ];

    /// All bits.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// The words for its bits.
    pub(crate) fn words(self) -> Vec<&'static str> {
        Self::WORDS.iter().filter(|(_, bit)| self.0 & bit != 0).map(|(word, _)| *word).collect()
    }

    pub(crate) fn of(node: &NodeBrief) -> Self {
        let flags = [
            (node.name.ends_with("-output"), 2),
            (&*node.name == "error-drop", 4),
            (&*node.name == "error-punt", 8),
            (node.name.contains("handoff"), 16),
            (node.kind == NodeKind::Input, 256),
        ];
        NodeFlag(flags.into_iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum())
    }
}

/// Asks for nodes: one by number or name, those with any of some flags, or all.
#[derive(Message)]
#[message(request, reply = GraphNodeGetReply, details = GraphNodeDetails)]
pub struct GraphNodeGet {
    /// Where to go on; 0 to begin.
    cursor: u32,
    /// The number of the only node; all bits set for others.
    index: u32,
    /// The name of the only node; none for others.
    name: Text<64>,
    /// Flags of which each node has one; none for all nodes.
    flags: NodeFlag,
    /// Whether the numbers of the next nodes are told.
    want_arcs: bool,
}

/// Whether there are more.
#[derive(Message)]
#[message(reply)]
pub struct GraphNodeGetReply {
    retval: i32,
    /// Where to go on; all bits set at the end.
    cursor: u32,
}

/// A node.
#[derive(Message)]
#[message(reply)]
pub struct GraphNodeDetails {
    index: u32,
    name: Text<64>,
    flags: NodeFlag,
    n_arcs: Count<u32>,
    /// The numbers of the next nodes, by edge; all bits set where an edge leads nowhere.
    #[counted_by(n_arcs)]
    arcs_out: Vec<u32>,
}

impl Get for GraphNodeGet {
    fn get(self, call: &Call) -> Result<(Vec<GraphNodeDetails>, GraphNodeGetReply), Retval> {
        /// Details of one answer at most.
        const PAGE: usize = 500;
        let graph = call.control.graph().map_err(|_| Retval::UNSPECIFIED)?;
        let number =
            |next: NodeIndex| graph.node_at(next.number() as usize).map_or(NONE, |n| n.index.number());
        let details = |node: &NodeBrief| GraphNodeDetails {
            index: node.index.number(),
            name: (&*node.name).into(),
            flags: NodeFlag::of(node),
            n_arcs: Count::default(),
            arcs_out: if self.want_arcs {
                graph.next_nodes(node.index).into_iter().map(number).collect()
            } else {
                Vec::new()
            },
        };
        let end = GraphNodeGetReply { retval: 0, cursor: NONE };
        let name = self.name.as_str();
        if self.index != NONE || !name.is_empty() {
            let at = match self.index {
                NONE => graph.node(name).map_err(|_| Retval::NO_SUCH_ENTRY)?.number(),
                index => index,
            };
            let node = graph.node_at(at as usize).ok_or(Retval::NO_SUCH_ENTRY)?;
            return Ok((vec![details(&node)], end));
        }
        let from = if self.cursor == NONE { 0 } else { self.cursor };
        let mut left = (from as usize..graph.node_places())
            .filter_map(|at| graph.node_at(at))
            .filter(|node| self.flags.0 == 0 || NodeFlag::of(node).0 & self.flags.0 != 0);
        let page = left.by_ref().take(PAGE).map(|node| details(&node)).collect();
        let reply = match left.next() {
            Some(next) => GraphNodeGetReply { retval: Retval::EAGAIN.0, cursor: next.index.number() },
            None => end,
        };
        Ok((page, reply))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::Router;

    fn get(call: &Call, index: u32, name: &str, flags: u32) -> Result<Vec<GraphNodeDetails>, Retval> {
        let get =
            GraphNodeGet { cursor: 0, index, name: name.into(), flags: NodeFlag(flags), want_arcs: true };
        get.get(call).map(|(all, reply)| {
            assert_eq!((reply.retval, reply.cursor), (0, NONE));
            all
        })
    }

    #[test]
    fn declared_messages_are_those_of_vpp() {
        shoal_testkit::api::same_as_vpp(&[&GRAPH]);
    }

    #[test]
    fn nodes_are_told_by_number_by_name_by_flag_and_all() {
        let router = Router::new();
        let call = Call::local(&router.control);
        let all = get(&call, NONE, "", 0).unwrap();
        assert_eq!(all.len(), router.graph().nodes().len());
        let input = &get(&call, NONE, "test-input", 0).unwrap()[0];
        assert_eq!(input.flags, NodeFlag(256));
        let judge = &get(&call, NONE, "judge", 0).unwrap()[0];
        assert!(input.arcs_out.contains(&judge.index));
        let same = &get(&call, input.index, "", 0).unwrap()[0];
        assert_eq!(same.name.as_str(), "test-input");
        let inputs = get(&call, NONE, "", 256).unwrap();
        assert!(inputs.iter().all(|node| node.flags.0 & 256 != 0) && !inputs.is_empty());
        assert_eq!(get(&call, NONE, "nowhere", 0).err(), Some(Retval::NO_SUCH_ENTRY));
        assert_eq!(get(&call, 9999, "", 0).err(), Some(Retval::NO_SUCH_ENTRY));
        let from = GraphNodeGet {
            cursor: all[1].index,
            index: NONE,
            name: Text::default(),
            flags: NodeFlag(0),
            want_arcs: false,
        };
        let (rest, _) = from.get(&call).unwrap();
        assert_eq!(rest.len(), all.len() - 1);
        assert!(rest[0].arcs_out.is_empty());
    }
}
