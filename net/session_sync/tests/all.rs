//! Tests of two routers that share sessions.
