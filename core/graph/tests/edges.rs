//! Edges between nodes.

use shoal_buffer::{Pages, PoolConfig};
use shoal_derive::NextNodes;
use shoal_graph::{Clock, Edge, Graph, GraphConfig, NextNodes, NoError, NoNext};

#[derive(NextNodes, Clone, Copy)]
enum Next {
    #[node("second")]
    Second,
    Other(Edge),
}

#[test]
fn edges_added_before_the_graph_is_built_come_behind_those_declared() {
    let buffers = PoolConfig { name: "test".into(), buffers: 64, most: 64, pages: Pages::Small };
    let graph = Graph::new(GraphConfig { buffers, stats_bytes: 1 << 24, clock: Clock::real() }).unwrap();
    let first = graph.add_input::<Next, NoError>("first").unwrap();
    let third = graph.add_input::<NoNext, NoError>("third").unwrap();
    let edge = graph.add_edge(first, third).unwrap();
    graph.add_input::<NoNext, NoError>("second").unwrap();
    graph.build().unwrap();
    assert_eq!((Next::Second.edge(), Next::Other(edge).edge()), (Edge(1), Edge(2)));
    let info = graph.nodes().into_iter().find(|n| n.index == first).unwrap();
    assert_eq!(info.next[1..], ["second", "third"]);
    assert_eq!(graph.add_edge(first, third).unwrap(), edge);
}
