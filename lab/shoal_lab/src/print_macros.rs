//! Printing that goes on when the reader has gone: `shoal-lab list figures | head` is no error, and a measurement that
//! lost its terminal still ends as it should.

/// `println!`, but what cannot be written is left.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// `print!`, likewise.
macro_rules! say_as_is {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stdout(), $($text)*);
    }};
}
