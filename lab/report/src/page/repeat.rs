//! The command that repeats one plot rather than the whole campaign.

use std::collections::BTreeMap;

use shoal_lab_plan::SummaryRow;

use super::shell_word;

/// Options of a campaign that hold for each of its results, and whether they have a value.
const KEPT: [(&str, bool); 10] = [
    ("--config", true),
    ("--preset", true),
    ("--runs", true),
    ("--duration", true),
    ("--max", true),
    ("--rate", true),
    ("--frame", true),
    ("--energy", true),
    ("--transport", true),
    ("--verify", false),
];

/// Commands that repeat `rows` of the campaign that was started by `command`: one for each test, way of forwarding and
/// direction. Those of a campaign that was neither `run` nor `suite`, or that ran a profile, are its own command.
pub fn commands(command: &[String], rows: &[&SummaryRow]) -> Vec<String> {
    let words = |words: &[String]| words.iter().map(|w| shell_word(w)).collect::<Vec<_>>().join(" ");
    let kind = command.iter().position(|word| word == "run" || word == "suite");
    let Some((program, kind)) = command.first().zip(kind) else { return vec![words(command)] };
    let test = command.get(kind + 1).map(String::as_str);
    if rows.is_empty() || command.get(kind).is_some_and(|k| k == "run") && test == Some("stl") {
        return vec![words(command)];
    }
    let mut groups: BTreeMap<[&str; 3], Vec<&SummaryRow>> = BTreeMap::new();
    for row in rows {
        // The tests of a NAT are of one direction that they choose themselves.
        let is_nat = row.test.starts_with("nat-");
        let key =
            [row.test.as_str(), row.scenario.as_str(), if is_nat { "" } else { row.direction.as_str() }];
        groups.entry(key).or_default().push(row);
    }
    let one = |([test, scenario, direction], rows): (&[&str; 3], &Vec<&SummaryRow>)| {
        let mut made = vec![program.clone(), "run".to_owned(), (*test).to_owned()];
        let mut option = |name: &str, values: Vec<String>| {
            let mut all: Vec<String> = Vec::new();
            for value in values.into_iter().filter(|v| !v.is_empty()) {
                if !all.contains(&value) {
                    all.push(value);
                }
            }
            if !all.is_empty() {
                made.extend([name.to_owned(), all.join(",")]);
            }
        };
        let of = |field: fn(&SummaryRow) -> String| rows.iter().map(|row| field(row)).collect::<Vec<_>>();
        option("--dut", of(|row| row.dut.clone()));
        option("--size", of(|row| row.frame.clone()));
        option("--ip", of(|row| row.ip.clone()));
        option("--direction", vec![(*direction).to_owned()]);
        if !matches!(*scenario, "route" | "") && !test.starts_with("nat-") {
            option("--forwarding", vec![(*scenario).to_owned()]);
        }
        if rows.iter().any(|row| row.workers > 1) {
            option("--workers", of(|row| row.workers.to_string()));
        }
        for (name, prefix, suffix) in
            [("--percent", "", " %"), ("--flows", "flows=", ""), ("--routes", "routes=", "")]
        {
            let part = |row: &&SummaryRow| {
                let mut parts = row.variant.split(", ");
                parts
                    .find_map(|p| Some(p.strip_prefix(prefix)?.strip_suffix(suffix)?.to_owned()))
                    .unwrap_or_default()
            };
            // Only a number is a part of that kind: `50 %`, and not a profile's name.
            let number = |text: &String| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            option(name, rows.iter().map(part).filter(number).collect());
        }
        made.extend(kept(command));
        words(&made)
    };
    groups.iter().map(one).collect()
}

/// The words of `command` that hold for each of its results.
fn kept(command: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut words = command.iter();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or_default();
        let Some((_, has_value)) = KEPT.iter().find(|(kept, _)| *kept == name) else { continue };
        found.push(word.clone());
        if *has_value && !word.contains('=') {
            found.extend(words.next().cloned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(ToOwned::to_owned).collect()
    }

    fn row(test: &str, dut: &str, frame: &str, variant: &str) -> SummaryRow {
        SummaryRow {
            test: test.into(),
            dut: dut.into(),
            scenario: "route".into(),
            ip: "4".into(),
            frame: frame.into(),
            direction: "bi".into(),
            variant: variant.into(),
            workers: 1,
            ..SummaryRow::default()
        }
    }

    #[test]
    fn a_part_of_a_suite_has_a_command_of_its_own() {
        let suite = words(
            "shoal-lab --results there --config a.toml suite paper --preset normal --runs=5 --name of-monday --verify",
        );
        let rows = [row("throughput", "shoal", "64", ""), row("throughput", "linux-route", "64", "")];
        let all: Vec<&SummaryRow> = rows.iter().collect();
        assert_eq!(
            commands(&suite, &all),
            [
                "shoal-lab run throughput --dut shoal,linux-route --size 64 --ip 4 --direction bi --config a.toml --preset normal --runs=5 --verify"
            ]
        );
    }

    #[test]
    fn parts_of_a_variant_are_options_again() {
        let suite = words("shoal-lab suite paper");
        let rows = [
            row("latency", "shoal", "64", "10 %, flows=4000"),
            row("latency", "shoal", "64", "90 %, flows=4000"),
        ];
        let all: Vec<&SummaryRow> = rows.iter().collect();
        let [command] = commands(&suite, &all).try_into().unwrap();
        assert!(command.ends_with("--percent 10,90 --flows 4000"), "{command}");
        let mut nat = row("nat-setup-rate", "linux-nft", "64", "flows=400");
        nat.scenario = "snat".into();
        let [command] = commands(&suite, &[&nat]).try_into().unwrap();
        assert_eq!(command, "shoal-lab run nat-setup-rate --dut linux-nft --size 64 --ip 4 --flows 400");
    }

    #[test]
    fn what_was_no_run_is_repeated_whole() {
        let rows = [row("throughput", "shoal", "64", "")];
        let all: Vec<&SummaryRow> = rows.iter().collect();
        assert_eq!(commands(&words("shoal-lab"), &all), ["shoal-lab"]);
        let profile = "shoal-lab run stl thesis -t size=64";
        assert_eq!(commands(&words(profile), &all), [profile]);
        assert_eq!(commands(&[], &all), [""]);
    }
}
