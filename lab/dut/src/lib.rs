//! Devices under test: started, checked, reset, taken away.
