//! Columns as VPP's formatter lays them out, so that what automation parses stays where it looks.
//!
//! Text that is longer than its column is cut; centring puts the odd blank on the left. Numbers are never cut:
//! a wrong number is worse than a crooked table. Lines end without the blanks of their last column.

use std::fmt::Display;

/// Text at the left of a column.
pub fn left(text: impl Display, width: usize) -> String {
    let text = cut(&text, width);
    format!("{text:<width$}")
}

/// Text at the right of a column.
pub fn right(text: impl Display, width: usize) -> String {
    let text = cut(&text, width);
    format!("{text:>width$}")
}

/// Text in the middle of a column.
pub fn centre(text: impl Display, width: usize) -> String {
    middle(&cut(&text, width), width)
}

/// A number in the middle of a column that grows if it must.
pub fn number(n: impl Display, width: usize) -> String {
    whole(n, width)
}

/// Text in the middle of a column that grows if it must: what is cut off would be missed.
pub fn whole(text: impl Display, width: usize) -> String {
    middle(&text.to_string(), width)
}

/// One line of cells.
pub fn line(cells: &[String]) -> String {
    let mut line = cells.concat();
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

fn cut(text: &impl Display, width: usize) -> String {
    text.to_string().chars().take(width).collect()
}

fn middle(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(text.chars().count());
    let after = blanks / 2;
    format!("{:before$}{text}{:after$}", "", "", before = blanks - after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centring_puts_the_odd_blank_on_the_left() {
        assert_eq!(centre("up", 5), "  up ");
        assert_eq!(centre("up", 4), " up ");
        assert_eq!(centre("", 2), "  ");
    }

    #[test]
    fn text_is_cut_and_numbers_are_not() {
        assert_eq!(left("GigabitEthernet", 7), "Gigabit");
        assert_eq!(right("GigabitEthernet", 7), "Gigabit");
        assert_eq!(
            centre("gso disabled on itf  -- gso packet drop", 35),
            "gso disabled on itf  -- gso packet "
        );
        assert_eq!(number(1_000_000, 6), "1000000");
    }

    #[test]
    fn a_line_ends_with_its_last_word() {
        assert_eq!(line(&[left("a", 4), centre("b", 5)]), "a     b\n");
    }
}
