//! Any bytes, as a capture file; what could be read is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_wire::pcap::{Reader, Writer};

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = Reader::new(data) else { return };
    let Ok(mut writer) = Writer::new(Vec::new(), reader.link_type()) else { return };
    let mut read = Vec::new();
    while let Ok(Some(record)) = reader.read() {
        if writer.write(record.timestamp, &record.data).is_ok() {
            read.push(record.data);
        }
    }
    let written = writer.into_inner();
    let mut again = Reader::new(written.as_slice()).expect("what we wrote begins well");
    for data in read {
        assert_eq!(again.read().expect("what we wrote is right").expect("and all there").data, data);
    }
});
