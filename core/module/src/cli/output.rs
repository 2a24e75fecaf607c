//! What a command answers: text for people, JSON for programs, from one value.

use std::cell::RefCell;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::{Form, Listing, Page};

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
        json_of(self)
    }
}

/// A value as JSON.
pub(super) fn json_of<V: Serialize + ?Sized>(value: &V) -> Value {
    // A map with keys that are no strings is the only way to fail; say so where the reader looks.
    serde_json::to_value(value).unwrap_or_else(|e| Value::String(format!("not representable: {e}")))
}

enum Kind {
    None,
    Text(String),
    Json(Value),
    View(Box<dyn View>),
    /// Until it was made.
    Listing(RefCell<Box<dyn Listing>>),
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

    /// An answer as long as a table, made piece by piece while the client reads. See [`Listing`].
    pub fn listing(listing: impl Listing + 'static) -> Self {
        Self(Kind::Listing(RefCell::new(Box::new(listing))))
    }

    /// A [`listing`](Self::listing) of rows, which are one JSON array; `head` stands before the text.
    pub fn rows<R: Serialize + fmt::Display + 'static>(
        head: impl fmt::Display + 'static,
        rows: impl Iterator<Item = R> + 'static,
    ) -> Self {
        Self::listing(super::listing::rows(None, head, rows))
    }

    /// The same, where the array is a member of an object.
    pub fn rows_in<R: Serialize + fmt::Display + 'static>(
        member: &'static str,
        head: impl fmt::Display + 'static,
        rows: impl Iterator<Item = R> + 'static,
    ) -> Self {
        Self::listing(super::listing::rows(Some(member), head, rows))
    }

    /// A listing whose text is its JSON, in lines.
    pub fn pretty(listing: impl Listing + 'static) -> Self {
        Self::listing(super::listing::Pretty { listing, page: Page::new(Form::Pretty) })
    }

    /// A listing that is made when it is asked for as text or JSON.
    pub fn kept(listing: Box<dyn Listing>) -> Self {
        Self(Kind::Listing(RefCell::new(listing)))
    }

    /// JSON only; its text is that in lines.
    pub fn json(value: Value) -> Self {
        Self(Kind::Json(value))
    }

    /// The listing, if it is one; otherwise the answer as it is.
    ///
    /// # Errors
    /// It is no listing.
    pub fn into_listing(self) -> Result<Box<dyn Listing>, Self> {
        match self.0 {
            Kind::Listing(listing) => Ok(listing.into_inner()),
            other => Err(Self(other)),
        }
    }

    /// Whether there is nothing to say.
    pub const fn is_none(&self) -> bool {
        matches!(self.0, Kind::None)
    }

    /// The text for people. A listing can be made once: this makes all of it, without a pause.
    pub fn to_text(&self) -> String {
        match &self.0 {
            Kind::None => String::new(),
            Kind::Text(text) => text.clone(),
            Kind::Json(value) => format!("{value:#}\n"),
            Kind::View(view) => view.text(),
            Kind::Listing(listing) => whole(listing, Form::Text),
        }
    }

    /// The answer for programs: `null`, a string or the view. A listing can be made once: this makes all of it, without a
    /// pause.
    pub fn to_json(&self) -> Value {
        match &self.0 {
            Kind::None => Value::Null,
            Kind::Text(text) => Value::String(text.clone()),
            Kind::Json(value) => value.clone(),
            Kind::View(view) => view.json(),
            Kind::Listing(listing) => serde_json::from_str(&whole(listing, Form::Json)).unwrap_or_default(),
        }
    }
}

fn whole(listing: &RefCell<Box<dyn Listing>>, form: Form) -> String {
    let mut page = Page::new(form);
    while page.fill(&mut **listing.borrow_mut()).is_continue() {}
    page.take()
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            // To be shown it would have to be made.
            Kind::Listing(_) => f.write_str("Output(a listing)"),
            _ => f.debug_tuple("Output").field(&self.to_text()).finish(),
        }
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
