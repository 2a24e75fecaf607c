//! The forwarding table: prefixes, sources, paths and the trie packets read.
#![forbid(unsafe_code)]
