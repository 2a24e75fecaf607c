//! How times, losses and errors are written.

use std::fmt;
use std::time::Duration;

use shoal_icmp::Answer;
use shoal_wire::{Icmp4Type, Icmp6Type, icmp4, icmp6};

/// Milliseconds with four decimals and no zero in front of the point, as VPP writes them.
pub(crate) struct Milliseconds(pub(crate) Duration);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.4}", self.0.as_secs_f64() * 1e3);
        f.write_str(text.strip_prefix('0').unwrap_or(&text))
    }
}

/// A share in percent: whole, or with two decimals.
pub(crate) struct Percent {
    pub(crate) part: u64,
    pub(crate) whole: u64,
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.part * 10_000).checked_div(self.whole).unwrap_or(0);
        match hundredths % 100 {
            0 => write!(f, "{}", hundredths / 100),
            rest => write!(f, "{}.{rest:02}", hundredths / 100),
        }
    }
}

/// What an ICMP error says, in words.
pub(crate) struct AnswerText(pub(crate) Answer);

impl fmt::Display for AnswerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.0 {
            Answer::Reply => Some("echo reply"),
            Answer::Icmp4(kind, code) => words4(kind, code),
            Answer::Icmp6(kind, code) => words6(kind, code),
        };
        match (words, self.0) {
            (Some(words), _) => f.write_str(words),
            (None, Answer::Icmp4(kind, code)) => write!(f, "{kind} code {code}"),
            (None, Answer::Icmp6(kind, code)) => write!(f, "{kind} code {code}"),
            (None, Answer::Reply) => unreachable!("a reply has words"),
        }
    }
}

fn words4(kind: Icmp4Type, code: u8) -> Option<&'static str> {
    use icmp4::code;
    Some(match (kind, code) {
        (Icmp4Type::TIME_EXCEEDED, code::TTL_EXCEEDED_IN_TRANSIT) => "time to live exceeded",
        (Icmp4Type::DESTINATION_UNREACHABLE, code::NET_UNREACHABLE) => "network unreachable",
        (Icmp4Type::DESTINATION_UNREACHABLE, code::HOST_UNREACHABLE) => "host unreachable",
        (Icmp4Type::DESTINATION_UNREACHABLE, code::PROTOCOL_UNREACHABLE) => "protocol unreachable",
        (Icmp4Type::DESTINATION_UNREACHABLE, code::PORT_UNREACHABLE) => "port unreachable",
        (Icmp4Type::DESTINATION_UNREACHABLE, code::FRAGMENTATION_NEEDED) => "fragmentation needed",
        (Icmp4Type::DESTINATION_UNREACHABLE, code::ADMINISTRATIVELY_PROHIBITED) => "prohibited by a filter",
        _ => return None,
    })
}

fn words6(kind: Icmp6Type, code: u8) -> Option<&'static str> {
    use icmp6::code;
    Some(match (kind, code) {
        (Icmp6Type::TIME_EXCEEDED, code::HOP_LIMIT_EXCEEDED_IN_TRANSIT) => "hop limit exceeded",
        (Icmp6Type::DESTINATION_UNREACHABLE, code::NO_ROUTE_TO_DESTINATION) => "no route to destination",
        (Icmp6Type::DESTINATION_UNREACHABLE, code::ADDRESS_UNREACHABLE) => "address unreachable",
        (Icmp6Type::DESTINATION_UNREACHABLE, code::BEYOND_SCOPE_OF_SOURCE_ADDRESS) => {
            "beyond scope of source"
        }
        (Icmp6Type::DESTINATION_UNREACHABLE, code::PORT_UNREACHABLE) => "port unreachable",
        (Icmp6Type::DESTINATION_UNREACHABLE, code::ADMINISTRATIVELY_PROHIBITED) => "prohibited by a filter",
        (Icmp6Type::PACKET_TOO_BIG, _) => "packet too big",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_vpp_does() {
        let text = |ns| Milliseconds(Duration::from_nanos(ns)).to_string();
        assert_eq!(
            [text(123_400), text(0), text(1_500_000), text(10_000_000)],
            [".1234", ".0000", "1.5000", "10.0000"]
        );
    }

    #[test]
    fn percents_have_decimals_only_where_needed() {
        let text = |part, whole| Percent { part, whole }.to_string();
        assert_eq!([text(0, 5), text(5, 5), text(1, 3), text(0, 0)], ["0", "100", "33.33", "0"]);
    }
}
