//! Lines in the router's log. Unsafe, because the router gives a pointer to its functions.

use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;

use shoal_plugin_abi as abi;

use crate::describe::Built;

/// How grave a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Level {
    /// Something is wrong.
    Err = abi::SHOAL_LOG_ERR,
    /// Something may be wrong.
    Warn = abi::SHOAL_LOG_WARN,
    /// Worth knowing.
    Notice = abi::SHOAL_LOG_NOTICE,
    /// For close inspection.
    Debug = abi::SHOAL_LOG_DEBUG,
}

struct Host(&'static abi::Host);

// SAFETY: the router's table never changes, and its functions may be called from any thread.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

static HOST: OnceLock<Host> = OnceLock::new();

/// Writes a line into the router's log. From any thread, but not for each packet. Before the router has started the
/// plugin the line is lost.
pub fn log(level: Level, text: &str) {
    let (Some(host), Some(name)) = (HOST.get(), Built::name()) else { return };
    let Some(log) = host.0.log else { return };
    // SAFETY: the router's function, which takes a string that ends and as many bytes as are told.
    unsafe { log(name.as_ptr(), level as u32, text.as_ptr().cast::<c_char>(), text.len()) };
}

/// `shoal_plugin.init` of every plugin of this crate.
pub(crate) unsafe extern "C" fn init(host: *const abi::Host) -> c_int {
    // SAFETY: the router's table is valid until the process ends.
    let Some(host) = (unsafe { host.as_ref() }) else { return 1 };
    let _ = HOST.set(Host(host));
    match Built::start() {
        Ok(()) => 0,
        Err(why) => {
            log(Level::Err, &why);
            1
        }
    }
}

/// A string as C wants it; what stands behind a zero is lost.
pub(crate) fn c_string(text: &str) -> &'static CString {
    let clean: Vec<u8> = text.bytes().take_while(|b| *b != 0).collect();
    Box::leak(Box::new(CString::new(clean).unwrap_or_default()))
}
