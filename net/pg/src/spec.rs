//! Reads the block of `packet-generator new { ... }`, VPP's words in any order.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use shoal_buffer::{FRAME_SIZE, Flags};
use shoal_interface::SwIfIndex;
use shoal_module::cli::nearest;
use shoal_wire::pcap;

use crate::data::{self, Order};
use crate::tokens::{Tokens, number};
use crate::{Pg, PgError, Size, Source, StreamSpec};

/// Most bytes of packets kept of one capture file.
const MOST_REPLAYED: usize = 1 << 30;

const WORDS: &[&str] = &[
    "name",
    "limit",
    "rate",
    "size",
    "maxframe",
    "worker",
    "interface",
    "source",
    "tx-interface",
    "node",
    "pcap",
    "data",
    "buffer-flags",
    "buffer-offload-flags",
    "gso-size",
    "no-recycle",
];

/// Flags a stream may give its packets, as VPP calls them.
const FLAGS: &[(&str, Flags)] = &[
    ("ip4", Flags(0)),
    ("ip6", Flags(0)),
    ("offload", Flags(0)),
    ("l4-hdr-offset-valid", Flags(0)),
    ("l3-hdr-offset-valid", Flags(0)),
    ("l2-hdr-offset-valid", Flags(0)),
    // The header's own checksum is always complete.
    ("offload-ip-cksum", Flags(0)),
    ("offload-tcp-cksum", Flags::L4_CHECKSUM_OFFLOAD),
    ("offload-udp-cksum", Flags::L4_CHECKSUM_OFFLOAD),
    ("locally-originated", Flags::LOCALLY_ORIGINATED),
    ("gso", Flags::GSO),
];

impl Pg {
    /// Reads a stream's description, in VPP's syntax, with the files and interfaces it names.
    ///
    /// # Errors
    /// Where it cannot be read, and what was expected there.
    pub fn parse_stream(&self, text: &str) -> Result<StreamSpec, PgError> {
        let mut tokens = Tokens::new(text);
        let braced = tokens.take("{");
        let mut spec = StreamSpec::new(String::new(), Source::Packets(Vec::new()));
        let mut source = None;
        let mut worker = None;
        while let Some(word) = tokens.next() {
            match word.as_str() {
                "}" if braced && tokens.peek().is_none() => break,
                "name" => spec.name = tokens.word("a name")?,
                "limit" => spec.limit = Some(tokens.number("a number of packets", 0, u64::MAX)?),
                "rate" => spec.rate = rate(&mut tokens)?,
                "size" => spec.size = Some(size(&mut tokens)?),
                "maxframe" => spec.maxframe = tokens.number("packets", 1, FRAME_SIZE as u64)? as usize,
                "worker" => worker = Some(tokens.number("a worker", 0, 62)? as usize),
                "interface" | "source" => spec.interface = Some(self.interface_word(&mut tokens)?),
                "tx-interface" => spec.tx_interface = self.interface_word(&mut tokens)?,
                "node" => spec.node = Some(tokens.word("a node")?),
                "pcap" => source = Some(replay(&PathBuf::from(tokens.word("a capture file")?))?),
                "data" => {
                    if !tokens.take("{") {
                        return Err(tokens.expected("`{' and a description"));
                    }
                    source = Some(Source::Blueprint(data::parse(&mut tokens)?));
                }
                "buffer-flags" | "buffer-offload-flags" => spec.flags = spec.flags.with(flags(&mut tokens)?),
                "gso-size" => spec.gso_size = tokens.number("bytes of payload", 1, 65_535)? as u16,
                // VPP's way to say that buffers are not kept for the next round; ours never are.
                "no-recycle" => {}
                _ => {
                    let near = nearest(&word, WORDS.iter().copied());
                    let hint = near.map(|n| format!(" (did you mean `{n}'?)")).unwrap_or_default();
                    return Err(tokens.expected(format!("{}{hint}", WORDS.join(", "))));
                }
            }
        }
        spec.worker = worker;
        if spec.name.is_empty() {
            spec.name = format!("stream{}", self.streams().len());
        }
        spec.source = source.ok_or_else(|| {
            PgError::Stream(
                spec.name.clone(),
                "neither `data { ... }' nor `pcap FILE': nothing to send".into(),
            )
        })?;
        if spec.flags.has(Flags::GSO) {
            if spec.gso_size == 0 {
                return Err(PgError::Stream(spec.name, "buffer-flags gso wants gso-size N".into()));
            }
            spec.flags = spec.flags.with(Flags::GSO_TCP4);
        }
        Ok(spec)
    }

    fn interface_word(&self, tokens: &mut Tokens) -> Result<SwIfIndex, PgError> {
        let name = tokens.word("the name of an interface")?;
        self.interfaces.by_name(&name).ok_or_else(|| {
            shoal_interface::InterfaceError::NoName(name.clone(), self.interfaces.nearest_name(&name)).into()
        })
    }
}

/// `1e6`, `2000000`, `1.5e6 pps`.
fn rate(tokens: &mut Tokens) -> Result<f64, PgError> {
    let finite = |word: &str| word.strip_suffix("pps").unwrap_or(word).parse::<f64>().ok();
    let rate = tokens.parse("packets per second, 0 for as fast as possible", |word| {
        finite(word).filter(|r| r.is_finite() && *r >= 0.0)
    })?;
    tokens.take("pps");
    Ok(rate)
}

/// `A-B` (one after the other), `A+B` (at random), or `A`.
fn size(tokens: &mut Tokens) -> Result<Size, PgError> {
    tokens.parse(SIZES, read_size)
}

/// What a size looks like.
pub(crate) const SIZES: &str = "sizes in bytes, such as 64-64 or 64+1500, 1 to 65535";

/// A size, if it is one.
pub(crate) fn read_size(word: &str) -> Option<Size> {
    let (a, b, order) = if let Some((a, b)) = word.split_once('+') {
        (a, b, Order::Random)
    } else if let Some((a, b)) = word.split_once('-') {
        (a, b, Order::Increment)
    } else {
        (word, word, Order::Increment)
    };
    let (least, most) = (number(a)? as usize, number(b)? as usize);
    (least <= most && least > 0 && most <= 65_535).then_some(Size { least, most, order })
}

fn flags(tokens: &mut Tokens) -> Result<Flags, PgError> {
    let mut flags = Flags::default();
    let mut any = false;
    while let Some((_, flag)) = tokens.peek().and_then(|word| FLAGS.iter().find(|(name, _)| *name == word)) {
        flags = flags.with(*flag);
        any = true;
        tokens.next();
    }
    if any {
        return Ok(flags);
    }
    tokens.next();
    let names: Vec<&str> = FLAGS.iter().map(|(name, _)| *name).collect();
    Err(tokens.expected(format!("one of {}", names.join(", "))))
}

/// The packets of a capture file, all of them in memory so that replaying reads no disk.
fn replay(path: &PathBuf) -> Result<Source, PgError> {
    let wrong = |why: String| PgError::Replay(path.clone(), why);
    let file = File::open(path).map_err(|e| wrong(e.to_string()))?;
    let reader = pcap::Reader::new(BufReader::new(file)).map_err(|e| wrong(e.to_string()))?;
    let (mut packets, mut bytes) = (Vec::new(), 0);
    for record in reader {
        let record = record.map_err(|e| wrong(e.to_string()))?;
        bytes += record.data.len();
        if bytes > MOST_REPLAYED {
            return Err(wrong(format!("more than {MOST_REPLAYED} bytes of packets")));
        }
        packets.push(record.data);
    }
    if packets.is_empty() {
        return Err(wrong("no packets in it".into()));
    }
    Ok(Source::Packets(packets))
}
