//! The checksum of a message: of its fields and all types they are made of. Clients ask for messages by name and
//! checksum, so it is the same as VPP's where the message is.

use crc32fast::Hasher;

use crate::definition::{Definition, Entry, Field, Kind, Shape, Type};
use crate::value::Message;

/// The checksum of a message.
pub fn crc<M: Message>() -> u32 {
    crc_of(M::HEADER.fields(), M::FIELDS)
}

/// What a client finds a message by: its name and checksum.
pub fn table_name<M: Message>() -> String {
    format!("{}_{:08x}", M::NAME, crc::<M>())
}

/// The checksum of a message of these fields, behind those of its header.
pub fn crc_of(header: &[Field], fields: &[Field]) -> u32 {
    let all: Vec<Field> = header.iter().chain(fields).copied().collect();
    let mut hasher = Hasher::new();
    hasher.update(block(&all).as_bytes());
    fold_fields(&mut hasher, &all);
    hasher.finalize()
}

/// The name of a type where it is used.
pub fn type_name(of: Type) -> String {
    match of {
        Type::Base(name) => name.to_owned(),
        Type::User(definition) => format!("vl_api_{}_t", definition.name),
    }
}

/// Fields as the text the checksum is of: a Python list of lists.
fn block(fields: &[Field]) -> String {
    let one = |field: &Field| {
        let (of, name) = (type_name(field.of), field.name);
        match field.shape {
            Shape::One => format!("['{of}', '{name}']"),
            Shape::Array(n) | Shape::Text(n) => format!("['{of}', '{name}', {n}, None]"),
            Shape::Counted(by) => format!("['{of}', '{name}', 0, '{by}']"),
            Shape::OpenText => format!("['{of}', '{name}', 0, None]"),
        }
    };
    list(fields.iter().map(one))
}

fn entries(all: &[Entry]) -> String {
    let known = all.iter().filter(|entry| !entry.late);
    list(known.map(|entry| format!("['{}', {}]", entry.name, entry.value)))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn fold_fields(hasher: &mut Hasher, fields: &[Field]) {
    for field in fields {
        if let Type::User(definition) = field.of {
            fold(hasher, definition);
        }
    }
}

/// A type that is used twice counts twice.
fn fold(hasher: &mut Hasher, definition: &Definition) {
    match definition.kind {
        Kind::Alias(..) => hasher.update(b"[]"),
        Kind::Enum(_, all) | Kind::Flags(_, all) => hasher.update(entries(all).as_bytes()),
        Kind::Struct(fields) | Kind::Union(fields) => {
            hasher.update(block(fields).as_bytes());
            fold_fields(hasher, fields);
        }
    }
}
