//! What the router says its messages are made of.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// All messages and types of a router.
#[derive(Debug, Default)]
pub struct Description {
    messages: BTreeMap<String, Message>,
    types: BTreeMap<String, Kind>,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its fields, without the number.
    pub fields: Vec<Field>,
    /// Its checksum, as clients write it.
    pub crc: String,
    /// What it is for.
    pub comment: String,
    /// How it is answered, if it is a request.
    pub service: Option<Service>,
}

/// How a request is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The last or only answer, or what all answers are.
    pub reply: String,
    /// Whether there are any number of them.
    pub is_stream: bool,
    /// What comes before the last one.
    pub details: Option<String>,
    /// What comes unasked afterwards.
    pub events: Vec<String>,
}

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type, or that of its elements, as the description writes it.
    pub of: String,
    /// How many there are.
    pub count: Count,
    /// What is sent if the user gives no value.
    pub default: Option<Json>,
}

/// How many elements a field has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Count {
    /// One.
    One,
    /// Always so many.
    Fixed(usize),
    /// As many as the field of this name says.
    By(String),
    /// A text that says how long it is.
    Open,
}

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Another name for so many of another type.
    Alias(String, Option<usize>),
    /// Numbers of this type with names.
    Numbers(String, Vec<(String, u64)>),
    /// Fields.
    Struct(Vec<Field>),
    /// Fields at the same place.
    Union(Vec<Field>),
}

impl Description {
    /// Reads the files the router sent as one array. What is not understood is left out.
    pub fn new(files: &Json) -> Self {
        let mut all = Description::default();
        for file in files.as_array().into_iter().flatten() {
            all.file(file);
        }
        all
    }

    fn file(&mut self, file: &Json) {
        let list = |what: &str| file[what].as_array().cloned().unwrap_or_default();
        for (what, is_union) in [("types", false), ("unions", true)] {
            for one in list(what) {
                let fields = fields(&one);
                let kind = if is_union { Kind::Union(fields) } else { Kind::Struct(fields) };
                self.types.insert(type_name(&one), kind);
            }
        }
        for one in list("enums").iter().chain(&list("enumflags")) {
            let entries = one.as_array().into_iter().flatten();
            let named = entries.filter_map(|e| Some((e.get(0)?.as_str()?.to_owned(), e.get(1)?.as_u64()?)));
            let width = one.as_array().and_then(|all| all.last()).and_then(|last| last["enumtype"].as_str());
            let kind = Kind::Numbers(width.unwrap_or("u32").to_owned(), named.collect());
            self.types.insert(type_name(one), kind);
        }
        for (name, alias) in file["aliases"].as_object().into_iter().flatten() {
            let of = alias["type"].as_str().unwrap_or_default().to_owned();
            let length = alias["length"].as_u64().map(|n| n as usize);
            self.types.insert(format!("vl_api_{name}_t"), Kind::Alias(of, length));
        }
        for one in list("messages") {
            let Some(name) = one.get(0).and_then(Json::as_str) else { continue };
            let notes = one.as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
            let text = |key: &str| notes.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
            let message = Message {
                fields: fields(&one).into_iter().filter(|f| f.name != "_vl_msg_id").collect(),
                crc: text("crc").trim_start_matches("0x").to_owned(),
                comment: text("comment"),
                service: file.get("services").and_then(|all| service(all.get(name)?)),
            };
            self.messages.insert(name.to_owned(), message);
        }
    }

    /// The messages and their names.
    pub fn messages(&self) -> impl Iterator<Item = (&str, &Message)> {
        self.messages.iter().map(|(name, message)| (name.as_str(), message))
    }

    /// The message of a name.
    pub fn message(&self, name: &str) -> Option<&Message> {
        self.messages.get(name)
    }

    /// The type of a name.
    pub fn kind(&self, name: &str) -> Option<&Kind> {
        self.types.get(name)
    }
}

fn type_name(one: &Json) -> String {
    format!("vl_api_{}_t", one[0].as_str().unwrap_or_default())
}

/// The items of a list that are fields: lists that begin with a type and a name.
fn fields(one: &Json) -> Vec<Field> {
    one.as_array().into_iter().flatten().filter_map(field).collect()
}

fn field(item: &Json) -> Option<Field> {
    let (of, name) = (item.get(0)?.as_str()?.to_owned(), item.get(1)?.as_str()?.to_owned());
    let count = match (item.get(2).and_then(Json::as_u64), item.get(3).and_then(Json::as_str)) {
        (Some(0), Some(by)) => Count::By(by.to_owned()),
        (Some(0), None) => Count::Open,
        (Some(n), _) => Count::Fixed(n as usize),
        (None, _) => Count::One,
    };
    let notes = item.as_array()?.iter().find(|note| note.is_object());
    Some(Field { name, of, count, default: notes.and_then(|n| n.get("default")).cloned() })
}

fn service(json: &Json) -> Option<Service> {
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    let events = json["events"].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned);
    Some(Service {
        reply: text("reply")?,
        is_stream: json["stream"].as_bool().unwrap_or(false),
        details: text("stream_msg"),
        events: events.collect(),
    })
}
