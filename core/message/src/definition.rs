//! What the description of a type or message consists of.

/// A type, as descriptions name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `u8` to `u64`, `i8` to `i64`, `f64`, `bool` or `string`.
    Base(&'static str),
    /// A type of ours.
    User(&'static Definition),
}

/// A named type, or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name, in snake case.
    pub name: &'static str,
    /// What it is, in a line.
    pub doc: &'static str,
    /// What it is made of.
    pub kind: Kind,
}

/// What a named type is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Another type, or so many of it, under a name of its own.
    Alias(Type, Shape),
    /// One of several numbers.
    Enum(Type, &'static [Entry]),
    /// Any of several bits.
    Flags(Type, &'static [Entry]),
    /// Fields, one behind the other.
    Struct(&'static [Field]),
    /// Fields, all at the same place.
    Union(&'static [Field]),
}

/// A number of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, in capitals.
    pub name: &'static str,
    /// Its value.
    pub value: u32,
    /// Whether it came later, so that the checksum does not know it.
    pub late: bool,
}

/// A field of a struct, union or message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line; empty where the name says it all.
    pub doc: &'static str,
    /// Its type, or that of its elements.
    pub of: Type,
    /// How many of it there are.
    pub shape: Shape,
    /// What clients send if the user gives no value, as JSON has it.
    pub default: Option<&'static str>,
}

/// How many of a type a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One.
    One,
    /// Always so many.
    Array(usize),
    /// As many as another field says.
    Counted(&'static str),
    /// Text in so many bytes, the last of them 0.
    Text(usize),
    /// Text that says how long it is.
    OpenText,
}

/// What stands in front of a message's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// From a client: its index, and a context that comes back in the answer.
    Request,
    /// To a client, who asked: the context.
    Reply,
    /// To a client, who asked: its index, which is not filled in, and the context. VPP has a few of these.
    Indexed,
    /// To a client that did not ask: its index and the number of its process.
    Event,
    /// Nothing but the message's number.
    Bare,
}

const fn number(name: &'static str) -> Field {
    Field { name, doc: "", of: Type::Base("u32"), shape: Shape::One, default: None }
}

impl Header {
    /// The fields it consists of, all of them 32 bits.
    pub const fn fields(self) -> &'static [Field] {
        match self {
            Header::Request | Header::Indexed => &const { [number("client_index"), number("context")] },
            Header::Reply => &const { [number("context")] },
            Header::Event => &const { [number("client_index"), number("pid")] },
            Header::Bare => &[],
        }
    }
}

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The one answer, the last; none for a dump.
    pub reply: Reply,
    /// Of which there are any number, before it.
    pub details: Option<&'static str>,
    /// What comes unasked afterwards.
    pub events: &'static [&'static str],
}

/// The last answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// There is none: the client asks for another answer behind it to know the end.
    None,
    /// Whether it was done: a reply of the request's name, with a number and no more.
    Done,
    /// A message of this name.
    Message(&'static str),
}
