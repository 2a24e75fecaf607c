//! Messages of the binary API: what a feature may declare, and how it answers.
//!
//! A feature declares each message in its `api.rs` (`shoal_message`'s derives), and implements for each request one of
//! the traits of [`handler`]: it gets the message, asks the feature's control object, and returns the answer or a
//! [`Retval`]. Its [`Module`](crate::Module) lists them in parts of VPP's API files:
//!
//! ```
//! use shoal_message::{Message, Retval};
//! use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};
//!
//! /// Says whether a number is even.
//! #[derive(Message)]
//! #[message(request)]
//! struct CheckEven {
//!     /// The number.
//!     number: u32,
//! }
//!
//! impl Request for CheckEven {
//!     fn handle(self, _: &Call) -> Result<(), Retval> {
//!         if self.number % 2 == 0 { Ok(()) } else { Err(Retval::INVALID_VALUE) }
//!     }
//! }
//!
//! static API: ApiPart = ApiPart {
//!     file: "even",
//!     folder: Folder::Plugins,
//!     version: "1.0.0",
//!     messages: &[ApiMessage::request::<CheckEven>()],
//! };
//! ```
//!
//! | question | file |
//! |---|---|
//! | what a feature lists | [`part`] |
//! | who asks | [`call`] |
//! | how requests are handled | [`handler`] |
//! | how answers get their bytes | [`answers`] |
//! | who is connected, and who wants to know of what | [`clients`] |

pub mod answers;
pub mod call;
pub mod clients;
pub mod handler;
pub mod part;

pub use answers::Answers;
pub use call::{Call, ClientIndex};
pub use clients::{Clients, Mailbox, Subscribers};
pub use handler::{Dump, Get, Request, Task};
pub use part::{ApiMessage, ApiPart, Folder};
