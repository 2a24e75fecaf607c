//! siitperf's configuration file, command lines and output.
