//! What can be wrong with a graph.

use std::io;

use shoal_buffer::slot::SlotError;

/// What can be wrong with a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphError {
    /// Nodes name next nodes, or features name nodes and arcs, that do not exist.
    Unknown(Vec<String>),
    /// A node of this name exists already.
    Exists(String),
    /// No node of this name; the nearest there is.
    NoNode(String, Option<String>),
    /// No arc of this name; the arcs there are.
    NoArc(String, Vec<&'static str>),
    /// No feature of this name on the arc; the features there are.
    NoFeature(String, Vec<String>),
    /// The features of this arc are those of all interfaces.
    OfAll(&'static str),
    /// Features whose constraints form a circle.
    Circle(&'static str, Vec<&'static str>),
    /// A feature that is part of a superpath does not stand in the order of its arc there.
    Order(String),
    /// More of something than the graph can hold.
    TooMany(&'static str, usize),
    /// No thread of this number; how many there are.
    NoThread(usize, usize),
    /// No such receive queue.
    NoQueue(u32),
    /// A place in packets cannot be had.
    Slot(SlotError),
    /// The system refused.
    System(String),
}

impl std::fmt::Display for GraphError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GraphError::Unknown(list) => write!(f, "unknown in the graph: {}", list.join(", ")),
            GraphError::Exists(name) => write!(f, "node `{name}' exists already"),
            GraphError::NoNode(name, Some(nearest)) => {
                write!(f, "no node `{name}', did you mean `{nearest}'?")
            }
            GraphError::NoNode(name, None) => write!(f, "no node `{name}'"),
            GraphError::NoArc(name, arcs) => {
                write!(f, "no feature arc `{name}', there are: {}", arcs.join(", "))
            }
            GraphError::NoFeature(name, there) => {
                write!(f, "no feature `{name}', there are: {}", there.join(", "))
            }
            GraphError::OfAll(arc) => {
                write!(f, "features of arc {arc} run for all interfaces and are enabled on local0 only")
            }
            GraphError::Circle(arc, names) => {
                write!(f, "features of arc {arc} want to come before each other: {}", names.join(", "))
            }
            GraphError::Order(feature) => {
                write!(f, "feature `{feature}' has another place on its arc than in the superpath")
            }
            GraphError::TooMany(what, most) => write!(f, "more than {most} {what}"),
            GraphError::NoThread(n, 1) => write!(f, "no thread {n}: there is only the main thread, 0"),
            GraphError::NoThread(n, count) => write!(f, "no thread {n}: there are 0 to {}", count - 1),
            GraphError::NoQueue(n) => write!(f, "no receive queue {n}"),
            GraphError::Slot(why) => why.fmt(f),
            GraphError::System(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for GraphError {}

impl From<SlotError> for GraphError {
    fn from(e: SlotError) -> Self {
        GraphError::Slot(e)
    }
}

impl From<io::Error> for GraphError {
    fn from(e: io::Error) -> Self {
        GraphError::System(e.to_string())
    }
}
