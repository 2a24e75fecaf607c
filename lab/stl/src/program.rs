//! A field program as variables with their writes: what the plan calls changes.

use std::collections::HashMap;
use std::ops::Range;

use shoal_lab_plan::Write;

use crate::format::{FieldProgram, FlowVar, Instruction, Operation};
use crate::header::Headers;
use crate::sequence::{Sequence, TooLong, mixed, thrown};

/// A variable, its values and where they go.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    name: String,
    size: u8,
    pub(crate) values: Sequence,
    pub(crate) writes: Vec<Write>,
    /// When it is first written: later ones overwrite earlier ones.
    written: usize,
}

/// What a program does to each frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// In the order of their first write; those that are never written are left out.
    pub(crate) fields: Vec<Field>,
    /// The variable that the frame's length follows.
    pub(crate) trim: Option<Field>,
    /// The outer IPv4 header's checksum is kept right.
    pub(crate) fix_ip4: bool,
    /// The checksum of the layer behind it is.
    pub(crate) fix_l4: bool,
}

/// Bytes that a write touches.
pub(crate) fn span(write: &Write) -> Range<usize> {
    usize::from(write.offset)..usize::from(write.offset) + usize::from(write.width)
}

/// Whether two ranges share a byte.
pub(crate) fn meet(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Program {
    /// Reads the program of `frame`. The error says what cannot be, and what can.
    pub(crate) fn of(
        program: &FieldProgram,
        frame: &[u8],
        headers: &Headers,
        seed: u64,
    ) -> Result<Program, String> {
        let mut reader =
            Reader { fields: variables(program, seed)?, length: frame.len(), inner_fixes: Vec::new() };
        let mut made = Program::default();
        let mut trim = None;
        for (at, instruction) in program.instructions.iter().enumerate() {
            match instruction {
                Instruction::TrimPktSize { name } => trim = Some(reader.find(name)?),
                Instruction::FixChecksumIpv4 { pkt_offset } => {
                    reader.fix_ip4(*pkt_offset, headers, &mut made)?;
                }
                Instruction::FixChecksumHw { l2_len, l4_type, .. } => {
                    reader.fix_hardware(*l2_len, *l4_type, headers, &mut made)?;
                }
                Instruction::FixChecksumIcmpv6 { l2_len, .. } => {
                    reader.fix_hardware(*l2_len, 0, headers, &mut made)?;
                }
                _ => reader.write(instruction, at)?,
            }
        }
        reader.refuse_inner(frame)?;
        reader.keep_off_checksums(headers, &made)?;
        made.trim = trim.and_then(|i| reader.fields.get(i).cloned());
        let trimmed = made.trim.as_ref().map(|t| t.name.clone());
        made.fields = reader.fields;
        made.fields.retain(|f| !f.writes.is_empty() && Some(&f.name) != trimmed.as_ref());
        made.fields.sort_by_key(|f| f.written);
        for field in made.fields.iter_mut().chain(made.trim.as_mut()) {
            let values = std::mem::replace(&mut field.values, Sequence::List(Vec::new()));
            field.values = values.cached(program.cache).map_err(|long| too_long(&field.name, long))?;
        }
        Ok(made)
    }

    /// Whether any write touches these bytes.
    pub(crate) fn touches(&self, bytes: &Range<usize>) -> bool {
        let fields = self.fields.iter().chain(self.trim.as_ref());
        fields.flat_map(|f| &f.writes).any(|w| meet(&span(w), bytes))
    }
}

pub(crate) fn too_long(name: &str, long: TooLong) -> String {
    format!(
        "variable {name} goes round only after {} frames; what has to be written out may have {} (a shorter range, or \
         a cache_size, would do)",
        long.0,
        crate::sequence::LONGEST
    )
}

/// The variables, in the order of the program, each with its values.
fn variables(program: &FieldProgram, seed: u64) -> Result<Vec<Field>, String> {
    let mut fields: Vec<Field> = Vec::new();
    let mut drives: HashMap<&str, &str> = HashMap::new();
    for (at, instruction) in program.instructions.iter().enumerate() {
        let seed = mixed(seed.wrapping_add(at as u64 + 1));
        let mut add = |name: String, size: u8, values: Sequence| -> Result<(), String> {
            if fields.iter().any(|f| f.name == name) {
                return Err(format!("variable {name} is there twice; each needs a name of its own"));
            }
            fields.push(Field { name, size, values, writes: Vec::new(), written: usize::MAX });
            Ok(())
        };
        match instruction {
            Instruction::FlowVar(variable) => {
                if let Some(next) = &variable.next_var {
                    drives.insert(&variable.name, next);
                }
                add(variable.name.clone(), variable.size, values_of(variable, seed)?)?;
            }
            Instruction::FlowVarRandLimit { name, size, limit, seed: own, min_value, max_value } => {
                let seed = if *own == 0 { seed } else { *own };
                let values =
                    thrown(*limit, *min_value, *max_value, seed).map_err(|long| too_long(name, long))?;
                add(name.clone(), *size, values)?;
            }
            Instruction::TupleFlowVar { name, .. } => {
                let (ip, port) = tuples(instruction).map_err(|long| too_long(name, long))?;
                add(format!("{name}.ip"), 4, ip)?;
                add(format!("{name}.port"), 2, port)?;
            }
            _ => {}
        }
    }
    drive(&mut fields, &drives)?;
    Ok(fields)
}

fn values_of(variable: &FlowVar, seed: u64) -> Result<Sequence, String> {
    let FlowVar { name, min_value, max_value, init_value, step, op, .. } = variable;
    if let Some(list) = &variable.value_list {
        if list.is_empty() {
            return Err(format!("variable {name} has an empty value_list; it needs a value at least"));
        }
        let steps = list.iter().step_by((*step).clamp(1, list.len() as u64) as usize).copied();
        return Ok(match op {
            Operation::Inc => Sequence::List(steps.collect()),
            Operation::Dec => {
                let back = list.iter().rev().step_by((*step).clamp(1, list.len() as u64) as usize);
                Sequence::List(back.copied().collect())
            }
            Operation::Random => Sequence::RandomOf { values: list.clone(), seed },
        });
    }
    if min_value > max_value {
        return Err(format!("variable {name} goes from {min_value} to {max_value}; exchange them"));
    }
    Ok(match op {
        Operation::Inc => Sequence::range(*min_value, *max_value, *init_value, *step, false),
        Operation::Dec => Sequence::range(*min_value, *max_value, *init_value, *step, true),
        Operation::Random => Sequence::Random { min: *min_value, max: *max_value, seed },
    })
}

/// All addresses with the first port, then with the next, until so many flows were there.
fn tuples(instruction: &Instruction) -> Result<(Sequence, Sequence), TooLong> {
    let Instruction::TupleFlowVar { ip_min, ip_max, port_min, port_max, limit_flows, flags, .. } =
        instruction
    else {
        return Ok((Sequence::List(Vec::new()), Sequence::List(Vec::new())));
    };
    let (port_min, port_max) = if *flags & 1 == 1 { (&0, &0xFFFF) } else { (port_min, port_max) };
    let addresses = Sequence::range(*ip_min, *ip_max, *ip_min, 1, false);
    let ports = Sequence::range(*port_min, *port_max, *port_min, 1, false);
    let hosts = addresses.period().unwrap_or(1);
    let all = hosts.saturating_mul(ports.period().unwrap_or(1));
    let flows = if *limit_flows == 0 { all } else { all.min(*limit_flows) };
    if flows <= hosts {
        return Ok((addresses.cached(flows)?, ports.cached(1)?));
    }
    // Only so many flows are written out, whatever all would be.
    if flows > crate::sequence::LONGEST {
        return Err(TooLong(flows));
    }
    let used = ports.cached(flows.div_ceil(hosts))?.slowed(hosts)?;
    Ok((addresses.cached(flows)?, used.cached(flows)?))
}

/// A variable that another drives stays until that one has gone round.
fn drive(fields: &mut [Field], drives: &HashMap<&str, &str>) -> Result<(), String> {
    let periods: HashMap<String, Option<u64>> =
        fields.iter().map(|f| (f.name.clone(), f.values.period())).collect();
    for field in fields.iter_mut() {
        let (mut driven, mut times, mut seen) = (field.name.as_str(), 1_u64, Vec::new());
        while let Some((driver, _)) = drives.iter().find(|(_, next)| **next == driven) {
            if seen.contains(driver) {
                return Err(format!(
                    "next_var of {driver} leads back to itself; the last of a chain has none"
                ));
            }
            seen.push(driver);
            let Some(Some(period)) = periods.get(*driver) else {
                return Err(format!(
                    "{driver} is random and never goes round, so it cannot drive {driven}; inc can"
                ));
            };
            times = times.saturating_mul(*period);
            driven = driver;
        }
        if times > 1 {
            let values = std::mem::replace(&mut field.values, Sequence::List(Vec::new()));
            field.values = values.slowed(times).map_err(|long| too_long(&field.name, long))?;
        }
    }
    for (driver, next) in drives {
        if !periods.contains_key(*next) {
            return Err(format!("next_var of {driver} is {next}, and there is no such variable"));
        }
    }
    Ok(())
}

struct Reader {
    fields: Vec<Field>,
    length: usize,
    inner_fixes: Vec<usize>,
}

impl Reader {
    fn find(&self, name: &str) -> Result<usize, String> {
        self.fields.iter().position(|f| f.name == name).ok_or_else(|| {
            let known: Vec<_> = self.fields.iter().map(|f| f.name.as_str()).collect();
            format!("there is no variable {name}; there are: {}", known.join(", "))
        })
    }

    fn write(&mut self, instruction: &Instruction, at: usize) -> Result<(), String> {
        let (name, offset, width, mask, shift, add, big) = match instruction {
            Instruction::WriteFlowVar { name, pkt_offset, add_value, is_big_endian } => {
                let size = self.fields.get(self.find(name)?).map_or(1, |f| f.size);
                (name, *pkt_offset, size, u64::MAX, 0, *add_value, *is_big_endian)
            }
            Instruction::WriteMaskFlowVar {
                name,
                pkt_offset,
                pkt_cast_size,
                mask,
                shift,
                add_value,
                is_big_endian,
            } => (name, *pkt_offset, *pkt_cast_size, *mask, *shift, *add_value, *is_big_endian),
            _ => return Ok(()),
        };
        if !matches!(width, 1 | 2 | 4 | 8) {
            return Err(format!("variable {name} is written {width} bytes wide; it can be 1, 2, 4 or 8"));
        }
        if !(-63..=63).contains(&shift) {
            return Err(format!("variable {name} is shifted by {shift}; it can be by -63 to 63"));
        }
        let end = offset.saturating_add(i64::from(width));
        let fits = u16::try_from(offset).ok().filter(|_| end <= self.length as i64);
        let Some(offset) = fits else {
            return Err(format!(
                "variable {name} is written to bytes {offset} to {} of a frame that has 0 to {}",
                end - 1,
                self.length as i64 - 1
            ));
        };
        let index = self.find(name)?;
        let Some(field) = self.fields.get_mut(index) else { return Ok(()) };
        let whole = if width >= 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
        let mut mask = mask & whole;
        if field.size > width && shift < 0 && add == 0 {
            // The value is cut to the width before it is shifted, so nothing from above it comes in.
            mask &= whole.checked_shr(u32::from(shift.unsigned_abs())).unwrap_or(0);
        }
        field.written = field.written.min(at);
        if big {
            field.writes.push(Write { add, shift, mask, ..Write::whole(offset, width) });
            return Ok(());
        }
        // The plan's writes are big-endian: little-endian is written byte by byte, each shifted to its place.
        for byte in 0..width {
            let mask = mask >> (8 * byte) & 0xFF;
            if mask != 0 {
                let shift = shift - 8 * byte as i8;
                field.writes.push(Write { add, shift, mask, ..Write::whole(offset + u16::from(byte), 1) });
            }
        }
        Ok(())
    }

    fn fix_ip4(&mut self, at: usize, headers: &Headers, made: &mut Program) -> Result<(), String> {
        match &headers.ip4 {
            Some(header) if header.start == at => made.fix_ip4 = true,
            Some(header) if header.start < at => self.inner_fixes.push(at),
            Some(header) => {
                return Err(format!("there is no IPv4 header at byte {at}; it begins at {}", header.start));
            }
            None => return Err(format!("there is no IPv4 header at byte {at}, nor elsewhere")),
        }
        Ok(())
    }

    fn fix_hardware(
        &mut self,
        at: usize,
        kind: u32,
        headers: &Headers,
        made: &mut Program,
    ) -> Result<(), String> {
        let outer = headers.ip4.as_ref().or(headers.ip6.as_ref());
        match outer {
            Some(header) if header.start == at => {
                made.fix_ip4 |= headers.ip4.is_some();
                if kind != 17 {
                    if headers.l4.is_none() {
                        return Err("the IP header is not followed by UDP, TCP or ICMPv6, so there is no checksum of \
                                    theirs to fix; STLVmFixIpv4 fixes that of IPv4"
                            .to_owned());
                    }
                    made.fix_l4 = true;
                }
            }
            Some(header) if header.start < at => self.inner_fixes.push(at),
            Some(header) => {
                return Err(format!("there is no IP header at byte {at}; it begins at {}", header.start));
            }
            None => return Err(format!("there is no IP header at byte {at}, nor elsewhere")),
        }
        Ok(())
    }

    /// Checksums of inner headers stay what they are: that is right as long as nothing changes there.
    fn refuse_inner(&self, frame: &[u8]) -> Result<(), String> {
        for at in &self.inner_fixes {
            if !matches!(frame.get(*at).map(|first| first >> 4), Some(4 | 6)) {
                return Err(format!("there is no IP header at byte {at}"));
            }
            let behind = *at..self.length;
            if self.fields.iter().flat_map(|f| &f.writes).any(|w| meet(&span(w), &behind)) {
                return Err(format!(
                    "the checksum of the inner header at byte {at} cannot follow changes; only that of the outermost \
                     IP header and of the layer behind it can"
                ));
            }
        }
        Ok(())
    }

    fn keep_off_checksums(&mut self, headers: &Headers, made: &Program) -> Result<(), String> {
        let ip4 = headers.ip4_checksum().map(|bytes| (bytes, made.fix_ip4, "STLVmFixIpv4"));
        let l4 = headers.l4.as_ref().map(|s| (s.checksum..s.checksum + 2, made.fix_l4, "STLVmFixChecksumHw"));
        for (bytes, fixed, by) in ip4.into_iter().chain(l4) {
            for field in &mut self.fields {
                if fixed {
                    // What is fixed afterwards overwrites it anyway.
                    field.writes.retain(|w| !meet(&span(w), &bytes));
                } else if field.writes.iter().any(|w| meet(&span(w), &bytes)) {
                    return Err(format!(
                        "variable {} is written over the checksum at bytes {} and {}; checksums can stay or be kept \
                         right (by {by}), not be written",
                        field.name,
                        bytes.start,
                        bytes.start + 1
                    ));
                }
            }
        }
        Ok(())
    }
}
