//! What a test cost in energy, where a meter exists; in CPU time where none does.
