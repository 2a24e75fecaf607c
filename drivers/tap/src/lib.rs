//! TAP: interfaces shared with the host kernel.
