//! Packets and bytes by adjacency: counted when asked, and no dearer when not.

mod common;

shoal_testkit::tests_of_counting!(common::TWO_HOSTS);
