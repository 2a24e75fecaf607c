//! Telnet's commands (RFC 854, 1091, 1073), as far as VPP's clients use them.

const IAC: u8 = 255;
const DONT: u8 = 254;
const DO: u8 = 253;
const WONT: u8 = 252;
const WILL: u8 = 251;
const SB: u8 = 250;
const SE: u8 = 240;
const INTERRUPT: u8 = 244;
const ECHO: u8 = 1;
const SGA: u8 = 3;
const TTYPE: u8 = 24;
const NAWS: u8 = 31;
const LINEMODE: u8 = 34;

/// The options that VPP offers and asks for, in its order; vppctl waits for them.
#[rustfmt::skip]
pub const GREETING: &[u8] = &[
    IAC, WONT, LINEMODE, IAC, DONT, LINEMODE, IAC, WILL, SGA, IAC, DO, SGA, IAC, WILL, ECHO, IAC, DONT, ECHO,
    IAC, DO, TTYPE, IAC, SB, TTYPE, 1, IAC, SE, IAC, DO, NAWS, IAC, SB, NAWS, 1, IAC, SE,
];

/// What a byte of input turned out to mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A byte of text.
    Byte(u8),
    /// The client's terminal type.
    TerminalType(String),
    /// The interrupt key of a telnet client.
    Interrupt,
    /// Nothing yet, or nothing of interest.
    Nothing,
}

/// Takes telnet's commands out of the input.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    option: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Text,
    Command,
    Option,
    Sub,
    SubCommand,
}

/// Longer than any terminal's name; the rest of a longer one is dropped.
const MAX_OPTION: usize = 64;

impl Decoder {
    /// Whether the next byte of text is just that.
    pub fn is_in_text(&self) -> bool {
        matches!(self.state, State::Text)
    }

    /// Takes one byte.
    pub fn feed(&mut self, byte: u8) -> Event {
        match (self.state, byte) {
            (State::Text, IAC) => self.go(State::Command),
            (State::Text, byte) => Event::Byte(byte),
            (State::Command, WILL..=DONT) => self.go(State::Option),
            (State::Command, SB) => {
                self.option.clear();
                self.go(State::Sub)
            }
            (State::Command, INTERRUPT) => {
                self.state = State::Text;
                Event::Interrupt
            }
            (State::Command | State::Option, _) => self.go(State::Text),
            (State::Sub, IAC) => self.go(State::SubCommand),
            (State::SubCommand, SE) => {
                self.state = State::Text;
                self.sub_option()
            }
            (State::Sub | State::SubCommand, byte) => {
                if self.option.len() < MAX_OPTION {
                    self.option.push(byte);
                }
                self.go(State::Sub)
            }
        }
    }

    fn go(&mut self, state: State) -> Event {
        self.state = state;
        Event::Nothing
    }

    fn sub_option(&self) -> Event {
        match self.option.as_slice() {
            [TTYPE, 0, name @ ..] => Event::TerminalType(String::from_utf8_lossy(name).into_owned()),
            _ => Event::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(bytes: &[u8]) -> Vec<Event> {
        let mut decoder = Decoder::default();
        bytes.iter().map(|b| decoder.feed(*b)).filter(|e| *e != Event::Nothing).collect()
    }

    #[test]
    fn finds_the_terminal_type_between_text() {
        let mut input = vec![b'a', IAC, WILL, TTYPE, IAC, SB, TTYPE, 0];
        input.extend(b"vppctl");
        input.extend([IAC, SE, b'b']);
        assert_eq!(
            feed(&input),
            [Event::Byte(b'a'), Event::TerminalType("vppctl".into()), Event::Byte(b'b')]
        );
    }

    #[test]
    fn an_option_that_never_ends_is_dropped() {
        let mut input = vec![IAC, SB, TTYPE, 0];
        input.extend([b'x'; 10_000]);
        input.extend([IAC, SE]);
        assert!(matches!(&feed(&input)[..], [Event::TerminalType(name)] if name.len() < MAX_OPTION));
    }
}
