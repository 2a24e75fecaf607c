//! Copies between private memory and memory that others may write meanwhile.
//!
//! To the language, two threads that write plainly to one place at the same time have no meaning at all, and a peer can tell two
//! threads to do just that. Atomics of a word each would have one, but a packet copied by them takes several times as long. So
//! the shared side is accessed by instructions that the compiler does not see: moves of a vector in assembly, and the
//! library's `memcpy`, called from assembly. To the language they are what another process's writes are: bytes that change
//! at some time. They read and write each byte that they are asked for, and no compiler can make two reads of one.

#[cfg(not(target_arch = "x86_64"))]
pub(super) use words::{read, write};
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{read, write};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use core::arch::asm;
    use core::arch::x86_64::__m128i;
    use std::array;

    #[cfg(target_feature = "avx")]
    type Wide = core::arch::x86_64::__m256i;
    #[cfg(not(target_feature = "avx"))]
    type Wide = __m128i;

    /// Bytes of a vector register that is there.
    const WIDE: usize = size_of::<Wide>();

    /// Moves between a vector register and shared memory.
    trait Vector: Copy {
        /// # Safety
        /// `from` is readable for the size of this type.
        unsafe fn load(from: *const u8) -> Self;
        /// # Safety
        /// `to` is writable for the size of this type.
        unsafe fn store(self, to: *mut u8);
    }

    macro_rules! vector {
        ($type:ty, $class:ident, $load:literal, $store:literal) => {
            impl Vector for $type {
                #[inline(always)]
                unsafe fn load(from: *const u8) -> Self {
                    let value: Self;
                    // SAFETY: one unaligned load of what the caller says is readable; nothing else is touched.
                    unsafe {
                        asm!($load, value = out($class) value, at = in(reg) from,
                            options(nostack, preserves_flags, readonly));
                    }
                    value
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut u8) {
                    // SAFETY: one unaligned store to what the caller says is writable; nothing else is touched.
                    unsafe {
                        asm!($store, value = in($class) self, at = in(reg) to,
                            options(nostack, preserves_flags));
                    }
                }
            }
        };
    }

    #[cfg(not(target_feature = "avx"))]
    vector!(__m128i, xmm_reg, "movups {value}, [{at}]", "movups [{at}], {value}");
    #[cfg(target_feature = "avx")]
    vector!(__m128i, xmm_reg, "vmovups {value:x}, [{at}]", "vmovups [{at}], {value:x}");
    #[cfg(target_feature = "avx")]
    vector!(Wide, ymm_reg, "vmovups {value:y}, [{at}]", "vmovups [{at}], {value:y}");

    /// Fills private memory from shared memory.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes; no other code uses those at `to`.
    // WHY: 64 bytes take 3 clocks less than by `memcpy`, whose length is not known when it is compiled.
    #[inline(always)]
    pub(in super::super) unsafe fn read(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: in each arm both parts lie in the first `len` bytes, by the arm's bounds.
        unsafe {
            match len {
                16..32 => read_ends::<__m128i, 1>(from, to, len),
                32..64 => read_ends::<Wide, { 32 / WIDE }>(from, to, len),
                64..=128 => read_ends::<Wide, { 64 / WIDE }>(from, to, len),
                129..=256 => read_ends::<Wide, { 128 / WIDE }>(from, to, len),
                _ => call(from, to, len),
            }
        }
    }

    /// Fills shared memory from private memory.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes; no other code writes those at `from`.
    #[inline(always)]
    pub(in super::super) unsafe fn write(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: as in `read`.
        unsafe {
            match len {
                16..32 => write_ends::<__m128i, 1>(from, to, len),
                32..64 => write_ends::<Wide, { 32 / WIDE }>(from, to, len),
                64..=128 => write_ends::<Wide, { 64 / WIDE }>(from, to, len),
                129..=256 => write_ends::<Wide, { 128 / WIDE }>(from, to, len),
                _ => call(from, to, len),
            }
        }
    }

    /// The first and the last `N` vectors of `len` bytes.
    ///
    /// # Safety
    /// As [`read`]; `len` is from `N` vectors to twice as much.
    #[inline(always)]
    unsafe fn read_ends<V: Vector, const N: usize>(from: *const u8, to: *mut u8, len: usize) {
        let last = len - N * size_of::<V>();
        // SAFETY: `last` and `N` vectors are `len`; the caller promises that many bytes.
        unsafe {
            let head: [V; N] = array::from_fn(|i| V::load(from.add(i * size_of::<V>())));
            let tail: [V; N] = array::from_fn(|i| V::load(from.add(last + i * size_of::<V>())));
            to.cast::<[V; N]>().write_unaligned(head);
            to.add(last).cast::<[V; N]>().write_unaligned(tail);
        }
    }

    /// As [`read_ends`], the other way.
    ///
    /// # Safety
    /// As [`write`]; `len` is from `N` vectors to twice as much.
    #[inline(always)]
    unsafe fn write_ends<V: Vector, const N: usize>(from: *const u8, to: *mut u8, len: usize) {
        let last = len - N * size_of::<V>();
        // SAFETY: as in `read_ends`.
        unsafe {
            let head: [V; N] = from.cast::<[V; N]>().read_unaligned();
            let tail: [V; N] = from.add(last).cast::<[V; N]>().read_unaligned();
            (0..N).zip(head).for_each(|(i, v)| v.store(to.add(i * size_of::<V>())));
            (0..N).zip(tail).for_each(|(i, v)| v.store(to.add(last + i * size_of::<V>())));
        }
    }

    /// The library's `memcpy`, called where the compiler does not see that it is one.
    ///
    /// # Safety
    /// As [`read`] or [`write`]; the two do not overlap.
    #[inline(always)]
    unsafe fn call(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the call of a C function by the System V ABI, whose arguments the caller vouches for; the stack is aligned
        // because there is no `nostack`, and everything that a call may change is given up.
        unsafe {
            asm!("call {memcpy}", memcpy = sym libc::memcpy, in("rdi") to, in("rsi") from, in("rdx") len,
                clobber_abi("sysv64"));
        }
    }
}

/// Copies by atomic words, for machines without the above.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod words {
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

    const WORD: usize = 8;

    /// Where whole words begin and end in `len` bytes at `shared`.
    fn whole(shared: *const u8, len: usize) -> (usize, usize) {
        let first = (shared.addr().next_multiple_of(WORD) - shared.addr()).min(len);
        (first, first + (len - first) / WORD * WORD)
    }

    /// Fills private memory from shared memory.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes; no other code uses those at `to`.
    #[allow(clippy::cast_ptr_alignment, reason = "whole words begin at multiples of 8")]
    pub(in super::super) unsafe fn read(from: *const u8, to: *mut u8, len: usize) {
        let (first, last) = whole(from, len);
        // SAFETY: all offsets are less than `len`; words are aligned by `whole`.
        unsafe {
            for i in (0..first).chain(last..len) {
                let byte = AtomicU8::from_ptr(from.add(i).cast_mut()).load(Ordering::Relaxed);
                to.add(i).write(byte);
            }
            for i in (first..last).step_by(WORD) {
                let word = AtomicU64::from_ptr(from.add(i).cast_mut().cast()).load(Ordering::Relaxed);
                to.add(i).cast::<u64>().write_unaligned(word);
            }
        }
    }

    /// Fills shared memory from private memory.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes; no other code writes those at `from`.
    #[allow(clippy::cast_ptr_alignment, reason = "whole words begin at multiples of 8")]
    pub(in super::super) unsafe fn write(from: *const u8, to: *mut u8, len: usize) {
        let (first, last) = whole(to, len);
        // SAFETY: as in `read`.
        unsafe {
            for i in (0..first).chain(last..len) {
                AtomicU8::from_ptr(to.add(i)).store(from.add(i).read(), Ordering::Relaxed);
            }
            for i in (first..last).step_by(WORD) {
                let word = from.add(i).cast::<u64>().read_unaligned();
                AtomicU64::from_ptr(to.add(i).cast()).store(word, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    type Copy = unsafe fn(*const u8, *mut u8, usize);

    fn every_length_and_place(copy: Copy) {
        let from: Vec<u8> = (0..700).map(|i| (i * 7 + 1) as u8).collect();
        for (len, start, end) in (0..=520).map(|len| (len, len % 9, len % 13)) {
            let mut to = vec![0xaa_u8; 700];
            // SAFETY: both have 700 bytes, which is more than `len` + 13.
            unsafe { copy(from.as_ptr().add(start), to.as_mut_ptr().add(end), len) };
            assert_eq!(to[end..end + len], from[start..start + len], "length {len}");
            assert!(to[..end].iter().chain(&to[end + len..]).all(|b| *b == 0xaa), "length {len}");
        }
    }

    #[test]
    fn every_length_is_copied_whole_and_nothing_beside_it() {
        // Closures, because what is always inlined has no address worth having.
        every_length_and_place(|from, to, len| {
            // SAFETY: as the test says.
            unsafe { super::read(from, to, len) }
        });
        every_length_and_place(|from, to, len| {
            // SAFETY: as the test says.
            unsafe { super::write(from, to, len) }
        });
        every_length_and_place(super::words::read);
        every_length_and_place(super::words::write);
    }
}
