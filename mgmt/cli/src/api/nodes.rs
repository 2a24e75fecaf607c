//! `get_node_index`, `add_node_next`, `get_next_index`: numbers of nodes and of the edges between them.

use shoal_graph::NodeInfo;
use shoal_message::{Message, Retval, Text};
use shoal_module::api::{Call, Request};

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
fn node(call: &Call, name: &str, none: Retval) -> Result<NodeInfo, Retval> {
    let graph = call.control.graph().map_err(|_| Retval::UNSPECIFIED)?;
    graph.nodes().into_iter().find(|node| node.name == name).ok_or(none)
}

/// Which edge leads from one node to another.
fn edge(call: &Call, from: &str, to: &str, none: Retval) -> Result<u32, Retval> {
    let node = node(call, from, Retval::NO_SUCH_NODE)?;
    self::node(call, to, Retval::NO_SUCH_NODE2)?;
    let place = node.next.iter().position(|next| *next == to).ok_or(none)?;
    Ok(place as u32)
}

impl Request for GetNodeIndex {
    fn handle(self, call: &Call) -> Result<GetNodeIndexReply, Retval> {
        Ok(match node(call, self.node_name.as_str(), Retval::NO_SUCH_NODE) {
            Ok(node) => GetNodeIndexReply { retval: 0, node_index: node.index.number() },
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
