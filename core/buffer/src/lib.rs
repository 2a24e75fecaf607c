//! Packet buffers: pools, headroom, chains and the linear token.
