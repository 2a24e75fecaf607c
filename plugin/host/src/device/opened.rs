//! What a plugin says of a device it has opened, before anything is made of it.

use super::Error;
use crate::sys::NewDevice;

pub(crate) fn wrong(driver: &str, what: &'static str, found: String, expected: &'static str) -> Error {
    Error::Device { driver: driver.to_owned(), what, found, expected }
}

/// Checks all of it but the workers, which only the router knows.
pub(crate) fn check(driver: &str, opened: &NewDevice) -> Result<(), Error> {
    for (what, n) in [
        ("the number of receive queues", opened.rx_queues),
        ("the number of transmit queues", opened.tx_queues),
    ] {
        if !(1..=shoal_plugin_abi::SHOAL_MAX_QUEUES).contains(&n) {
            return Err(wrong(driver, what, n.to_string(), "1 to 64"));
        }
    }
    if !(64..=65_535).contains(&opened.mtu) {
        return Err(wrong(driver, "the MTU", opened.mtu.to_string(), "64 to 65535"));
    }
    if opened.mac.is_zero() || opened.mac.is_multicast() {
        return Err(wrong(driver, "the MAC address", opened.mac.to_string(), "one station's"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if opened.name.is_empty() || !opened.name.chars().all(plain) {
        let expected = "letters, digits, `-', `_', `.' and `/'";
        return Err(wrong(driver, "the name", format!("`{}'", opened.name), expected));
    }
    Ok(())
}
