//! The whole router in one process, with a virtual clock, for tests.
