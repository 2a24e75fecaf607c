//! Answers as long as a table: made piece by piece while the client reads.
//!
//! A table may have a million rows, and the main thread may forward packets besides. So a command does not make such an
//! answer; it returns a [`Listing`] that makes a few rows whenever the client has read those before. It holds its place in
//! the table, never the rows: the place must be told by a key (the last prefix, the last number), because the table
//! changes in between. Then a row that stays as long as the listing lasts comes exactly once, one that comes or goes
//! meanwhile comes once or not at all, and each row is as it was when it was written, not when the listing began.
//!
//! Text has no columns as wide as the widest of all rows, which is not known at the first one: widths are fixed, or told
//! by what is cheap to know.
//!
//! ```
//! use std::ops::ControlFlow;
//! use shoal_module::cli::{Form, Output, Page};
//!
//! fn squares(most: u64) -> Output {
//!     let mut next = 0;
//!     Output::listing(move |page: &mut Page| {
//!         if next == 0 {
//!             page.array();
//!         }
//!         page.text(format_args!("{}\n", next * next));
//!         page.value(&(next * next));
//!         next += 1;
//!         if next < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
//!     })
//! }
//! assert_eq!(squares(3).to_text(), "0\n1\n4\n");
//! assert_eq!(squares(3).to_json(), serde_json::json!([0, 1, 4]));
//! ```

use std::fmt::{self, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

/// How long rows are made without a pause. The main thread has other tasks, and without workers it forwards packets, too.
const SLICE: Duration = Duration::from_micros(200);
/// Bytes of rows that are made without a pause.
const PIECE: usize = 16 << 10;

/// An answer that is made while the client reads.
pub trait Listing {
    /// Writes some more: a row, or nothing after some steps of a search for the next one; some microseconds of work.
    /// `Break` says that this was all.
    fn next(&mut self, page: &mut Page) -> ControlFlow<()>;
}

impl<F: FnMut(&mut Page) -> ControlFlow<()>> Listing for F {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        self(page)
    }
}

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text for people.
    Text,
    /// JSON without blanks.
    Json,
    /// JSON for people: a line for each value.
    Pretty,
}

/// An array or object that is not closed yet.
#[derive(Debug)]
struct Open {
    close: char,
    /// Whether there is something in it.
    filled: bool,
}

/// Where a [`Listing`] writes its rows. What is for text is left out of JSON, and the other way round, so that a listing
/// writes both.
#[derive(Debug)]
pub struct Page {
    form: Form,
    text: String,
    open: Vec<Open>,
    /// The next value belongs to a key, which is written.
    keyed: bool,
}

impl Page {
    /// An empty page.
    pub fn new(form: Form) -> Self {
        Page { form, text: String::new(), open: Vec::new(), keyed: false }
    }

    /// What the client wants.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether it is JSON.
    pub fn is_json(&self) -> bool {
        self.form != Form::Text
    }

    /// Bytes that were written and not taken.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds to the text.
    pub fn text(&mut self, text: impl fmt::Display) {
        if !self.is_json() {
            // Writing to a String cannot fail.
            let _ = write!(self.text, "{text}");
        }
    }

    /// Adds a value that is text and JSON.
    pub fn row(&mut self, row: &(impl Serialize + fmt::Display)) {
        self.text(row);
        self.value(row);
    }

    /// Adds a value to the JSON.
    pub fn value(&mut self, value: &impl Serialize) {
        if self.is_json() {
            self.add(&super::output::json_of(value));
        }
    }

    /// Adds all members of a value that is an object to the object that is open.
    pub fn members(&mut self, value: &impl Serialize) {
        if !self.is_json() {
            return;
        }
        if let Value::Object(members) = super::output::json_of(value) {
            for (name, member) in &members {
                self.key(name);
                self.add(member);
            }
        }
    }

    /// Names the next value of the object that is open.
    pub fn key(&mut self, name: &str) {
        if self.is_json() {
            self.place();
            let blank = if self.form == Form::Pretty { " " } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(self.text, "{}:{blank}", Value::from(name));
            self.keyed = true;
        }
    }

    /// Opens an array.
    pub fn array(&mut self) {
        self.begin('[', ']');
    }

    /// Opens an object.
    pub fn object(&mut self) {
        self.begin('{', '}');
    }

    /// Closes what was opened last.
    pub fn close(&mut self) {
        let Some(Open { close, filled }) = self.open.pop() else { return };
        if filled {
            self.line();
        }
        self.text.push(close);
    }

    /// Takes what was written.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Makes some more of a listing, as long as it may take without a pause; `Break` says that this was all, and everything
    /// that was opened is closed then.
    pub fn fill(&mut self, listing: &mut dyn Listing) -> ControlFlow<()> {
        let begun = Instant::now();
        let most = self.text.len() + PIECE;
        loop {
            if listing.next(self).is_break() {
                self.end();
                return ControlFlow::Break(());
            }
            if self.text.len() >= most || begun.elapsed() >= SLICE {
                return ControlFlow::Continue(());
            }
        }
    }

    fn end(&mut self) {
        while !self.open.is_empty() {
            self.close();
        }
    }

    fn begin(&mut self, open: char, close: char) {
        if self.is_json() {
            self.place();
            self.text.push(open);
            self.open.push(Open { close, filled: false });
        }
    }

    fn add(&mut self, value: &Value) {
        self.place();
        // Writing to a String cannot fail.
        if self.form == Form::Pretty {
            let indent = format!("\n{:1$}", "", 2 * self.open.len());
            let _ = write!(self.text, "{}", format!("{value:#}").replace('\n', &indent));
        } else {
            let _ = write!(self.text, "{value}");
        }
    }

    /// Makes room for a value or a key.
    fn place(&mut self) {
        if std::mem::take(&mut self.keyed) {
            return;
        }
        let Some(open) = self.open.last_mut() else { return };
        if std::mem::replace(&mut open.filled, true) {
            self.text.push(',');
        }
        self.line();
    }

    fn line(&mut self) {
        if self.form == Form::Pretty {
            // Writing to a String cannot fail.
            let _ = write!(self.text, "\n{:1$}", "", 2 * self.open.len());
        }
    }
}

/// A listing of rows that are text and JSON each: an array of them, or an object with that array as a member of this
/// name. `head` stands before the text. The rows are fetched one by one while the client reads.
pub fn rows<R: Serialize + fmt::Display>(
    member: Option<&'static str>,
    head: impl fmt::Display + 'static,
    rows: impl Iterator<Item = R> + 'static,
) -> impl Listing {
    let (mut head, mut rows) = (Some(head), rows);
    move |page: &mut Page| {
        if let Some(head) = head.take() {
            page.text(head);
            if let Some(member) = member {
                page.object();
                page.key(member);
            }
            page.array();
        }
        match rows.next() {
            Some(row) => {
                page.row(&row);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

/// The JSON of a listing for people who want that as text.
pub(super) struct Pretty<L> {
    pub listing: L,
    pub page: Page,
}

impl<L: Listing> Listing for Pretty<L> {
    fn next(&mut self, page: &mut Page) -> ControlFlow<()> {
        if page.is_json() {
            return self.listing.next(page);
        }
        let goes_on = self.listing.next(&mut self.page);
        if goes_on.is_break() {
            self.page.end();
            self.page.text.push('\n');
        }
        page.text(self.page.take());
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(page: &mut Page) -> ControlFlow<()> {
        page.text("text\n");
        page.object();
        page.members(&json!({"b": [1, {"x": null}], "a": "\n"}));
        page.key("empty");
        page.array();
        page.close();
        page.key("rows");
        page.array();
        page.value(&json!({"n": 1}));
        page.value(&json!({}));
        ControlFlow::Break(())
    }

    #[test]
    fn json_is_what_serde_would_have_made_of_the_whole() {
        let whole = json!({"a": "\n", "b": [1, {"x": null}], "empty": [], "rows": [{"n": 1}, {}]});
        for (form, text) in [(Form::Json, whole.to_string()), (Form::Pretty, format!("{whole:#}"))] {
            let mut page = Page::new(form);
            assert!(page.fill(&mut nested).is_break());
            assert_eq!(page.take(), text);
        }
        let mut page = Page::new(Form::Text);
        assert!(page.fill(&mut nested).is_break());
        assert_eq!(page.take(), "text\n");
    }

    #[test]
    fn a_listing_pauses_after_a_piece() {
        let mut endless = rows(None, "head\n", std::iter::repeat_with(|| "x".repeat(99)));
        let mut page = Page::new(Form::Text);
        assert!(page.fill(&mut endless).is_continue());
        assert!((1..PIECE + 100).contains(&page.len()), "{}", page.len());
        assert!(page.take().starts_with("head\nxxx"));
        assert!(page.fill(&mut endless).is_continue());
        assert!(page.take().starts_with("xxx"));
    }
}
