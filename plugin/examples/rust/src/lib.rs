//! An example of a plugin: packets that come in get a DSCP, of both families. `plugin/examples/c` does the same in C.
#![forbid(unsafe_code)]

use shoal_plugin_sdk::{Call, Counter, Feature, Next, Node, Packet, Plugin};

/// AF11.
const DSCP: u8 = 10;

struct Mark;

impl Node for Mark {
    const NAME: &'static str = "example-mark-rust";
    const COUNTERS: &'static [Counter] =
        &[Counter::info("marked", "marked"), Counter::error("short", "shorter than its header")];
    const FEATURES: &'static [Feature] = &[
        Feature::on("ip4-unicast").before(&["ip4-lookup"]),
        Feature::on("ip6-unicast").before(&["ip6-lookup"]),
    ];

    fn packet(&self, packet: &mut Packet<'_>, call: &mut Call<'_>) -> Next {
        let old = match packet.data_mut() {
            [first, tos, rest @ ..] if *first >> 4 == 4 && rest.len() >= 18 => {
                let old = *tos >> 2;
                *tos = *tos & 3 | DSCP << 2;
                if let [_, _, _, _, _, _, _, _, high, low, ..] = rest {
                    // RFC 1624: the sum follows the one byte that changed.
                    let mut sum = u32::from(u16::from_be_bytes([*high, *low])) + u32::from(old << 2);
                    sum += 0xffff - u32::from(DSCP << 2);
                    sum = (sum & 0xffff) + (sum >> 16);
                    [*high, *low] = ((sum & 0xffff) as u16 + (sum >> 16) as u16).to_be_bytes();
                }
                old
            }
            [first, second, rest @ ..] if *first >> 4 == 6 && rest.len() >= 38 => {
                let old = (*first << 2 | *second >> 6) & 63;
                (*first, *second) = (0x60 | DSCP >> 2, *second & 0x3f | DSCP << 6);
                old
            }
            _ => return Next::Drop(1),
        };
        packet.scratch()[0] = u64::from(old);
        call.count(0, 1);
        Next::Feature
    }

    fn trace(&self, packet: &Packet<'_>) -> Option<String> {
        Some(format!("dscp {} -> {DSCP}", packet.scratch_ref()[0]))
    }
}

shoal_plugin_sdk::export!(
    Plugin::new("example_rust", env!("CARGO_PKG_VERSION"), "Example in Rust: marks packets").node(Mark)
);
