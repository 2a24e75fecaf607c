//! Frames of the lab's streams: built, changed, recognised; with code of its own, not the router's.
