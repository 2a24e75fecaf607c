//! The command line: parser, completion, server and the commands of the runtime itself.
#![forbid(unsafe_code)]
