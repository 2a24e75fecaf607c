//! One rendered packet, copied into fresh buffers, and the fields that differ from packet to packet.

use shoal_wire::checksum::update_u16;

use super::{Blueprint, Offload};

/// How a field goes through its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// One after the other, and again from the first.
    Increment,
    /// Any of them.
    Random,
}

/// A field that changes from packet to packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Where it begins, in bytes.
    pub at: usize,
    /// Its length in bytes: 2, 4, 6 or 8.
    pub width: usize,
    /// Its first value.
    pub first: u64,
    /// How many values it takes.
    pub count: u64,
    /// How it goes through them.
    pub order: Order,
}

impl Field {
    /// The value of the packet of this number, which the generator's state makes random.
    #[inline(always)]
    pub(crate) fn value(&self, number: u64, random: &mut Random) -> u64 {
        let step = match self.order {
            // A division is dearer than all the rest, and most ranges are powers of two.
            Order::Increment if self.count.is_power_of_two() => number & (self.count - 1),
            Order::Increment => number % self.count.max(1),
            Order::Random => random.below(self.count),
        };
        self.first.wrapping_add(step)
    }

    /// Writes a value and leaves checksums as they are.
    pub(crate) fn put(&self, value: u64, data: &mut [u8]) {
        self.write(value, &[], data);
    }

    /// Writes a value and keeps the checksums at `checksums` right.
    #[inline(always)]
    fn write(&self, value: u64, checksums: &[Checksum], data: &mut [u8]) {
        let bytes = value.to_be_bytes();
        let Some(new) = bytes.get(8 - self.width.min(8)..) else { return };
        for (i, pair) in new.as_chunks::<2>().0.iter().enumerate() {
            let at = self.at + 2 * i;
            let Some(place) = data.get_mut(at..).and_then(|d| d.first_chunk_mut::<2>()) else { return };
            let (old, new) = (u16::from_be_bytes(*place), u16::from_be_bytes(*pair));
            if old == new {
                continue;
            }
            *place = *pair;
            for checksum in checksums {
                if let Some(sum) = data.get_mut(checksum.at..).and_then(|d| d.first_chunk_mut::<2>()) {
                    let updated = update_u16(u16::from_be_bytes(*sum), old, new);
                    *sum = if updated == 0 { checksum.zero } else { updated }.to_be_bytes();
                }
            }
        }
    }
}

/// A checksum that changes with a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Checksum {
    /// Where it lies.
    pub(crate) at: usize,
    /// What is written for zero: all ones in layer 4, where zero means that there is none (RFC 768).
    pub(crate) zero: u16,
}

/// A small generator of random numbers (xorshift64): quality enough to spread addresses.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`, 0 for 0.
    #[inline(always)]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        // The high half of the product is even enough and costs no division.
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// A rendered packet and its changing fields.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) bytes: Vec<u8>,
    fields: Vec<(Field, Vec<Checksum>)>,
}

impl Template {
    pub(crate) fn new(blueprint: &Blueprint, size: usize, offload: Offload) -> Self {
        let mut bytes = Vec::new();
        blueprint.render(size, offload, &mut bytes);
        let fields = blueprint.fields.iter().map(|f| (*f, blueprint.checksums_over(f.at))).collect();
        Template { bytes, fields }
    }

    /// Turns a copy of the template into the packet of this number.
    #[inline(always)]
    pub(crate) fn vary(&self, number: u64, random: &mut Random, data: &mut [u8]) {
        for (field, checksums) in &self.fields {
            field.write(field.value(number, random), checksums, data);
        }
    }
}
