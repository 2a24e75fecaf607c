//! AF_PACKET: the interfaces the kernel already has.
