//! The stats segment: a directory of the counters other processes may map.
#![forbid(unsafe_code)]
