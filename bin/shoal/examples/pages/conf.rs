//! The man page of the start-up file, out of its reference in Markdown.

use clap_mangen::roff::{Inline, Roff, bold, roman};

/// What stands behind the settings.
const FILES: &str = "/etc/shoal/startup.conf";

/// The page in roff. The reference has headings, paragraphs, and tables with the columns name, value and meaning.
pub fn page(reference: &str) -> String {
    let mut page = Roff::new();
    page.control("TH", ["shoal.conf", "5", "", concat!("shoal ", env!("CARGO_PKG_VERSION")), ""]);
    page.control("SH", ["NAME"]);
    page.text([roman("shoal.conf - start-up settings of shoal")]);
    page.control("SH", ["DESCRIPTION"]);
    let mut table = false;
    for line in reference.lines().filter(|line| !line.starts_with("<!--") && !line.starts_with("# ")) {
        if let Some(section) = line.strip_prefix("## ") {
            page.control("SH", [section]);
        } else if line.starts_with('|') {
            // The first two rows are the head of the table.
            let begins = !table;
            table = true;
            if begins || line.starts_with("|---") {
                continue;
            }
            let mut cells = line.trim_matches('|').splitn(3, " | ").map(str::trim);
            let mut cell = || cells.next().unwrap_or_default().replace("\\|", "|");
            let (name, value, meaning) = (cell(), cell(), cell());
            page.control("TP", []);
            let mut head = vec![bold(name.replace('`', ""))];
            if value != "-" {
                head.push(roman("  "));
                head.extend(spans(&value));
            }
            page.text(head);
            page.text(spans(&meaning));
        } else if line.is_empty() {
            table = false;
            page.control("PP", []);
        } else {
            page.text(spans(line));
        }
    }
    page.control("SH", ["FILES"]);
    page.text([roman(FILES)]);
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("shoal"), roman("(8), "), bold("shoalctl"), roman("(1)")]);
    page.render()
}

/// Text with what is code in bold.
fn spans(text: &str) -> Vec<Inline> {
    let pieces = text.split('`').enumerate().filter(|(_, piece)| !piece.is_empty());
    pieces.map(|(n, piece)| if n % 2 == 1 { bold(piece) } else { roman(piece) }).collect()
}
