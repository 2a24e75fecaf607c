//! The tests: searches, formulas and statistics of the RFCs.
