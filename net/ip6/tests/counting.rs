//! Packets and bytes by adjacency: counted when asked, and no dearer when not.

use crate::common;

shoal_testkit::tests_of_counting!(common::TWO_HOSTS);
