//! Messages of the binary API in tests: that they are VPP's, and that no bytes do harm.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde_json::Value as Json;
use shoal_message::{Input, Module};
use shoal_module::api::handler::Outcome;
use shoal_module::api::{Answers, ApiPart, Call};

use crate::{Rng, Router};

/// Where VPP's own descriptions may lie: they are no part of this project. `SHOAL_API_JSON` names another place.
fn folder() -> PathBuf {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/api-json");
    env::var_os("SHOAL_API_JSON").map_or_else(beside, PathBuf::from)
}

/// Of the lists whose first item is a name, that of this name.
fn named<'a>(all: &'a Json, name: &str) -> Option<&'a Json> {
    all.as_array()?.iter().find(|one| one.get(0).and_then(Json::as_str) == Some(name))
}

/// What counts of a message or type: not its comment, nor which arm of a union holds.
fn plain(one: &Json) -> Vec<Json> {
    let parts = one.as_array().into_iter().flatten();
    let parts =
        parts.filter(|part| !part.is_object() || ["crc", "enumtype"].iter().any(|k| part.get(k).is_some()));
    parts.map(|part| part.get("crc").cloned().unwrap_or_else(|| without_notes(part.clone()))).collect()
}

/// A field with its default and no other notes.
fn without_notes(part: Json) -> Json {
    let Json::Array(items) = part else { return part };
    items.into_iter().filter(|item| !item.is_object() || item.get("default").is_some()).collect()
}

/// How files and messages are called that VPP does not have.
const OWN: &str = "shoal_";

/// Compares every message of these parts, and all types they are made of, with VPP's descriptions where those are there.
/// Messages that only Shoal has are in files of their own, and their names begin with [`OWN`]. Tells how many messages were compared; says SKIP and `None` where they are not.
///
/// # Panics
/// One differs, or VPP has none of its name.
pub fn same_as_vpp(parts: &[&ApiPart]) -> Option<usize> {
    let folder = folder();
    if !folder.is_dir() {
        println!("SKIP same_as_vpp: no {}", folder.display());
        return None;
    }
    let mut compared = 0;
    for part in parts {
        if part.file.starts_with(OWN) {
            let strange = part.messages.iter().find(|m| !m.described.name.starts_with(OWN));
            assert!(strange.is_none(), "{strange:?} of {} could be one of VPP's", part.file);
            continue;
        }
        let path = folder.join(part.folder.name()).join(format!("{}.api.json", part.file));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let theirs: Json = serde_json::from_str(&text).unwrap();
        let messages = part.messages.iter().map(|m| m.described).collect();
        let ours = Module { name: part.file, version: part.version, messages }.json();
        assert_eq!(ours["options"]["version"], theirs["options"]["version"], "version of {}", part.file);
        for what in ["messages", "types", "unions", "enums", "enumflags"] {
            for one in ours[what].as_array().unwrap() {
                let name = one[0].as_str().unwrap();
                let same = named(&theirs[what], name);
                let same =
                    same.unwrap_or_else(|| panic!("VPP's {} has no {name} among its {what}", part.file));
                assert_eq!(plain(one), plain(same), "{name} of {}", part.file);
                compared += usize::from(what == "messages");
            }
        }
        for (name, alias) in ours["aliases"].as_object().unwrap() {
            assert_eq!(Some(alias), theirs["aliases"].get(name), "{name} of {}", part.file);
        }
        for (name, service) in ours["services"].as_object().unwrap() {
            assert_eq!(Some(service), theirs["services"].get(name), "{name} of {}", part.file);
        }
    }
    println!("{compared} messages are VPP's");
    Some(compared)
}

/// Sends random bytes, and the first of them over and over, to every handler of these parts; the router runs on.
///
/// # Panics
/// A handler does.
pub fn random_bytes_do_no_harm(router: &mut Router, parts: &[&ApiPart], rounds: usize) {
    let mut rng = Rng::new(1);
    let call = Call::local(router.control());
    for _ in 0..rounds {
        for message in parts.iter().flat_map(|part| part.messages) {
            let Some(handler) = message.handler else { continue };
            let length = rng.below(600);
            // Small numbers are indices, lengths and flags that are there.
            let small = rng.one_in(2);
            let byte = |rng: &mut Rng| if small { rng.below(4) as u8 } else { rng.next_u64() as u8 };
            let bytes: Vec<u8> = (0..length).map(|_| byte(&mut rng)).collect();
            let mut to = Vec::new();
            let mut answers = Answers::new(&mut to, 0, 1, 2);
            if let Ok(Outcome::More(mut rows)) = handler(&call, Input::new(&bytes), &mut answers) {
                (0..50).all(|_| rows(&mut answers));
            }
        }
        router.run();
    }
}
