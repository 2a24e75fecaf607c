//! The exit code of `ping`: as ping's, 1 when nothing came back.

use crate::client::Interim;

/// What `ping` printed so far.
pub struct PingOutput {
    is_ping: bool,
    text: String,
}

impl PingOutput {
    /// Listens if these words are a ping.
    pub fn of(words: &[String]) -> Self {
        let first = words.first().and_then(|words| words.split_whitespace().next());
        PingOutput {
            is_ping: first.is_some_and(|word| word.len() > 1 && "ping".starts_with(word)),
            text: String::new(),
        }
    }

    /// Takes what is printed; only the end counts.
    pub fn hear(&mut self, said: Interim<'_>) {
        let (Interim::Said(text) | Interim::Piece(text)) = said;
        if !self.is_ping {
            return;
        }
        self.text.push_str(text);
        let cut = self.text.len().saturating_sub(200);
        self.text.drain(..self.text.floor_char_boundary(cut));
    }

    /// Whether packets were sent and none came back.
    pub fn lost_all(&self) -> bool {
        self.is_ping && self.text.contains(" 100% packet loss")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_without_an_answer_has_failed() {
        let lost = |command: &str, said: &[&str]| {
            let mut heard = PingOutput::of(&[command.to_owned()]);
            for text in said {
                heard.hear(Interim::Said(text));
            }
            heard.lost_all()
        };
        let all = ["\nStatistics: 3 sent, 0 rec", "eived, 100% packet loss\n"];
        assert!(lost("ping 10.0.0.2", &all) && lost("pi 10.0.0.2", &all));
        assert!(!lost("ping 10.0.0.2", &["\nStatistics: 3 sent, 2 received, 33% packet loss\n"]));
        assert!(!lost("show version", &all));
    }
}
