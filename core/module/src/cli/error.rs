//! Why a command failed, or an argument was refused.

use std::error::Error;
use std::fmt;

/// What should have stood where a bad argument stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The thing that is expected, to be read after the word "expected": `an IPv4 address such as 192.0.2.1`.
    pub what: String,
    /// The valid text that is closest to what was given, where there is one.
    pub nearest: Option<String>,
}

impl Expected {
    /// An expectation without a nearest value.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), nearest: None }
    }

    /// The same expectation with the nearest valid text.
    pub fn nearest(mut self, nearest: Option<String>) -> Self {
        self.nearest = nearest;
        self
    }
}

impl From<String> for Expected {
    fn from(what: String) -> Self {
        Self::new(what)
    }
}

impl From<&str> for Expected {
    fn from(what: &str) -> Self {
        Self::new(what)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.nearest.as_ref().map_or(Ok(()), |n| write!(f, " (did you mean `{n}'?)"))
    }
}

/// A command's function failed.
///
/// Any error converts with `?`; that is why this type is not an [`Error`] itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CliError {
    /// The operation failed; the text is for the operator and names the object and the value.
    Failed(String),
    /// An argument cannot be used; the CLI points at it.
    Argument {
        /// The argument's name in the syntax string.
        name: String,
        /// What is wrong with it.
        message: String,
        /// The valid text that is closest to what was given.
        nearest: Option<String>,
    },
}

impl CliError {
    /// The operation failed for this reason.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// The named argument cannot be used for this reason.
    pub fn argument(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Argument { name: name.into(), message: message.into(), nearest: None }
    }

    /// The same error with the valid text that is closest to what was given.
    pub fn nearest(self, text: Option<String>) -> Self {
        match self {
            Self::Argument { name, message, .. } => Self::Argument { name, message, nearest: text },
            failed @ Self::Failed(_) => failed,
        }
    }

    /// The text for the operator, without position or suggestion.
    pub fn message(&self) -> &str {
        match self {
            Self::Failed(message) | Self::Argument { message, .. } => message,
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        match self {
            Self::Argument { nearest: Some(n), .. } => write!(f, " (did you mean `{n}'?)"),
            _ => Ok(()),
        }
    }
}

impl<E: Error> From<E> for CliError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            source = cause.source();
        }
        Self::Failed(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open tap0")]
    struct Outer(#[source] std::io::Error);

    fn fails() -> Result<(), CliError> {
        Err(Outer(std::io::Error::other("no such device")))?;
        Ok(())
    }

    #[test]
    fn any_error_converts_with_its_causes() {
        assert_eq!(fails(), Err(CliError::failed("cannot open tap0: no such device")));
    }

    #[test]
    fn an_argument_error_suggests_the_nearest_value() {
        let e = CliError::argument("interface", "no interface tap1").nearest(Some("tap0".into()));
        assert_eq!(e.to_string(), "no interface tap1 (did you mean `tap0'?)");
    }
}
