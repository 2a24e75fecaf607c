//! The beginning: what was measured, on what, how far to trust it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use shoal_lab_plan::{TrialLine, Trust, Verdict};

use super::view::{View, circumstances, frame_label};
use super::{badge, escape};
use crate::number;
use crate::results::Results;
use crate::statistics::Statistics;

/// Title, summary, trust, what is missing.
pub fn section(view: &View<'_>, made: f64) -> String {
    let title = match view.results {
        [one] => one.record.name.clone(),
        many => format!("{} campaigns", many.len()),
    };
    let mut out = format!(
        "<header><p class=\"kicker\">Shoal lab report</p><h1>{}</h1><p class=\"meta\">{}</p>{}</header>",
        escape(&title),
        escape(&meta(view, made)),
        "<button id=\"theme\" type=\"button\" hidden>Dark or light</button>"
    );
    out.push_str("<section id=\"summary\"><h2>In short</h2>");
    for sentence in sentences(view) {
        let _ = write!(out, "<p>{sentence}</p>");
    }
    out.push_str(&trust(view));
    out.push_str(&missing(view));
    out.push_str("</section>");
    out
}

fn meta(view: &View<'_>, made: f64) -> String {
    let mut parts: Vec<String> = view
        .results
        .iter()
        .filter(|r| r.record.began > 0.0)
        .map(|r| {
            let commit = if r.record.commit.is_empty() {
                String::new()
            } else {
                format!(", revision {}", r.record.commit)
            };
            let preset = if r.record.preset.is_empty() {
                String::new()
            } else {
                format!(", preset {}", r.record.preset)
            };
            format!("measured {}{preset}{commit}", number::date_and_time(r.record.began))
        })
        .collect();
    parts.push(format!("page made {}", number::date_and_time(made)));
    parts.join(" \u{b7} ")
}

fn list(words: &BTreeSet<String>) -> String {
    let words: Vec<String> = words.iter().map(|w| format!("<strong>{}</strong>", escape(w))).collect();
    match words.as_slice() {
        [] => "nothing".into(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn sentences(view: &View<'_>) -> Vec<String> {
    let told = || view.rows().filter(|p| !p.row.trust.contains(&Trust::Refused));
    let duts: BTreeSet<String> = told().map(|p| p.row.dut.clone()).collect();
    let tests: BTreeSet<String> = told().map(|p| p.row.test.clone()).collect();
    let mut out = Vec::new();
    if duts.is_empty() {
        out.push("There is <strong>no result</strong> in what was read.".into());
    } else {
        out.push(format!("Measured: {} with {}.", list(&duts), list(&tests)));
    }
    for results in view.results {
        out.extend(machine_sentence(results));
    }
    out.extend(fastest(view));
    out
}

fn machine_sentence(results: &Results) -> Option<String> {
    let host = &results.record.host;
    if host.processor.is_empty() && host.kernel.is_empty() {
        return None;
    }
    let virtual_machine = if host.is_virtual { "a virtual machine with " } else { "" };
    let clock = host.clock_ghz.map_or_else(String::new, |c| format!(" at {} GHz", number::digits(c)));
    let kernel = host.kernel.split_whitespace().next().unwrap_or("");
    let cpu = if host.processor.is_empty() { "unknown processors" } else { &host.processor };
    Some(format!(
        "On {virtual_machine}{} \u{d7} {}{clock}, kernel {}.",
        host.processors,
        escape(cpu),
        escape(kernel)
    ))
}

/// Of the smallest frame, each wire's best: what most readers look for.
fn fastest(view: &View<'_>) -> Vec<String> {
    let groups = view.grouped(
        |r| r.metric == "throughput" && r.unit == "fps/dir" && !r.values.is_empty(),
        |r| [&r.scenario, &r.ip, &r.direction, &r.transport].map(Clone::clone).to_vec(),
    );
    let mut out = Vec::new();
    for group in groups.iter().take(6) {
        let smallest = group.iter().filter_map(|p| p.row.frame.parse::<u32>().ok()).min();
        let same = group.iter().filter(|p| smallest.is_none_or(|s| p.row.frame == s.to_string()));
        let best = same
            .filter_map(|p| Some((p, Statistics::of(&p.row.values).median?)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((placed, median)) = best else { continue };
        let row = placed.row;
        let bound = if badge::is_at_least(&row.trust) { "at least " } else { "" };
        let s = Statistics::of(&row.values);
        let spread = s.min.zip(s.max).filter(|_| s.n > 1).map_or_else(String::new, |(low, high)| {
            format!(" (from {} to {} in {} runs)", number::si(low), number::si(high), s.n)
        });
        out.push(format!(
            "Highest throughput, {}: <strong>{}</strong> with {bound}<strong>{}</strong> frames a second and direction of {}{spread}.",
            escape(&circumstances(row)),
            escape(&view.who(placed)),
            number::si(median),
            escape(&frame_label(&row.frame)),
        ));
    }
    out
}

fn trust(view: &View<'_>) -> String {
    let mut marks: BTreeSet<Trust> = view.rows().flat_map(|p| p.row.trust.iter().copied()).collect();
    if view.rows().any(|p| (1..20).contains(&p.row.values.len())) {
        marks.insert(Trust::FewRuns);
    }
    let host_is_small = view.results.iter().any(|r| (1..4).contains(&r.record.host.processors));
    let judgement = if marks.contains(&Trust::Refused) {
        "Others had the processors: what is listed as refused below was not measured. Read other figures of the same hour as \
         indications only."
    } else if marks.contains(&Trust::Invalid) || marks.contains(&Trust::Disturbed) {
        "Read these figures as indications only: some trials went wrong in ways that could not be repaired."
    } else if host_is_small || marks.contains(&Trust::SharedCore) {
        "Good for shapes, ratios and regressions on this machine. Absolute figures say little about another one: \
         tester and device have too few processors for themselves."
    } else if marks.is_empty() {
        "No reason for doubt was found."
    } else {
        "Usable with the reservations below."
    };
    let mut out = format!("<div class=\"trust\"><h3>How far to trust it</h3><p>{}</p>", escape(judgement));
    if !marks.is_empty() {
        out.push_str("<dl>");
        for mark in &marks {
            let _ =
                write!(out, "<dt>{}</dt><dd>{}</dd>", badge::badges(&[*mark]), escape(badge::meaning(*mark)));
        }
        out.push_str("</dl>");
    }
    for results in view.results {
        out.push_str(&trial_counts(results));
    }
    out.push_str("</div>");
    out
}

fn trial_counts(results: &Results) -> String {
    if results.trials.is_empty() {
        return String::new();
    }
    let mut counts = [0_usize; 5];
    for trial in &results.trials {
        let at = match trial.verdict {
            Verdict::Pass => 0,
            Verdict::Fail(_) => 1,
            Verdict::TesterLimit(_) => 2,
            Verdict::Disturbed(_) => 3,
            Verdict::Invalid(_) => 4,
        };
        if let Some(count) = counts.get_mut(at) {
            *count += 1;
        }
    }
    let [pass, fail, limit, disturbed, invalid] = counts;
    format!(
        "<p>Of {} trials {pass} passed, {fail} lost frames, {limit} were beyond the tester, {disturbed} were disturbed and \
         {invalid} invalid. All are kept.{}</p>",
        results.trials.len(),
        taken(&results.trials)
    )
}

/// What others took of the processors in the trial in which it was most.
fn taken(trials: &[TrialLine]) -> String {
    let looked = trials.iter().filter_map(|t| t.outcome.processors.as_ref());
    let Some(worst) = looked.max_by(|a, b| a.taken().total_cmp(&b.taken())) else { return String::new() };
    let share = format!("{:.1}", 100.0 * worst.taken());
    let named = if worst.taken() > 0.0 { format!(" ({})", escape(&worst.words())) } else { String::new() };
    format!(" Others took at most {share} % of a processor from tester or device{named}.")
}

fn missing(view: &View<'_>) -> String {
    let mut items = String::new();
    for results in view.results {
        for device in &results.record.devices {
            if let Some(why) = &device.skipped {
                let _ = write!(
                    items,
                    "<li><strong>{}</strong>: skipped, {}</li>",
                    escape(&device.name),
                    escape(why)
                );
            }
        }
        for row in results.rows.iter().filter(|r| r.trust.contains(&Trust::Refused)) {
            let (what, why) = (format!("{} with {}", row.dut, row.test), escape(&row.note));
            let how = escape(&circumstances(row));
            let _ = write!(items, "<li><strong>{}</strong>, {how}: {why}</li>", escape(&what));
        }
        for remark in results.warnings.iter().chain(&results.record.notes) {
            let _ = write!(items, "<li>{}</li>", escape(remark));
        }
    }
    if items.is_empty() {
        String::new()
    } else {
        format!("<h3>Not measured, and remarks</h3><ul>{items}</ul>")
    }
}
