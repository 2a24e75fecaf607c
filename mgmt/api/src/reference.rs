//! The messages for readers: a page in Markdown, and the files that clients load.

use std::fmt::Write as _;
use std::path::PathBuf;

use shoal_message::{Described, Field, Header, Module, Reply, Shape, checksum};
use shoal_module::api::{ApiPart, Folder};

use crate::table::{DuplicateName, Table};

/// The files that clients load, below the directory they look in, and their text.
///
/// # Errors
/// Two messages have one name.
pub fn files(
    parts: impl IntoIterator<Item = &'static ApiPart>,
) -> Result<Vec<(PathBuf, String)>, DuplicateName> {
    let table = Table::new(parts)?;
    let file = |(folder, module): &(Folder, Module)| {
        let path = PathBuf::from(folder.name()).join(format!("{}.api.json", module.name));
        (path, format!("{:#}\n", module.json()))
    };
    Ok(table.files().iter().map(file).collect())
}

/// The reference in Markdown.
///
/// # Errors
/// Two messages have one name.
pub fn page(parts: impl IntoIterator<Item = &'static ApiPart>) -> Result<String, DuplicateName> {
    let table = Table::new(parts)?;
    let mut page = String::from(
        "# Binary API\n\nMessages of the binary API. The number behind a name is the checksum by which clients find \
         the message.\nThe JSON files that clients load are in `share/api`.\n",
    );
    for (folder, module) in table.files() {
        let _ = write!(page, "\n## {} ({}, {})\n", module.name, folder.name(), module.version);
        for message in &module.messages {
            one(&mut page, message);
        }
    }
    Ok(page)
}

fn one(page: &mut String, message: &Described) {
    let Described { name, doc, fields, header, .. } = message;
    let _ = write!(page, "\n### {name}_{:08x}\n\n{doc}\n", message.crc());
    if !fields.is_empty() {
        let _ = write!(page, "\n| field | type | |\n|---|---|---|\n");
        fields.iter().for_each(|field| row(page, field));
    }
    let Some(service) = message.service else {
        if *header == Header::Event {
            page.push_str("\nAn event.\n");
        }
        return;
    };
    let mut answers: Vec<String> = service.details.iter().map(|d| format!("any number of `{d}`")).collect();
    match service.reply {
        Reply::None => {}
        Reply::Done => answers.push(format!("`{name}_reply`")),
        Reply::Message(reply) => answers.push(format!("`{reply}`")),
    }
    answers.extend(service.events.iter().map(|e| format!("later `{e}`")));
    let answers = if answers.is_empty() { "nothing".into() } else { answers.join(", then ") };
    let _ = write!(page, "\nAnswered by {answers}.\n");
}

fn row(page: &mut String, field: &Field) {
    let of = checksum::type_name(field.of);
    let of = of.strip_prefix("vl_api_").and_then(|name| name.strip_suffix("_t")).unwrap_or(&of);
    let of = match field.shape {
        Shape::One => of.to_owned(),
        Shape::Array(n) | Shape::Text(n) => format!("{of}[{n}]"),
        Shape::Counted(by) => format!("{of}[{by}]"),
        Shape::OpenText => format!("{of}[]"),
    };
    let mut doc = field.doc.to_owned();
    if let Some(default) = field.default {
        let _ = write!(doc, "{}default {}", if doc.is_empty() { "" } else { " " }, default.trim_matches('"'));
    }
    let _ = writeln!(page, "| `{}` | {of} | {doc} |", field.name);
}
