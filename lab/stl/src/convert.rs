//! From a profile's streams to the plan's.

use std::time::Duration;

use shoal_lab_plan::{Change, Link, Pace, Side, Stamps, Stream, Tag};

use crate::chain::{self, Slot};
use crate::format::{Mode, StlStream};
use crate::fraction::Fraction;
use crate::frame;
use crate::header::Headers;
use crate::pace::{links, pace};
use crate::port_rate::PortRate;
use crate::program::{Program, too_long};
use crate::rates::{rate, scale};
use crate::sequence::mixed;
use crate::{ProfileError, sizes};

/// Streams of one side, at most: what a trial takes.
pub const MOST_STREAMS: usize = 64;

/// What a profile does not say.
#[derive(Clone, Debug)]
pub struct Sending {
    /// What "percent" is of.
    pub link: Link,
    /// What the streams of a side are scaled to; none: the profile's own rates.
    pub port_rate: Option<PortRate>,
    /// How long the trial sends: loops are laid out for it.
    pub duration: Duration,
    /// MACs of the frames that each side sends (left, right), where the profile does not say its own.
    pub macs: [Macs; 2],
    /// UDP and TCP checksums are kept right even where the profile lets them go wrong.
    pub fix_l4: bool,
}

/// The addresses of frames from one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Macs {
    /// The tester's.
    pub source: [u8; 6],
    /// The device's; of a bridge or cross-connect, the tester's other port.
    pub destination: [u8; 6],
}

impl Sending {
    /// A virtual link of 10 Gbit/s, the profile's own rates, and locally administered MACs.
    pub fn new(duration: Duration) -> Self {
        let mac = |last| [0x02, 0, 0, 0, 0, last];
        Sending {
            link: Link::default(),
            port_rate: None,
            duration,
            macs: [
                Macs { source: mac(1), destination: mac(0x11) },
                Macs { source: mac(2), destination: mac(0x12) },
            ],
            fix_l4: false,
        }
    }
}

/// The plan's streams of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Converted {
    /// In the profile's order.
    pub streams: Vec<Stream>,
    /// What is not as T-Rex would send it, and what should be known: for the record and the report.
    pub notes: Vec<String>,
}

/// A stream on its way.
pub(crate) struct Draft<'a> {
    pub(crate) from: &'a StlStream,
    pub(crate) label: String,
    pub(crate) frame: Vec<u8>,
    pub(crate) program: Program,
    /// Without FCS; several, if frames change length.
    pub(crate) lengths: Vec<u64>,
    /// Frames a second.
    pub(crate) rate: Fraction,
}

/// Turns a profile's streams for `side` into the plan's.
///
/// # Errors
///
/// Where a stream cannot be expressed; the message says which, why, and what could be.
pub fn convert(streams: &[StlStream], side: Side, sending: &Sending) -> Result<Converted, ProfileError> {
    let mut made = Converted::default();
    let mut drafts = Vec::new();
    for (number, from) in streams.iter().enumerate() {
        let label = from.name.clone().unwrap_or_else(|| format!("number {}", number + 1));
        if !from.enabled || from.start_paused {
            made.notes.push(format!("stream {label} is disabled or paused and is not sent"));
            continue;
        }
        let seed = from.random_seed.unwrap_or(1000 + 100 * side.index() as u64 + number as u64);
        let wrong = |reason| ProfileError::Stream { stream: label.clone(), reason };
        let draft = draft(from, &label, side, sending, mixed(seed), &mut made.notes).map_err(wrong)?;
        drafts.push(draft);
    }
    scale(&mut drafts, sending, &mut made.notes)?;
    let slots = chain::slots(&links(&drafts))?;
    for (draft, slot) in drafts.iter().zip(slots) {
        let wrong = |reason| ProfileError::Stream { stream: draft.label.clone(), reason };
        match slot {
            None => made.notes.push(format!("stream {} is started by no other and is not sent", draft.label)),
            Some(_) if draft.from.flags & 8 != 0 => {}
            Some((slot, _)) => finish(draft, slot, side, sending, &mut made).map_err(wrong)?,
        }
    }
    if made.streams.len() > MOST_STREAMS {
        return Err(ProfileError::Streams(format!(
            "the profile makes {} streams for a side; a trial has at most {MOST_STREAMS}",
            made.streams.len()
        )));
    }
    number_namesakes(&mut made.streams);
    Ok(made)
}

fn draft<'a>(
    from: &'a StlStream,
    label: &str,
    side: Side,
    sending: &Sending,
    seed: u64,
    notes: &mut Vec<String>,
) -> Result<Draft<'a>, String> {
    let mut frame = from.frame().ok_or("its frame is no base 64")?;
    if !(14..=0xFFFF).contains(&frame.len()) {
        return Err(format!("its frame has {} bytes; 14 to 65535 can be sent", frame.len()));
    }
    let macs = sending.macs.get(side.index()).ok_or("its side has no MACs")?;
    if let Some(place) = frame.get_mut(..6).filter(|_| from.flags >> 1 & 3 != 1) {
        place.copy_from_slice(&macs.destination);
    }
    if let Some(place) = frame.get_mut(6..12).filter(|_| from.flags & 1 == 0) {
        place.copy_from_slice(&macs.source);
    }
    let program = Program::of(&from.vm, &frame, &Headers::of(&frame), seed)?;
    let (lengths, standing) = sizes::lengths(&program, frame.len())?;
    if standing {
        notes.push(format!(
            "stream {label}: its lengths are random or many; {} evenly spread ones, in turn, stand for them",
            lengths.len()
        ));
    }
    if lengths.len() > 1 && !matches!(from.mode, Mode::Continuous { .. }) {
        return Err(
            "its frames change length (STLVmTrimPktSize) and come in bursts; only STLTXCont can do both"
                .into(),
        );
    }
    let mut draft = Draft { from, label: label.to_owned(), frame, program, lengths, rate: Fraction::ZERO };
    draft.rate = rate(&draft, sending.link)?;
    Ok(draft)
}

/// Makes the stream, or one for each length.
fn finish(
    draft: &Draft,
    slot: Slot,
    side: Side,
    sending: &Sending,
    made: &mut Converted,
) -> Result<(), String> {
    let parts = draft.lengths.len() as u64;
    for (part, length) in draft.lengths.iter().enumerate() {
        let part = part as u64;
        let mut program = draft.program.clone();
        let mut bytes = draft.frame.clone();
        cut(&mut bytes, &mut program, *length);
        for field in &mut program.fields {
            let values = std::mem::replace(&mut field.values, crate::sequence::Sequence::List(Vec::new()));
            field.values =
                values.dealt(parts, part).map_err(|long| too_long("behind STLVmTrimPktSize", long))?;
        }
        let pace = match pace(draft, slot, sending.duration)? {
            Pace::Steady { .. } => {
                let turn = Fraction::whole(part).over(draft.rate);
                Pace::Steady {
                    rate: draft.rate.over(Fraction::whole(parts)).rate(),
                    after: slot.start.plus(turn).duration(),
                }
            }
            other => other,
        };
        let stream = build(draft, bytes, &program, pace, side, sending.fix_l4, &mut made.notes);
        made.streams.push(stream);
    }
    Ok(())
}

/// Cuts the frame to `length` and writes the length where the program writes it.
fn cut(bytes: &mut Vec<u8>, program: &mut Program, length: u64) {
    let Some(trim) = program.trim.take() else { return };
    for write in &trim.writes {
        frame::put(bytes, write, length);
    }
    bytes.truncate(length as usize);
    for field in &mut program.fields {
        field.writes.retain(|w| crate::program::span(w).end <= length as usize);
    }
    program.fields.retain(|f| !f.writes.is_empty());
    let headers = Headers::of(bytes);
    if program.fix_ip4 {
        headers.fix_ip4(bytes);
    }
    if program.fix_l4 {
        headers.fix_l4(bytes);
    }
}

fn build(
    draft: &Draft,
    mut bytes: Vec<u8>,
    program: &Program,
    pace: Pace,
    side: Side,
    fix_l4: bool,
    notes: &mut Vec<String>,
) -> Stream {
    let (checksums, note) = frame::checksums(&bytes, &Headers::of(&bytes), program, fix_l4);
    for field in &program.fields {
        let first = field.values.head(1).first().copied().unwrap_or(0);
        field.writes.iter().for_each(|write| frame::put(&mut bytes, write, first));
    }
    let headers = Headers::of(&bytes);
    if checksums.ip4 {
        headers.fix_ip4(&mut bytes);
    }
    if checksums.l4 {
        headers.fix_l4(&mut bytes);
    }
    let tag = frame::tag(&headers, draft.from.shoal.headers_end, program);
    let mut say = |text: &str| {
        let text = format!("stream {}: {text}", draft.label);
        if !notes.contains(&text) {
            notes.push(text);
        }
    };
    note.into_iter().for_each(&mut say);
    let measured = draft.from.flow_stats.latency();
    if tag == Tag::None {
        say("its payload has no 18 bytes for the lab's tag: its frames are counted, not told apart");
        if measured {
            say("its delay cannot be measured without the tag");
        }
    }
    if frame::pad(&mut bytes) {
        say("its frames are shorter than Ethernet's shortest and are padded to 64 bytes");
    }
    let direction = if side == Side::Left { "forward" } else { "reverse" };
    let size = bytes.len() as u64 + u64::from(shoal_lab_plan::FCS);
    let name = match &draft.from.name {
        Some(name) if draft.lengths.len() == 1 => format!("{direction} {name}"),
        Some(name) => format!("{direction} {name} {size} B"),
        None => format!("{direction} {size} B"),
    };
    let changes = program
        .fields
        .iter()
        .map(|f| Change { variable: f.values.clone().variable(), writes: f.writes.clone() });
    Stream {
        name,
        from: side,
        frame: bytes,
        changes: changes.collect(),
        checksums,
        tag,
        pace,
        stamps: if measured && tag != Tag::None { Stamps::All } else { Stamps::None },
        expected: true,
        answers: None,
    }
}

/// Streams of one name get numbers behind it.
fn number_namesakes(streams: &mut [Stream]) {
    for at in 0..streams.len() {
        let (before, rest) = streams.split_at_mut(at);
        let Some(stream) = rest.first_mut() else { continue };
        let plain = stream.name.clone();
        let mut number = 2;
        while before.iter().any(|b| b.name == stream.name) {
            stream.name = format!("{plain} #{number}");
            number += 1;
        }
    }
}
