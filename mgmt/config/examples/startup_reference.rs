//! Prints docs/reference/startup.md; `make gen` calls it.
fn main() {
    print!("{}", shoal_config::markdown(&[]));
}
