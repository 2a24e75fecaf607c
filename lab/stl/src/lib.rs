//! Profiles written for TRex's STL API, as streams.
