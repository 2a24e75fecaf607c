//! A small assembler for the kernel's packet machine (RFC 9669), with labels instead of distances.
//!
//! It knows the instructions that [`crate::program`] needs and no more. What it makes is checked twice: here, that every
//! label stands somewhere within reach, and by the kernel's verifier before anything runs.

/// One instruction as the machine reads it: eight bytes, in the byte order of this computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Insn {
    code: u8,
    /// Destination in the low half, source in the high half, as computers of little-endian order have it.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register. `R0` has results, `R1` to `R5` arguments that calls destroy, `R10` points behind the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R6 = 6,
    R7,
    R8,
    R9,
    R10,
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    U8 = 0x10,
    U16 = 0x08,
    U32 = 0x00,
    U64 = 0x18,
}

/// What is done to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add = 0x00,
    Or = 0x40,
    And = 0x50,
    Shl = 0x60,
    Shr = 0x70,
    Mov = 0xb0,
}

/// When a jump is taken; comparisons are of unsigned 64-bit numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JumpCondition {
    Equal = 0x10,
    Above = 0x20,
    /// Any of these bits is set.
    AnyOf = 0x40,
    Not = 0x50,
    Below = 0xa0,
}

/// The other operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Reg(Reg),
    Imm(i32),
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Self {
        Operand::Reg(reg)
    }
}

impl From<i32> for Operand {
    fn from(imm: i32) -> Self {
        Operand::Imm(imm)
    }
}

/// A function of the kernel, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    MapLookup = 1,
    RedirectMap = 51,
}

/// A place in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// Why a program cannot be finished: a mistake of its author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AsmError {
    #[error("instruction {0} jumps to a label that stands nowhere")]
    NoPlace(usize),
    #[error("instruction {0} jumps too far")]
    TooFar(usize),
}

const CLASS_LDX: u8 = 0x01;
const CLASS_ST: u8 = 0x02;
const CLASS_STX: u8 = 0x03;
const CLASS_ALU: u8 = 0x04;
const CLASS_JMP: u8 = 0x05;
const CLASS_ALU64: u8 = 0x07;
const MEM: u8 = 0x60;
const FROM_REGISTER: u8 = 0x08;
const LOAD_64: u8 = 0x18;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
const TO_BIG_ENDIAN: u8 = 0xd8;
/// Source register of a 64-bit load whose immediate is a map's descriptor.
const PSEUDO_MAP: u8 = 1;

/// A program in the making.
#[derive(Default)]
pub(crate) struct Asm {
    code: Vec<Insn>,
    /// Where each label stands.
    places: Vec<Option<usize>>,
    /// Jumps whose distance is not known yet.
    jumps: Vec<(usize, Label)>,
}

impl Asm {
    /// A label that stands nowhere yet.
    pub(crate) fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// The label stands in front of the next instruction.
    pub(crate) fn place(&mut self, label: Label) {
        if let Some(place) = self.places.get_mut(label.0) {
            *place = Some(self.code.len());
        }
    }

    fn push(&mut self, code: u8, dst: u8, src: u8, offset: i16, immediate: i32) {
        let registers = if cfg!(target_endian = "little") { src << 4 | dst } else { dst << 4 | src };
        self.code.push(Insn { code, registers, offset, immediate });
    }

    /// `dst = dst OP with`, in 64 bits.
    pub(crate) fn op(&mut self, op: Op, dst: Reg, with: impl Into<Operand>) {
        match with.into() {
            Operand::Reg(src) => {
                self.push(CLASS_ALU64 | op as u8 | FROM_REGISTER, dst as u8, src as u8, 0, 0);
            }
            Operand::Imm(imm) => self.push(CLASS_ALU64 | op as u8, dst as u8, 0, 0, imm),
        }
    }

    /// `dst = with`
    pub(crate) fn mov(&mut self, dst: Reg, with: impl Into<Operand>) {
        self.op(Op::Mov, dst, with);
    }

    /// The 16 bits of network order in `dst` become a number.
    pub(crate) fn big_endian_16(&mut self, dst: Reg) {
        self.push(CLASS_ALU | TO_BIG_ENDIAN, dst as u8, 0, 0, 16);
    }

    /// `dst = *(size *)(at + offset)`
    pub(crate) fn load(&mut self, size: Size, dst: Reg, at: Reg, offset: i16) {
        self.push(CLASS_LDX | MEM | size as u8, dst as u8, at as u8, offset, 0);
    }

    /// `*(size *)(at + offset) = with`
    pub(crate) fn store(&mut self, size: Size, at: Reg, offset: i16, with: impl Into<Operand>) {
        match with.into() {
            Operand::Reg(src) => self.push(CLASS_STX | MEM | size as u8, at as u8, src as u8, offset, 0),
            Operand::Imm(imm) => self.push(CLASS_ST | MEM | size as u8, at as u8, 0, offset, imm),
        }
    }

    /// `dst = ` the map with this descriptor.
    pub(crate) fn map(&mut self, dst: Reg, descriptor: i32) {
        self.push(LOAD_64, dst as u8, PSEUDO_MAP, 0, descriptor);
        self.push(0, 0, 0, 0, 0);
    }

    /// `if left WHEN with goto label`
    pub(crate) fn jump_if(&mut self, when: JumpCondition, left: Reg, with: impl Into<Operand>, label: Label) {
        self.jumps.push((self.code.len(), label));
        match with.into() {
            Operand::Reg(src) => {
                self.push(CLASS_JMP | when as u8 | FROM_REGISTER, left as u8, src as u8, 0, 0);
            }
            Operand::Imm(imm) => self.push(CLASS_JMP | when as u8, left as u8, 0, 0, imm),
        }
    }

    /// `goto label`
    pub(crate) fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(CLASS_JMP, 0, 0, 0, 0);
    }

    /// `R0 = helper(R1, ..., R5)`
    pub(crate) fn call(&mut self, helper: Helper) {
        self.push(CLASS_JMP | CALL, 0, 0, 0, helper as i32);
    }

    /// Ends with the result in `R0`.
    pub(crate) fn exit(&mut self) {
        self.push(CLASS_JMP | EXIT, 0, 0, 0, 0);
    }

    /// The program, every jump with its distance.
    pub(crate) fn finish(mut self) -> Result<Vec<Insn>, AsmError> {
        for (at, label) in self.jumps {
            let place = self.places.get(label.0).copied().flatten().ok_or(AsmError::NoPlace(at))?;
            // A distance counts from the instruction behind the jump.
            let distance = i16::try_from(place as i64 - at as i64 - 1).map_err(|_| AsmError::TooFar(at))?;
            if let Some(insn) = self.code.get_mut(at) {
                insn.offset = distance;
            }
        }
        Ok(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reg::*;

    fn bytes(program: &[Insn]) -> Vec<[u8; 8]> {
        let one = |i: &Insn| {
            let (offset, imm) = (i.offset.to_le_bytes(), i.immediate.to_le_bytes());
            [i.code, i.registers, offset[0], offset[1], imm[0], imm[1], imm[2], imm[3]]
        };
        program.iter().map(one).collect()
    }

    #[test]
    fn instructions_are_the_bytes_that_the_standard_says() {
        let mut asm = Asm::default();
        asm.mov(R6, R1);
        asm.op(Op::Add, R7, 14);
        asm.op(Op::And, R9, R2);
        asm.big_endian_16(R1);
        asm.load(Size::U16, R1, R7, 12);
        asm.store(Size::U32, R10, -8, 7);
        asm.store(Size::U64, R10, -16, R4);
        asm.map(R1, 5);
        asm.call(Helper::MapLookup);
        asm.exit();
        let expected: [[u8; 8]; 11] = [
            [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
            [0x07, 0x07, 0, 0, 14, 0, 0, 0],
            [0x5f, 0x29, 0, 0, 0, 0, 0, 0],
            [0xdc, 0x01, 0, 0, 16, 0, 0, 0],
            [0x69, 0x71, 12, 0, 0, 0, 0, 0],
            [0x62, 0x0a, 0xf8, 0xff, 7, 0, 0, 0],
            [0x7b, 0x4a, 0xf0, 0xff, 0, 0, 0, 0],
            [0x18, 0x11, 0, 0, 5, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0],
            [0x85, 0, 0, 0, 1, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes(&asm.finish().unwrap()), expected);
    }

    #[test]
    fn jumps_reach_labels_before_and_behind_them() {
        let mut asm = Asm::default();
        let (back, on) = (asm.label(), asm.label());
        asm.place(back);
        asm.jump_if(JumpCondition::Equal, R1, 3, on);
        asm.jump_if(JumpCondition::Above, R1, R2, back);
        asm.jump(back);
        asm.place(on);
        asm.exit();
        let program = asm.finish().unwrap();
        assert_eq!(program.iter().map(|i| i.offset).collect::<Vec<_>>(), [2, -2, -3, 0]);
        assert_eq!(program.iter().map(|i| i.code).collect::<Vec<_>>(), [0x15, 0x2d, 0x05, 0x95]);
    }

    #[test]
    fn a_label_that_stands_nowhere_or_too_far_is_refused() {
        let mut asm = Asm::default();
        let nowhere = asm.label();
        asm.exit();
        asm.jump(nowhere);
        assert_eq!(asm.finish(), Err(AsmError::NoPlace(1)));
        let mut asm = Asm::default();
        let far = asm.label();
        asm.jump(far);
        (0..40_000).for_each(|_| asm.exit());
        asm.place(far);
        assert_eq!(asm.finish(), Err(AsmError::TooFar(0)));
    }
}
