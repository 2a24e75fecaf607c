//! What a change of the graph costs when there are many nodes already.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::rc::Rc;

use shoal_buffer::{Packet, Pages, PoolConfig};
use shoal_graph::{Clock, Cx, Edge, Graph, GraphConfig, NoError, NoNext, NodeIndex, PacketNode};

const NODES: usize = 3_000;

struct Leaf;

impl PacketNode for Leaf {
    const NAME: &'static str = "leaf";
    type Next = NoNext;
    type Error = NoError;
    type Trace = &'static str;

    fn packet(&self, _: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<NoNext, NoError> {
        unreachable!("nothing is sent here")
    }
}

fn graph() -> (Rc<Graph>, NodeIndex) {
    let buffers = PoolConfig { name: "test".into(), buffers: 64, most: 64, pages: Pages::Small };
    let graph = Graph::new(GraphConfig { buffers, stats_bytes: 1 << 28, clock: Clock::real() }).unwrap();
    let hub = graph.add_input::<NoNext, NoError>("hub").unwrap();
    graph.build().unwrap();
    graph.add_worker(None).unwrap();
    (graph, hub)
}

/// A node that the hub has an edge to.
fn spoke(graph: &Graph, hub: NodeIndex, number: usize) -> (NodeIndex, Edge) {
    let node = graph.add_packet_named(&format!("leaf{number}"), Leaf).unwrap();
    (node, graph.add_edge(hub, node).unwrap())
}

#[test]
fn a_node_and_an_edge_to_it_cost_the_same_however_many_there_are() {
    let (graph, hub) = graph();
    let mut told = Vec::new();
    for number in 0..NODES {
        let before = graph.published();
        let (_, edge) = spoke(&graph, hub, number);
        assert_eq!(edge, Edge(number as u16 + 1));
        told.push(graph.published() - before);
    }
    let part = NODES / 3;
    let (first, last) = (told.iter().take(part).sum::<u64>(), told.iter().rev().take(part).sum::<u64>());
    assert!(last <= first, "threads received {first} nodes for the first {part}, {last} for the last");
    assert!(last <= part as u64 + 2, "threads received {last} nodes for {part} new ones");
    let hub = graph.nodes().into_iter().find(|n| n.index == hub).unwrap();
    assert!(hub.next.iter().skip(1).enumerate().all(|(n, name)| *name == format!("leaf{n}")));
    assert_eq!(hub.next.len(), 1 + NODES);
    graph.stop_workers().unwrap();
}

#[test]
fn deleted_nodes_cost_the_same_and_their_places_and_edges_are_used_again() {
    let (graph, hub) = graph();
    let nodes: Vec<(NodeIndex, Edge)> = (0..NODES).map(|number| spoke(&graph, hub, number)).collect();
    let before = graph.published();
    for (node, _) in &nodes {
        graph.remove(*node).unwrap();
    }
    assert_eq!(graph.published() - before, NODES as u64);
    graph.remove(nodes[0].0).unwrap();
    assert_eq!(graph.published() - before, NODES as u64, "it was gone already");
    let again: Vec<(NodeIndex, Edge)> = (0..NODES).map(|number| spoke(&graph, hub, number)).collect();
    assert_eq!(again, nodes);
    graph.stop_workers().unwrap();
}

#[test]
fn changes_made_together_are_told_together_and_a_failed_one_keeps_none_back() {
    let (graph, hub) = graph();
    let before = graph.published();
    let made = graph.batch(|| {
        let node = graph.add_packet_named("one", Leaf)?;
        let edge = graph.add_edge(node, hub)?;
        let other = graph.add_edge(node, node)?;
        assert_eq!(graph.published(), before, "told before all were made");
        Ok::<_, shoal_graph::GraphError>((edge, other))
    });
    assert_eq!(made.unwrap(), (Edge(1), Edge(2)));
    assert_eq!(graph.published() - before, 1);
    let failed = graph.batch(|| {
        graph.add_packet_named("two", Leaf)?;
        graph.add_packet_named("two", Leaf)
    });
    assert_eq!(failed.unwrap_err().to_string(), "node `two' exists already");
    assert_eq!(graph.published() - before, 2, "the first node is published");
    assert!(graph.node("two").is_ok());
    graph.stop_workers().unwrap();
}
