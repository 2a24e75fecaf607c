//! ARP and the IPv4 neighbour table.
#![forbid(unsafe_code)]
