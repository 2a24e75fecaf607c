//! CLI declarations.
