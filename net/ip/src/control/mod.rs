//! What the control planes of both families decide alike about addresses of interfaces.

mod addresses;
mod error;
mod routes;

pub use addresses::Addresses;
pub use error::{AddressError, list, of_address, of_table};
pub use routes::{RouteChange, Routes};
