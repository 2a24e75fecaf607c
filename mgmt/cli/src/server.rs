//! The socket.
