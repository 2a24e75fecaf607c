//! Adjacencies: the rewrite and the interface that a route ends in.
#![forbid(unsafe_code)]
