//! A stream as JSON, in the form that TRex's `STLStream.to_json` writes and its server takes.

use serde::Deserialize;

/// A stream.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StlStream {
    /// Its name; chains refer to it.
    pub name: Option<String>,
    /// The stream that starts when this one has ended.
    pub next: Option<String>,
    /// Whether it is sent at all.
    pub enabled: bool,
    /// Whether it starts with the trial; if not, another starts it.
    pub self_start: bool,
    /// Whether it waits for somebody to let it go on: it is never sent.
    #[serde(default)]
    pub start_paused: bool,
    /// Microseconds before its first frame.
    pub isg: f64,
    /// How often it may end before its chain stops; 0: as often as it likes.
    #[serde(default)]
    pub action_count: u64,
    /// Bit 0: the frame's source MAC stays; bits 1 and 2: 1 if its destination MAC does; bit 3: it only takes time.
    #[serde(default)]
    pub flags: u32,
    /// Seeds its random values.
    pub random_seed: Option<u64>,
    /// Pace.
    pub mode: Mode,
    /// The first frame.
    pub packet: PacketBytes,
    /// What changes in it.
    pub vm: FieldProgram,
    /// Whether it is counted, or its delay measured.
    pub flow_stats: FlowStats,
    /// What only our own shim says.
    #[serde(default)]
    pub shoal: Shape,
}

/// A stream's pace.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Mode {
    /// Frames without end.
    Continuous {
        /// Their rate.
        rate: StlRate,
    },
    /// One burst.
    SingleBurst {
        /// The rate within it.
        rate: StlRate,
        /// Its frames.
        total_pkts: u64,
    },
    /// Several bursts.
    MultiBurst {
        /// The rate within one.
        rate: StlRate,
        /// Frames of one.
        pkts_per_burst: u64,
        /// Microseconds between two.
        ibg: f64,
        /// How many.
        count: u64,
    },
}

/// A rate as the profile says it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct StlRate {
    /// What it counts.
    #[serde(rename = "type")]
    pub unit: RateUnit,
    /// How many.
    pub value: f64,
}

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum RateUnit {
    /// Frames a second.
    #[serde(rename = "pps")]
    Frames,
    /// Bits a second with preamble and gap.
    #[serde(rename = "bps_L1")]
    BitsL1,
    /// Bits a second of frames with FCS.
    #[serde(rename = "bps_L2")]
    BitsL2,
    /// Percent of the link, at layer 1.
    #[serde(rename = "percentage")]
    Percent,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PacketBytes {
    /// Its bytes without FCS, in base 64.
    pub binary: String,
}

/// A program that changes fields, run for each frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FieldProgram {
    /// In order.
    #[serde(default)]
    pub instructions: Vec<Instruction>,
    /// So many frames are made and then repeated.
    #[serde(default)]
    pub cache: u64,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Instruction {
    /// A variable.
    FlowVar(FlowVar),
    /// Random values, the same again and again.
    FlowVarRandLimit {
        /// Its name.
        name: String,
        /// Bytes.
        size: u8,
        /// How many values.
        limit: u64,
        /// Seeds them.
        #[serde(default)]
        seed: u64,
        /// The smallest.
        min_value: u64,
        /// The largest.
        max_value: u64,
    },
    /// An address and a port.
    TupleFlowVar {
        /// Its name; the variables are `name.ip` and `name.port`.
        name: String,
        /// The first address.
        ip_min: u64,
        /// The last.
        ip_max: u64,
        /// The first port.
        port_min: u64,
        /// The last.
        port_max: u64,
        /// So many pairs, then from the first again.
        limit_flows: u64,
        /// 1: the ports' limits are ignored.
        #[serde(default)]
        flags: u64,
    },
    /// Writes a variable.
    WriteFlowVar {
        /// Its name.
        name: String,
        /// Where.
        pkt_offset: i64,
        /// Added first.
        #[serde(default)]
        add_value: i64,
        /// The most significant byte first.
        is_big_endian: bool,
    },
    /// Writes some bits of a variable.
    WriteMaskFlowVar {
        /// Its name.
        name: String,
        /// Where.
        pkt_offset: i64,
        /// Bytes that are written.
        pkt_cast_size: u8,
        /// The bits that are.
        mask: u64,
        /// To the left; to the right if negative.
        #[serde(default)]
        shift: i8,
        /// Added before shifting.
        #[serde(default)]
        add_value: i64,
        /// The most significant byte first.
        is_big_endian: bool,
    },
    /// The IPv4 header's checksum.
    FixChecksumIpv4 {
        /// Where the header begins.
        pkt_offset: usize,
    },
    /// The checksums of IPv4 and UDP or TCP.
    FixChecksumHw {
        /// Where the IP header begins.
        l2_len: usize,
        /// Its length.
        l3_len: usize,
        /// 11 UDP, 13 TCP, 17 only IP.
        l4_type: u32,
    },
    /// ICMPv6's.
    FixChecksumIcmpv6 {
        /// Where the IP header begins.
        l2_len: usize,
        /// Its length.
        l3_len: usize,
    },
    /// Cuts the frame.
    TrimPktSize {
        /// The variable with its length, without FCS.
        name: String,
    },
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FlowVar {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub size: u8,
    /// How it goes on.
    pub op: Operation,
    /// The first value.
    #[serde(default)]
    pub init_value: u64,
    /// The smallest.
    #[serde(default)]
    pub min_value: u64,
    /// The largest.
    #[serde(default)]
    pub max_value: u64,
    /// How far at a time.
    #[serde(default = "one")]
    pub step: u64,
    /// Values in place of the range.
    pub value_list: Option<Vec<u64>>,
    /// The variable that goes on when this one has gone round, and only then.
    pub next_var: Option<String>,
}

fn one() -> u64 {
    1
}

/// How a variable goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Up.
    Inc,
    /// Down.
    Dec,
    /// Anywhere.
    Random,
}

/// Statistics of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FlowStats {
    /// Whether there are any.
    pub enabled: bool,
    /// `stats` or `latency`.
    pub rule_type: Option<String>,
    /// The packet group's number.
    pub stream_id: Option<u64>,
}

impl FlowStats {
    /// Whether delays are measured. Such a stream is not scaled.
    pub fn latency(&self) -> bool {
        self.enabled && self.rule_type.as_deref() == Some("latency")
    }
}

/// What the frame's bytes alone do not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Shape {
    /// Where the last header ends; 0 if not known.
    #[serde(default)]
    pub headers_end: usize,
    /// `Ether/IP/UDP/Raw`.
    #[serde(default)]
    pub layers: String,
}

impl StlStream {
    /// The frame's bytes, without FCS; none if they are no base 64.
    pub fn frame(&self) -> Option<Vec<u8>> {
        base64(&self.packet.binary)
    }
}

/// RFC 4648's base 64, with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_are_read() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmE=", "fooba")]
        {
            assert_eq!(base64(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(base64("Zm9?"), None);
    }
}
