//! What a command answers: text for people, JSON for programs, from one value.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// A value that can be shown both ways. Implemented for everything that is [`Serialize`] and [`fmt::Display`].
pub trait View {
    /// The text for people.
    fn text(&self) -> String;
    /// The same facts for programs.
    fn json(&self) -> Value;
}

impl<V: Serialize + fmt::Display> View for V {
    fn text(&self) -> String {
        self.to_string()
    }

    fn json(&self) -> Value {
        // A map with keys that are no strings is the only way to fail; say so where the reader looks.
        serde_json::to_value(self).unwrap_or_else(|e| Value::String(format!("not representable: {e}")))
    }
}

enum Kind {
    None,
    Text(String),
    View(Box<dyn View>),
}

/// A command's answer.
pub struct Output(Kind);

impl Output {
    /// Nothing to say; success prints nothing.
    pub const fn none() -> Self {
        Self(Kind::None)
    }

    /// Text only; its JSON is the string.
    pub fn text(text: impl Into<String>) -> Self {
        Self(Kind::Text(text.into()))
    }

    /// Text from [`fmt::Display`], JSON from [`Serialize`]; only the one that is asked for is made.
    pub fn view<V: Serialize + fmt::Display + 'static>(view: V) -> Self {
        Self(Kind::View(Box::new(view)))
    }

    /// Whether there is nothing to say.
    pub const fn is_none(&self) -> bool {
        matches!(self.0, Kind::None)
    }

    /// The text for people.
    pub fn to_text(&self) -> String {
        match &self.0 {
            Kind::None => String::new(),
            Kind::Text(text) => text.clone(),
            Kind::View(view) => view.text(),
        }
    }

    /// The answer for programs: `null`, a string or the view.
    pub fn to_json(&self) -> Value {
        match &self.0 {
            Kind::None => Value::Null,
            Kind::Text(text) => Value::String(text.clone()),
            Kind::View(view) => view.json(),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Output").field(&self.to_text()).finish()
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Version {
        major: u8,
    }

    impl fmt::Display for Version {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            writeln!(f, "shoal v{}", self.major)
        }
    }

    #[test]
    fn a_view_is_text_and_json() {
        let out = Output::view(Version { major: 3 });
        assert_eq!(out.to_text(), "shoal v3\n");
        assert_eq!(out.to_json(), serde_json::json!({"major": 3}));
    }

    #[test]
    fn nothing_is_empty_text_and_null() {
        assert_eq!(Output::none().to_text(), "");
        assert_eq!(Output::none().to_json(), Value::Null);
    }
}
