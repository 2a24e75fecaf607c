//! The linear token: the right to one buffer.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The right to one packet: its first buffer and all segments chained to it.
///
/// It cannot be copied or made from a number. Send it on in a [`Frame`](crate::Frame) or give it back with
/// [`Cache::free`](crate::Cache::free); one that is dropped instead is put on the [`lost`] list.
///
/// ```
/// use shoal_buffer::{Frame, Pages, Pool, PoolConfig};
/// let pool = Pool::new(PoolConfig { buffers: 8, most: 8, pages: Pages::Small, ..PoolConfig::default() })?;
/// let mut cache = pool.cache();
/// let mut buffer = cache.alloc_data(b"hello").map_err(|_| std::io::ErrorKind::OutOfMemory)?;
/// assert_eq!(cache.packet(&mut buffer).data(), b"hello");
/// cache.free(buffer);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A packet cannot be sent twice:
///
/// ```compile_fail,E0382
/// # use shoal_buffer::{Buffer, Frame};
/// fn twice(buffer: Buffer, frame: &mut Frame) {
///     let _ = frame.push(buffer);
///     let _ = frame.push(buffer);
/// }
/// ```
///
/// It cannot be freed and then looked at:
///
/// ```compile_fail,E0382
/// # use shoal_buffer::{Buffer, Cache};
/// fn after(mut buffer: Buffer, cache: &mut Cache) {
///     cache.free(buffer);
///     cache.packet(&mut buffer);
/// }
/// ```
///
/// It cannot be copied:
///
/// ```compile_fail,E0277
/// # use shoal_buffer::Buffer;
/// fn copy(buffer: &Buffer) -> Buffer {
///     Buffer::clone(buffer)
/// }
/// ```
///
/// It cannot be made from a number:
///
/// ```compile_fail,E0423
/// # use std::num::NonZeroU32;
/// # use shoal_buffer::Buffer;
/// fn forge(number: NonZeroU32) -> Buffer {
///     Buffer(number)
/// }
/// ```
///
/// ```compile_fail,E0624
/// # use std::num::NonZeroU32;
/// # use shoal_buffer::Buffer;
/// fn forge(number: NonZeroU32) -> Buffer {
///     Buffer::from_index(number)
/// }
/// ```
///
/// Two views of one packet cannot be held at a time, nor one of a packet that was sent:
///
/// ```compile_fail,E0499
/// # use shoal_buffer::{Buffer, Cache};
/// fn alias(buffer: &mut Buffer, cache: &Cache) {
///     let (mut one, mut two) = (cache.packet(buffer), cache.packet(buffer));
///     one.data_mut()[0] = two.data_mut()[0];
/// }
/// ```
///
/// ```compile_fail,E0505
/// # use shoal_buffer::{Buffer, Cache, Frame};
/// fn sent(mut buffer: Buffer, cache: &Cache, frame: &mut Frame) {
///     let pkt = cache.packet(&mut buffer);
///     let _ = frame.push(buffer);
///     pkt.len();
/// }
/// ```
///
/// The links of a chain cannot be changed by hand, nor a header line copied with its link:
///
/// ```compile_fail,E0616
/// # use shoal_buffer::Packet;
/// fn relink(pkt: &mut Packet<'_>) {
///     pkt.meta_mut().next = 7;
/// }
/// ```
///
/// ```compile_fail,E0507
/// # use shoal_buffer::{Meta, Packet};
/// fn copy(from: &Packet<'_>) -> Meta {
///     *from.meta()
/// }
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Buffer(NonZeroU32);

impl Buffer {
    /// Takes over an index. Crate-private: the caller must have removed it from its one place.
    #[inline(always)]
    pub(crate) fn from_index(index: NonZeroU32) -> Self {
        Buffer(index)
    }

    /// Gives the index up to a new place.
    #[inline(always)]
    pub(crate) fn into_index(self) -> u32 {
        std::mem::ManuallyDrop::new(self).0.get()
    }

    /// The buffer's number, for display (`buffer 0x4a3`).
    #[inline(always)]
    pub fn number(&self) -> u32 {
        self.0.get()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        lost::add(&[self.0.get()]);
    }
}

/// Tokens that were dropped instead of being sent on or freed: a defect, but not a leak.
pub mod lost {
    use super::*;

    static COUNT: AtomicU64 = AtomicU64::new(0);
    static LIST: Mutex<Vec<u32>> = Mutex::new(Vec::new());

    #[cold]
    pub(crate) fn add(indices: &[u32]) {
        COUNT.fetch_add(indices.len() as u64, Ordering::Relaxed);
        LIST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(indices);
    }

    /// How many tokens were ever lost in this process; anything but 0 is a defect worth a report.
    pub fn count() -> u64 {
        COUNT.load(Ordering::Relaxed)
    }

    /// Takes the lost indices for return to their pools.
    pub(crate) fn take() -> Vec<u32> {
        std::mem::take(&mut *LIST.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}
