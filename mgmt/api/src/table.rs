//! All messages of this router and their numbers.

use std::collections::BTreeMap;

use shoal_message::{Described, Header, Module as File, Reply, plain_reply_crc};
use shoal_module::api::handler::Handler;
use shoal_module::api::{ApiMessage, ApiPart, Folder};

use crate::memclnt;

/// A message under its number.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// By what clients find it: its name and checksum.
    pub key: String,
    /// What is done when one comes.
    pub handler: Option<Handler>,
    /// Whether the index of the client stands in it.
    pub is_request: bool,
    /// The number of its last or only answer; 0 for none.
    pub reply: u16,
    /// The number of its other answers; 0 for none.
    pub details: u16,
}

/// The messages of a router, by their numbers. The first 28 are the same everywhere.
#[derive(Debug)]
pub struct Table {
    entries: Vec<Entry>,
    files: Vec<(Folder, File)>,
}

/// Two messages have one name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the message {0} is declared twice")]
pub struct DuplicateName(String);

impl Table {
    /// The messages of these parts behind those of the server itself.
    ///
    /// # Errors
    /// Two have one name.
    pub fn new(parts: impl IntoIterator<Item = &'static ApiPart>) -> Result<Self, DuplicateName> {
        let mut files: BTreeMap<(Folder, &'static str), (&'static str, Vec<Described>)> = BTreeMap::new();
        let mut all = vec![&memclnt::API];
        all.extend(parts);
        let mut entries: Vec<(String, Option<&ApiMessage>)> = Vec::new();
        for part in all {
            let file = files.entry((part.folder, part.file)).or_insert((part.version, Vec::new()));
            for message in part.messages {
                let Described { name, service, .. } = message.described;
                file.1.push(message.described);
                entries.push((name.to_owned(), Some(message)));
                if service.is_some_and(|service| service.reply == Reply::Done) {
                    entries.push((format!("{name}_reply"), None));
                }
            }
        }
        let mut numbers = BTreeMap::new();
        for (at, (name, ..)) in entries.iter().enumerate() {
            // 0 is no number.
            if numbers.insert(name.clone(), at as u16 + 1).is_some() {
                return Err(DuplicateName(name.clone()));
            }
        }
        let of = |name: Option<&str>| name.and_then(|n| numbers.get(n)).copied().unwrap_or(0);
        let entries = entries.iter().map(|(name, message)| {
            let described = message.map(|m| m.described);
            let service = described.and_then(|d| d.service);
            let plain = format!("{name}_reply");
            let reply = service.map(|s| match s.reply {
                Reply::None => 0,
                Reply::Done => of(Some(&plain)),
                Reply::Message(name) => of(Some(name)),
            });
            Entry {
                name: name.clone(),
                key: format!("{name}_{:08x}", described.map_or_else(plain_reply_crc, |d| d.crc())),
                handler: message.and_then(|m| m.handler),
                is_request: described.is_some_and(|d| d.header == Header::Request),
                reply: reply.unwrap_or(0),
                details: of(service.and_then(|s| s.details)),
            }
        });
        let entries = entries.collect();
        let files = files
            .into_iter()
            .map(|((folder, name), (version, messages))| (folder, File { name, version, messages }));
        Ok(Table { entries, files: files.collect() })
    }

    /// The message of a number.
    pub fn get(&self, id: u16) -> Option<&Entry> {
        self.entries.get(usize::from(id).checked_sub(1)?)
    }

    /// All messages and their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Entry)> {
        self.entries.iter().zip(1..).map(|(entry, id)| (id, entry))
    }

    /// The files that describe them.
    pub fn files(&self) -> &[(Folder, File)] {
        &self.files
    }
}
