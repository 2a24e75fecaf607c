//! The description of a module's messages that VPP's clients load: a JSON file.

use serde_json::{Map, Value as Json, json};

use crate::checksum::{crc_of, type_name};
use crate::definition::{Definition, Entry, Field, Header, Kind, Reply, Service, Shape, Type};
use crate::value::Message;

/// The messages of a feature, under VPP's name for them.
#[derive(Clone, Debug)]
pub struct Module {
    /// The name of the file clients load, without `.api.json`.
    pub name: &'static str,
    /// Its version, as VPP has it.
    pub version: &'static str,
    /// Its messages, in the order of their numbers.
    pub messages: Vec<Described>,
}

/// A message without its type.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// What stands in front of its fields.
    pub header: Header,
    /// Its fields.
    pub fields: &'static [Field],
    /// How it is answered, if it is a request.
    pub service: Option<Service>,
}

/// The field of a reply that says whether it was done.
const RETVAL: &[Field] =
    &[Field { name: "retval", doc: "", of: Type::Base("i32"), shape: Shape::One, default: None }];

/// The checksum of every reply that says no more than whether it was done.
pub fn plain_reply_crc() -> u32 {
    crc_of(Header::Reply.fields(), RETVAL)
}

impl Described {
    /// A message.
    pub const fn of<M: Message>() -> Self {
        Described { name: M::NAME, doc: M::DOC, header: M::HEADER, fields: M::FIELDS, service: M::SERVICE }
    }

    /// Its checksum.
    pub fn crc(&self) -> u32 {
        crc_of(self.header.fields(), self.fields)
    }

    /// Whether the message of this name with `_reply` behind it says no more than whether this was done.
    pub fn has_plain_reply(&self) -> bool {
        self.service.is_some_and(|service| service.reply == Reply::Done)
    }

    fn json(&self) -> Json {
        let number = std::iter::once(json!(["u16", "_vl_msg_id"]));
        let fields = self.header.fields().iter().chain(self.fields).map(field);
        let crc = json!({ "crc": format!("0x{:08x}", self.crc()), "options": {}, "comment": self.doc });
        std::iter::once(json!(self.name)).chain(number).chain(fields).chain([crc]).collect()
    }

    fn reply_json(&self) -> Json {
        let crc = json!({ "crc": format!("0x{:08x}", plain_reply_crc()), "options": {} });
        json!([
            format!("{}_reply", self.name),
            ["u16", "_vl_msg_id"],
            ["u32", "context"],
            ["i32", "retval"],
            crc
        ])
    }
}

impl Module {
    /// The checksum of all of it.
    fn crc(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        for message in &self.messages {
            hasher.update(message.name.as_bytes());
            hasher.update(&message.crc().to_be_bytes());
        }
        hasher.finalize()
    }

    /// What clients load.
    pub fn json(&self) -> Json {
        let (mut messages, mut services, mut types) = (Vec::new(), Map::new(), Types::default());
        for message in &self.messages {
            for field in message.fields {
                types.add(field.of);
            }
            messages.push(message.json());
            if message.has_plain_reply() {
                messages.push(message.reply_json());
            }
            if let Some(service) = message.service {
                services.insert(message.name.to_owned(), answers(message.name, service));
            }
        }
        json!({
            "module": self.name,
            "types": types.structs,
            "messages": messages,
            "unions": types.unions,
            "enums": types.enums,
            "enumflags": types.flags,
            "services": services,
            "options": { "version": self.version },
            "aliases": types.aliases,
            "vl_api_version": format!("0x{:08x}", self.crc()),
            "imports": [],
            "counters": [],
            "paths": [],
        })
    }
}

fn answers(name: &str, service: Service) -> Json {
    let mut answers = Map::new();
    let reply = match service.reply {
        Reply::None => None,
        Reply::Done => Some(format!("{name}_reply")),
        Reply::Message(reply) => Some(reply.to_owned()),
    };
    match (reply, service.details) {
        (Some(reply), details) => {
            answers.insert("reply".into(), json!(reply));
            if let Some(details) = details {
                answers.insert("stream".into(), json!(true));
                answers.insert("stream_msg".into(), json!(details));
            }
        }
        (None, Some(details)) => {
            answers.insert("reply".into(), json!(details));
            answers.insert("stream".into(), json!(true));
        }
        (None, None) => {
            answers.insert("reply".into(), json!("null"));
        }
    }
    if !service.events.is_empty() {
        answers.insert("events".into(), json!(service.events));
    }
    Json::Object(answers)
}

fn field(field: &Field) -> Json {
    let (of, name) = (type_name(field.of), field.name);
    let mut words = vec![json!(of), json!(name)];
    match field.shape {
        Shape::One => {}
        Shape::Array(n) | Shape::Text(n) => words.push(json!(n)),
        Shape::Counted(by) => words.extend([json!(0), json!(by)]),
        Shape::OpenText => words.push(json!(0)),
    }
    if let Some(default) = field.default.and_then(|text| serde_json::from_str::<Json>(text).ok()) {
        words.push(json!({ "default": default }));
    }
    Json::Array(words)
}

/// The types of a module, each once, and behind those it is made of.
#[derive(Default)]
struct Types {
    seen: Vec<&'static str>,
    structs: Vec<Json>,
    unions: Vec<Json>,
    enums: Vec<Json>,
    flags: Vec<Json>,
    aliases: Map<String, Json>,
}

impl Types {
    fn add(&mut self, of: Type) {
        let Type::User(Definition { name, kind, .. }) = of else { return };
        if self.seen.contains(name) {
            return;
        }
        self.seen.push(name);
        match kind {
            Kind::Alias(of, shape) => {
                self.add(*of);
                let mut alias = json!({ "type": type_name(*of) });
                if let (Shape::Array(n), Some(alias)) = (shape, alias.as_object_mut()) {
                    alias.insert("length".into(), json!(n));
                }
                self.aliases.insert((*name).to_owned(), alias);
            }
            Kind::Enum(of, entries) => self.enums.push(numbers(name, *of, entries)),
            Kind::Flags(of, entries) => self.flags.push(numbers(name, *of, entries)),
            Kind::Struct(fields) => {
                let all = self.fields(name, fields);
                self.structs.push(all);
            }
            Kind::Union(fields) => {
                let all = self.fields(name, fields);
                self.unions.push(all);
            }
        }
    }

    fn fields(&mut self, name: &str, fields: &[Field]) -> Json {
        for field in fields {
            self.add(field.of);
        }
        std::iter::once(json!(name)).chain(fields.iter().map(field)).collect()
    }
}

fn numbers(name: &str, of: Type, entries: &[Entry]) -> Json {
    let all = entries.iter().map(|entry| json!([entry.name, entry.value]));
    let width = json!({ "enumtype": type_name(of) });
    std::iter::once(json!(name)).chain(all).chain([width]).collect()
}
