//! Why a setting was refused.

use shoal_fib::FibError;
use shoal_interface::InterfaceError;

/// Why a setting was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrpfError {
    /// There is no such interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// There is no such table.
    #[error(transparent)]
    Fib(#[from] FibError),
}
