//! The graph runtime: nodes, frames, dispatch, feature arcs, threads, handoff, trace and counters.
