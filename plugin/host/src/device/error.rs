//! What can be wrong with a device.

use shoal_interface::InterfaceError;

/// Why a device is no interface; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The plugin says no.
    #[error("{0}: {1}")]
    Plugin(String, String),
    /// The plugin describes its device as no device can be.
    #[error("{driver}: {what} of its device is {found}, expected {expected}")]
    Device {
        /// The driver.
        driver: String,
        /// What is wrong.
        what: &'static str,
        /// What the plugin says.
        found: String,
        /// What it may say.
        expected: &'static str,
    },
    /// No device of this driver.
    #[error("{name} is no device of {driver}, {}", if .all.is_empty() { "it has none".to_owned() } else { format!("expected one of {}", .all.join(", ")) })]
    NotOurs {
        /// The interface.
        name: String,
        /// The driver.
        driver: String,
        /// What devices the driver has.
        all: Vec<String>,
    },
    /// No driver of this name.
    #[error("no plugin brings the driver `{0}'")]
    NoDriver(String),
    /// The interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}
