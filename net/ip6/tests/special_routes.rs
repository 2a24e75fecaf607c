//! Routes that have packets received again, and routes that count.

use crate::common;

shoal_testkit::tests_of_special_routes!(common::TWO_HOSTS);
