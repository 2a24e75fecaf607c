//! ping and traceroute from the router.
#![forbid(unsafe_code)]
