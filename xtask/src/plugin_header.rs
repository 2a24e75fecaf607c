//! `plugin-header`: the C header of the plugin ABI, made from the types of `plugin/abi`.

use crate::{Outcome, Result, files};
use cbindgen::{Builder, Config, DocumentationStyle, ItemType, Language, Style};

const SOURCE: &str = "plugin/abi/src/lib.rs";
const FILE: &str = "plugin/include/shoal_plugin.h";
const TAIL: &str = include_str!("plugin_header_tail.h");

const TYPES: [&str; 14] = [
    "Packet", "Frame", "Host", "Counter", "Node", "Feature", "Text", "Slot", "Burst", "Device", "Link",
    "Driver", "Command", "Plugin",
];

/// The header's text.
fn text() -> Result<String> {
    let mut config = Config {
        language: Language::C,
        style: Style::Tag,
        documentation_style: DocumentationStyle::C99,
        header: Some(
            "// The C ABI between Shoal and its plugins. Apache-2.0.\n// Generated from plugin/abi by `make gen`: do not edit. docs/guide/plugins.md tells how to use it."
                .into(),
        ),
        no_includes: true,
        include_guard: None,
        after_includes: Some(
            "#ifndef SHOAL_PLUGIN_H\n#define SHOAL_PLUGIN_H\n\n#include <stddef.h>\n#include <stdint.h>".into(),
        ),
        trailer: Some(TAIL.trim_end().into()),
        usize_is_size_t: true,
        ..Config::default()
    };
    config.export.item_types = vec![ItemType::Constants, ItemType::Structs];
    config.export.exclude = vec!["SYMBOL".into()];
    config.export.include = TYPES.map(str::to_owned).to_vec();
    config.export.rename =
        TYPES.into_iter().map(|t| (t.to_owned(), format!("shoal_{}", t.to_lowercase()))).collect();
    let made = Builder::new().with_config(config).with_src(files::root().join(SOURCE)).generate()?;
    let mut bytes = Vec::new();
    made.write(&mut bytes);
    Ok(String::from_utf8(bytes)?)
}

/// Prints the header.
pub fn print() -> Result<()> {
    print!("{}", text()?);
    Ok(())
}

/// Compares it with the file.
pub fn check() -> Result<Outcome> {
    let same = files::read(FILE).is_some_and(|file| text().is_ok_and(|text| text == file));
    let stale = format!("{FILE}: is not what {SOURCE} says\n  hint: make gen, and read ABI changes twice");
    let violations = if same { Vec::new() } else { vec![stale] };
    Ok(Outcome { violations, summary: format!("{FILE} is up to date") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_what_the_types_say() {
        assert_eq!(check().unwrap().violations, Vec::<String>::new());
    }
}
