//! The document around the content: head, style, script, contents list.

use std::fmt::Write as _;

use super::escape;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Sections that the list of contents knows, in the page's order.
const CONTENTS: [(&str, &str); 13] = [
    ("summary", "In short"),
    ("throughput", "Throughput"),
    ("curves", "Load and loss"),
    ("ramp", "Over time"),
    ("latency", "Delay"),
    ("scaling", "More workers"),
    ("nat", "Stateful NAT"),
    ("energy", "What it costs"),
    ("clocks", "Clocks a packet"),
    ("published", "Published"),
    ("history", "Other days"),
    ("more", "More results"),
    ("machine", "Machine"),
];

/// A whole document. Its policy forbids to load anything from anywhere.
pub fn document(title: &str, body: &str) -> String {
    let mut links = String::new();
    for (id, name) in CONTENTS {
        if body.contains(&format!("<section id=\"{id}\">")) {
            let _ = write!(links, "<a href=\"#{id}\">{name}</a>");
        }
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>{}</title><style>{STYLE}</style></head><body><a class=\"skip\" href=\"#summary\">To the content</a>\
         <nav aria-label=\"Contents\">{links}</nav><main>{body}</main><script>{SCRIPT}</script></body></html>\n",
        escape(title)
    )
}
