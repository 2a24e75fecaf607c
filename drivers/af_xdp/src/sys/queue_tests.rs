//! The halves of a queue against rings with hostile contents: memory of our own in place of the kernel's.
