//! What records are made of (RFC 7011, 3.4.1).

/// A field: an information element of IANA's, and its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The element's number.
    pub element: u16,
    /// Bytes of its value.
    pub length: u16,
}

impl Field {
    /// An element of so many bytes.
    pub const fn new(element: u16, length: u16) -> Self {
        Field { element, length }
    }
}

/// What a feature's records are made of, and which stream they are in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    /// The observation domain.
    pub domain: u32,
    /// The port records come from.
    pub source_port: u16,
    /// The fields, in the order of their values.
    pub fields: Vec<Field>,
}

impl Template {
    /// Bytes of a record.
    pub fn record_len(&self) -> usize {
        self.fields.iter().map(|field| usize::from(field.length)).sum()
    }

    /// The template record, under a number.
    pub(crate) fn bytes(&self, id: u16) -> Vec<u8> {
        let head = [id, self.fields.len() as u16].into_iter();
        let fields = self.fields.iter().flat_map(|field| [field.element, field.length]);
        head.chain(fields).flat_map(u16::to_be_bytes).collect()
    }
}

/// A template that was added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ReportKey(pub(crate) u32);
