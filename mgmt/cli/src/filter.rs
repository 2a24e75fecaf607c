//! Filters of packets, written as pcap expressions: `tcp and port 80`.

use std::sync::{Arc, Mutex, PoisonError};

use pcap::{BpfProgram, Capture, Error, Linktype};
use shoal_graph::trace::Filter;

use crate::bpf_image;

/// Compiles an expression for Ethernet frames.
///
/// # Errors
/// What libpcap says of the expression.
pub fn compile(expression: &str) -> Result<Filter, String> {
    compile_with(expression, Optimize::Yes)
}

/// Whether libpcap makes a program shorter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Optimize {
    /// It does.
    Yes,
    /// The program is as it was read.
    No,
}

fn program(expression: &str, optimize: Optimize) -> Result<BpfProgram, String> {
    Capture::dead(Linktype::ETHERNET)
        .and_then(|capture| capture.compile(expression, optimize == Optimize::Yes))
        .map_err(|error| match error {
            Error::PcapError(message) => message,
            other => other.to_string(),
        })
}

/// The program of an expression as text, a line for each instruction.
///
/// # Errors
/// What libpcap says of the expression.
pub fn image(expression: &str, optimize: Optimize) -> Result<String, String> {
    let program = program(expression, optimize)?;
    let lines = program.get_instructions().iter().enumerate();
    Ok(lines.map(|(at, instruction)| bpf_image::line(at, &instruction.to_string())).collect())
}

/// As [`compile`], with or without libpcap's optimizer.
///
/// # Errors
/// What libpcap says of the expression.
pub fn compile_with(expression: &str, optimize: Optimize) -> Result<Filter, String> {
    let program = program(expression, optimize)?;
    // libpcap does not promise that one program may run on two threads at once. Only packets that may be traced
    // come here, so the lock costs nothing that matters.
    let program = Mutex::new(program);
    Ok(Arc::new(move |bytes| program.lock().unwrap_or_else(PoisonError::into_inner).filter(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ether_type: u16, protocol: u8) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend(ether_type.to_be_bytes());
        bytes.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0; 8]);
        bytes
    }

    #[test]
    fn an_expression_picks_packets() {
        let filter = compile("ip host 10.0.0.2 and udp").unwrap();
        assert!(filter(&frame(0x0800, 17)));
        assert!(!filter(&frame(0x0800, 6)));
        assert!(!filter(&frame(0x0806, 17)));
        assert!(!filter(&[]), "an empty packet is no reason to fail");
    }

    #[test]
    fn a_wrong_expression_gives_libpcaps_message() {
        let Err(message) = compile("ip hots 10.0.0.2") else { panic!("must be refused") };
        assert!(message.contains("syntax error"), "{message}");
    }
}
