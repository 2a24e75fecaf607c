//! `mfib_signal_dump`: packets that raised a signal.

use shoal_adj::Family;
use shoal_fib::Fib;
use shoal_message::{InterfaceIndex, Message, Mprefix};
use shoal_module::api::{Call, Dump};

use crate::Mfib;

/// Asks for the packets that were signalled since it was asked last.
#[derive(Message)]
#[message(request, details = MfibSignalDetails)]
pub struct MfibSignalDump {}

/// A packet that was signalled. The packet itself is not kept.
#[derive(Message)]
#[message(reply)]
pub struct MfibSignalDetails {
    /// The interface that received it.
    pub sw_if_index: InterfaceIndex,
    /// Its table.
    pub table_id: u32,
    /// The entry it met.
    pub prefix: Mprefix,
    /// 0.
    pub ip_packet_len: u16,
    /// Nothing.
    pub ip_packet_data: [u8; 256],
}

impl Dump for MfibSignalDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = MfibSignalDetails> + 'static {
        let (fib, mfib) = (call.get::<Fib>().ok(), call.get::<Mfib>().ok());
        let all = Family::ALL
            .into_iter()
            .flat_map(move |family| mfib.as_ref().map(|mfib| mfib.take_signals(family)).unwrap_or_default());
        all.filter_map(move |signal| {
            Some(MfibSignalDetails {
                sw_if_index: InterfaceIndex(signal.interface.0),
                table_id: fib.as_ref()?.id_of(signal.prefix.family(), signal.table).ok()?,
                prefix: super::told(signal.prefix),
                ip_packet_len: 0,
                ip_packet_data: [0; 256],
            })
        })
    }
}
