//! One word to one value.

use crate::machine::{Machine, cores, show_cores};
use crate::report::{did_you_mean, quoted};
use shoal_module::config::{Kind, PageSize, Value};

/// Reads `word` as `kind`. The error is the end of a sentence that begins with the key.
pub(crate) fn read(kind: Kind, word: &str, machine: &Machine) -> Result<Value, String> {
    let wrong = || format!("needs {}, not {}", expected(kind), quoted(word));
    match kind {
        Kind::Switch => match word {
            "on" => Ok(Value::Switch(true)),
            "off" => Ok(Value::Switch(false)),
            _ => Err(wrong()),
        },
        Kind::Choice(words) if words.contains(&word) => Ok(Value::Text(word.into())),
        Kind::Choice(words) => Err(wrong() + &did_you_mean(word, words.iter().copied())),
        Kind::Word | Kind::Text if !word.is_empty() => Ok(Value::Text(word.into())),
        Kind::Path if !word.is_empty() => Ok(Value::Path(word.into())),
        Kind::U64 { min, max } => match number(word) {
            Some(n) if (min..=max).contains(&n) => Ok(Value::U64(n)),
            Some(n) => Err(format!("must be {}, not {n}", range(min, max, &|n| n.to_string()))),
            None => Err(wrong()),
        },
        Kind::Size { min, max } => match size(word) {
            Some(n) if (min..=max).contains(&n) => Ok(Value::U64(n)),
            Some(_) => Err(format!("must be {}, not {word}", range(min, max, &show_size))),
            None => Err(wrong()),
        },
        Kind::Seconds { min, max } => match word.parse::<f64>() {
            Ok(s) if (min..=max).contains(&s) => Ok(Value::Seconds(s)),
            Ok(s) if s.is_finite() => Err(format!("must be from {min} to {max} seconds, not {word}")),
            _ => Err(wrong()),
        },
        Kind::PageSize => match word {
            "default" => Ok(Value::PageSize(PageSize::Default)),
            "default-hugepage" => Ok(Value::PageSize(PageSize::DefaultHuge)),
            _ => match size(word) {
                Some(n) if n >= 4096 && n.is_power_of_two() => Ok(Value::PageSize(PageSize::Bytes(n))),
                _ => Err(wrong() + &did_you_mean(word, ["default", "default-hugepage"])),
            },
        },
        Kind::Core => match number(word) {
            Some(n) if machine.cores.iter().any(|&c| u64::from(c) == n) => Ok(Value::U64(n)),
            Some(n) => Err(absent(&n.to_string(), machine)),
            None => Err(wrong()),
        },
        Kind::CpuList => {
            let list = cores(word).ok_or_else(wrong)?;
            let gone: Vec<u32> = list.iter().copied().filter(|c| !machine.cores.contains(c)).collect();
            if gone.is_empty() { Ok(Value::CpuList(list)) } else { Err(absent(&show_cores(&gone), machine)) }
        }
        Kind::Ip => word.parse().map(Value::Ip).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

/// What a kind wants, with its article.
pub(crate) fn expected(kind: Kind) -> String {
    match kind {
        Kind::Flag => "no value".into(),
        Kind::Switch => "on or off".into(),
        Kind::Word => "a word".into(),
        Kind::Text => "a word, or words in double quotes".into(),
        Kind::Path => "a path".into(),
        Kind::U64 { .. } => "a number".into(),
        Kind::Size { .. } => "a size such as 32m or 2g".into(),
        Kind::Seconds { .. } => "a time in seconds such as 0.5".into(),
        Kind::Choice(words) => format!("one of {}", words.join(", ")),
        Kind::PageSize => "a page size such as default, default-hugepage or 2m".into(),
        Kind::Core => "a core number".into(),
        Kind::CpuList => "a list of cores such as 1,3-5".into(),
        Kind::Ip => "an IP address".into(),
        Kind::Block(_) => "a block { ... }".into(),
        Kind::Named(_) => "a name".into(),
        Kind::Anything => "anything".into(),
    }
}

fn absent(cores: &str, machine: &Machine) -> String {
    let plural = |many: bool| if many { "s" } else { "" };
    let (of, s) = (plural(cores.contains([',', '-'])), plural(machine.cores.len() > 1));
    format!("names core{of} {cores}, but this machine has core{s} {}", show_cores(&machine.cores))
}

/// A range in words.
pub(crate) fn range(min: u64, max: u64, show: &dyn Fn(u64) -> String) -> String {
    match (min, max) {
        (min, u64::MAX) => format!("at least {}", show(min)),
        (0, max) => format!("at most {}", show(max)),
        (min, max) => format!("from {} to {}", show(min), show(max)),
    }
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hex) if hex.starts_with(|c: char| c.is_ascii_hexdigit()) => u64::from_str_radix(hex, 16).ok(),
        _ if word.starts_with(|c: char| c.is_ascii_digit()) => word.parse().ok(),
        _ => None,
    }
}

/// Bytes of `32m`, `2G`, `64KB`, `4096`.
fn size(word: &str) -> Option<u64> {
    let end = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let (digits, unit) = word.split_at_checked(end)?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        "t" | "tb" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Bytes as people write them.
pub(crate) fn show_size(bytes: u64) -> String {
    let units = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
    match units.iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift)) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_the_units_of_vpp_and_refuse_what_does_not_fit() {
        for (word, bytes) in
            [("4096", 4096), ("64KB", 65_536), ("32m", 32 << 20), ("2G", 2 << 30), ("1t", 1 << 40)]
        {
            assert_eq!(size(word), Some(bytes), "{word}");
        }
        for bad in ["", "m", "2x", "-1", "1.5g", "99999999999g", "2 g"] {
            assert_eq!(size(bad), None, "{bad}");
        }
        assert_eq!(
            [show_size(2048), show_size(3 << 30), show_size(0), show_size(1000)],
            ["2k", "3g", "0", "1000"]
        );
    }
}
