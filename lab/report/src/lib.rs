//! A results folder, and the page that explains it.
