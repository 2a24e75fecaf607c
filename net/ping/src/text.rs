//! How times, losses and errors are written.

use std::fmt;
use std::time::Duration;

use shoal_icmp::Heard;
use shoal_wire::Icmp4Type;
use shoal_wire::icmp4::code;

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
pub(crate) struct Said<'a>(pub(crate) &'a Heard);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Heard { kind, code: number, .. } = self.0;
        f.write_str(match (*kind, *number) {
            (Icmp4Type::TIME_EXCEEDED, code::TTL_EXCEEDED_IN_TRANSIT) => "time to live exceeded",
            (Icmp4Type::DESTINATION_UNREACHABLE, code::NET_UNREACHABLE) => "network unreachable",
            (Icmp4Type::DESTINATION_UNREACHABLE, code::HOST_UNREACHABLE) => "host unreachable",
            (Icmp4Type::DESTINATION_UNREACHABLE, code::PROTOCOL_UNREACHABLE) => "protocol unreachable",
            (Icmp4Type::DESTINATION_UNREACHABLE, code::PORT_UNREACHABLE) => "port unreachable",
            (Icmp4Type::DESTINATION_UNREACHABLE, code::FRAGMENTATION_NEEDED) => "fragmentation needed",
            (Icmp4Type::DESTINATION_UNREACHABLE, code::ADMINISTRATIVELY_PROHIBITED) => {
                "prohibited by a filter"
            }
            (kind, number) => return write!(f, "{kind} code {number}"),
        })
    }
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
