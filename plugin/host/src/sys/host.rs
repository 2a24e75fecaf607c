//! The table that a plugin gets.

use std::ffi::{CStr, c_char};

use shoal_plugin_abi as abi;

/// Longest line that a plugin writes into the log; the rest is cut.
const LONGEST: usize = 1024;

/// What holds for all plugins.
struct Table(abi::Host);

// SAFETY: it never changes, and what it points to is static.
unsafe impl Sync for Table {}

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

static TABLE: Table = Table(abi::Host {
    size: size_of::<abi::Host>() as u32,
    abi_major: abi::SHOAL_ABI_MAJOR,
    abi_minor: abi::SHOAL_ABI_MINOR,
    version: VERSION.as_ptr(),
    log: Some(log),
});

/// The table.
pub(super) fn table() -> &'static abi::Host {
    &TABLE.0
}

/// `shoal_host.log`.
unsafe extern "C" fn log(plugin: *const c_char, level: u32, text: *const c_char, length: usize) {
    if plugin.is_null() || (text.is_null() && length > 0) {
        return;
    }
    // SAFETY: not null; the ABI asks for a string that ends.
    let name = unsafe { CStr::from_ptr(plugin) }.to_string_lossy();
    let bytes: &[u8] = if length == 0 {
        &[]
    } else {
        // SAFETY: not null; the ABI asks for `length` bytes, of which at most the first are read.
        unsafe { std::slice::from_raw_parts(text.cast(), length.min(LONGEST)) }
    };
    let line = super::library::printable(bytes);
    match level {
        0..=abi::SHOAL_LOG_ERR => tracing::error!("{name}: {line}"),
        abi::SHOAL_LOG_WARN => tracing::warn!("{name}: {line}"),
        abi::SHOAL_LOG_NOTICE | 6 => tracing::info!("{name}: {line}"),
        _ => tracing::debug!("{name}: {line}"),
    }
}
