//! Commands of the CLI. Unsafe, because the router calls by pointer.

use core::ffi::{c_char, c_int, c_void};
use std::panic::catch_unwind;

use shoal_plugin_abi as abi;

use crate::log::c_string;

/// Whether words may follow a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// None.
    None,
    /// The rest of the line.
    Rest,
}

/// A command's function: from the words that follow it to what is printed, or why it failed, in one line.
pub type Answer = fn(&str) -> Result<String, String>;

pub(crate) fn describe_command((path, help): (&str, &str), words: Words, run: Answer) -> abi::Command {
    abi::Command {
        size: size_of::<abi::Command>() as u32,
        words: (words == Words::Rest).into(),
        path: c_string(path).as_ptr(),
        help: c_string(help).as_ptr(),
        context: Box::into_raw(Box::new(run)).cast(),
        run: Some(run_command),
    }
}

unsafe extern "C" fn run_command(
    context: *mut c_void,
    words: *const c_char,
    length: usize,
    answer: *mut abi::Text,
) -> c_int {
    // SAFETY: the router gives back the context of the descriptor, which is a leaked function.
    let run = unsafe { *context.cast::<Answer>() };
    // SAFETY: the router's text of that length.
    let words = unsafe { text(words, length) }.unwrap_or_default();
    let done = catch_unwind(|| run(&words)).unwrap_or_else(|_| Err("the plugin panicked".to_owned()));
    // SAFETY: the router's room.
    unsafe { say(answer, done) }
}

/// A text of the router's; `None` for a null pointer.
///
/// # Safety
/// `length` bytes at `p`, or null.
pub(crate) unsafe fn text(p: *const c_char, length: usize) -> Option<String> {
    if p.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    let bytes = unsafe { core::slice::from_raw_parts(p.cast::<u8>(), length) };
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// Writes an answer, or what fits of it: 0 for a good one, 1 for a bad one.
///
/// # Safety
/// `p` points to room as the ABI describes it.
pub(crate) unsafe fn say(p: *mut abi::Text, done: Result<String, String>) -> c_int {
    let (code, said) = match done {
        Ok(said) => (0, said),
        Err(why) => (1, why),
    };
    // SAFETY: the caller's.
    let room = unsafe { &mut *p };
    let mut n = said.len().min(room.room as usize);
    while !said.is_char_boundary(n) {
        n -= 1;
    }
    // SAFETY: `room` bytes are the caller's, and `said` has `n`.
    unsafe { core::ptr::copy_nonoverlapping(said.as_ptr(), room.bytes.cast(), n) };
    room.length = n as u32;
    code
}
