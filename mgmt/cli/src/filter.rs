//! Filters of packets, written as pcap expressions: `tcp and port 80`.

use std::sync::{Arc, Mutex, PoisonError};

use pcap::{Capture, Error, Linktype};
use shoal_graph::trace::Filter;

/// Compiles an expression for Ethernet frames.
///
/// # Errors
/// What libpcap says of the expression.
pub fn compile(expression: &str) -> Result<Filter, String> {
    let program = Capture::dead(Linktype::ETHERNET)
        .and_then(|capture| capture.compile(expression, true))
        .map_err(|error| match error {
            Error::PcapError(message) => message,
            other => other.to_string(),
        })?;
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
