//! `shoal tune`: named subsets of what the doctor finds, applied and undone.
//!
//! What was there before is on disk before anything is changed ([`record`]); a step that fails takes back the steps
//! before it ([`apply`]); undoing restores what was recorded and leaves alone what somebody else has changed since.
//! All of it is gone with the next boot, but for the files that `--persist` writes ([`keep`]).

mod apply;
mod keep;
mod record;
mod tunable_setting;
mod undo;

pub(crate) use apply::{Applied, ApplyOptions, apply};
pub(crate) use undo::{Undone, undo};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::machine::{self, Iommu, Machine, Module};
use crate::root::Root;
use record::Record;
use tunable_setting::TunableSetting;

/// Pages of 2 MB the router makes use of: 16,384 buffers of 2,368 bytes to begin with, three times as many to grow.
pub(crate) const PAGES: u64 = 74;
/// One of them.
const PAGE: u64 = 2 << 20;

/// A subset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Name {
    Hugepages,
    Thp,
    Governor,
    BusyPoll,
    Vfio,
    VfioNoiommu,
    VhostNet,
}

impl Name {
    pub const ALL: [Name; 7] = [
        Name::Hugepages,
        Name::Thp,
        Name::Governor,
        Name::BusyPoll,
        Name::Vfio,
        Name::VfioNoiommu,
        Name::VhostNet,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Name::Hugepages => "hugepages",
            Name::Thp => "thp",
            Name::Governor => "governor",
            Name::BusyPoll => "busy-poll",
            Name::Vfio => "vfio",
            Name::VfioNoiommu => "vfio-noiommu",
            Name::VhostNet => "vhost-net",
        }
    }

    /// Reads a subset's name; the error names the nearest.
    pub fn read(word: &str) -> Result<Self, TuneError> {
        Self::ALL.into_iter().find(|name| name.word() == word).ok_or_else(|| {
            let near = Self::ALL.into_iter().find(|n| n.word().starts_with(word.get(..3).unwrap_or("?")));
            let near = near.map(|n| format!("; did you mean '{}'?", n.word())).unwrap_or_default();
            let all = Self::ALL.map(Name::word).join(", ");
            TuneError::Unknown(crate::root::plain(word.as_bytes()), format!("{all}{near}"))
        })
    }

    /// What to know before; printed when it is applied.
    pub fn warning(self) -> Option<&'static str> {
        match self {
            Name::VfioNoiommu => Some(
                "without an IOMMU a device taken this way can write all memory, and the kernel is marked tainted",
            ),
            Name::BusyPoll => Some("the kernel's own traffic on these ports waits up to 0.2 ms longer"),
            Name::Governor => Some("takes more power, idle too"),
            _ => None,
        }
    }
}

/// Where a subset stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub(crate) enum State {
    /// We applied it, and it is in force.
    Applied { what: String },
    /// So already, not by us.
    Fine { what: String },
    /// It can be applied.
    Available { what: String },
    /// We applied it, and somebody has changed it since.
    Changed { what: String },
    /// It cannot be applied here.
    Impossible { what: String },
}

/// Why nothing was done. Where something was, the text says that it was taken back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TuneError {
    #[error("'{0}' is no subset, which are {1}")]
    Unknown(String, String),
    #[error("{subset} cannot be applied: {why}")]
    Impossible { subset: &'static str, why: String },
    #[error("{path}: {why}{hint}")]
    File { path: String, why: String, hint: &'static str },
    #[error("{path} is no record of ours ({why}): nothing was changed; look at it, and move it away")]
    Record { path: String, why: String },
    #[error("another `shoal tune` is at work")]
    Busy,
    #[error("modprobe {0}")]
    Modprobe(String),
    #[error("{0} cannot be kept over a boot; hugepages, vfio and vhost-net can: leave --persist away")]
    NotKept(&'static str),
    #[error("{path} is not ours: move it away, or leave --persist away")]
    Foreign { path: String },
    #[error("{error}; {}", if untaken.is_empty() { "what was changed before was taken back".to_owned() }
        else { format!("could not be taken back: {}", untaken.join(", ")) })]
    RolledBack { error: Box<TuneError>, untaken: Vec<String> },
    #[error("'{0}' was not applied by shoal tune: nothing to undo")]
    NotApplied(&'static str),
}

impl TuneError {
    fn file(path: PathBuf, error: &std::io::Error) -> Self {
        let denied = matches!(error.kind(), std::io::ErrorKind::PermissionDenied);
        let hint = if denied { "; this needs root: sudo shoal tune ..." } else { "" };
        Self::File {
            path: crate::root::plain(path.as_os_str().as_encoded_bytes()),
            why: error.to_string(),
            hint,
        }
    }
}

/// What the subsets are planned on.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub root: &'a Root,
    pub machine: &'a Machine,
    /// Ports with a device that are not left alone.
    pub free: &'a [String],
}

/// The steps of a subset.
#[derive(Debug, Default)]
struct Plan {
    steps: Vec<(TunableSetting, String)>,
    /// What it is, or would be.
    what: String,
}

impl Plan {
    fn fine(what: impl Into<String>) -> Self {
        Self { steps: Vec::new(), what: what.into() }
    }
}

/// A plan without steps is one that is in force already; the error says why there can be none.
fn plan(cx: Context<'_>, name: Name) -> Result<Plan, String> {
    match name {
        Name::Hugepages => hugepages(cx),
        Name::Thp => match cx.machine.memory.transparent.as_deref() {
            None => Err("this kernel has no transparent huge pages".into()),
            Some("never") => Ok(Plan {
                steps: vec![(TunableSetting::TransparentPages, "madvise".into())],
                what: "transparent huge pages for who asks: never -> madvise".into(),
            }),
            Some(mode) => Ok(Plan::fine(format!("transparent huge pages: {mode}"))),
        },
        Name::Governor => governor(cx),
        Name::BusyPoll => busy_poll(cx),
        Name::Vfio => match cx.machine.iommu {
            Iommu::On => module(cx, "vfio-pci"),
            _ => Err("vfio-pci needs the IOMMU, which is not on here; without it: vfio-noiommu".into()),
        },
        Name::VfioNoiommu => noiommu(cx),
        Name::VhostNet => module(cx, "vhost-net"),
    }
}

fn hugepages(cx: Context<'_>) -> Result<Plan, String> {
    let huge = cx.machine.memory.huge_2m.ok_or("this kernel has no pages of 2 MB")?;
    if huge.free >= PAGES {
        return Ok(Plan::fine(format!("{} pages of 2 MB are free", huge.free)));
    }
    let memory = &cx.machine.memory;
    let available = memory.available.ok_or("/proc/meminfo does not tell what memory is free")?;
    let quarter = memory.limit.map_or(available, |limit| limit.min(available)) / 4 / PAGE;
    let (wanted, add) = (PAGES - huge.free, (PAGES - huge.free).min(quarter));
    if add == 0 {
        return Err("a quarter of the free memory is less than one page of 2 MB".into());
    }
    let less =
        if add < wanted { format!(" (of {wanted}: a quarter of the free memory)") } else { String::new() };
    let total = huge.total.saturating_add(add);
    Ok(Plan {
        steps: vec![(TunableSetting::Hugepages, total.to_string())],
        what: format!("reserve {add} pages of 2 MB{less}: vm.nr_hugepages {} -> {total}", huge.total),
    })
}

fn governor(cx: Context<'_>) -> Result<Plan, String> {
    let mut steps = Vec::new();
    let (mut all, mut without) = (0, 0);
    for policy in machine::policies(cx.root) {
        let number = policy.file_name().and_then(|n| n.to_str()?.strip_prefix("policy")?.parse().ok());
        let Some(policy) = number else { continue };
        let knob = TunableSetting::Governor { policy };
        all += 1;
        if !knob.offers(cx.root, "performance") {
            without += 1;
        } else if knob.read(cx.root).is_ok_and(|now| now != "performance") {
            steps.push((knob, "performance".to_owned()));
        }
    }
    match (all, without) {
        (0, _) => Err("no processor here lets its frequency be governed".into()),
        (all, without) if all == without => Err("no processor here has the governor performance".into()),
        _ if steps.is_empty() => Ok(Plan::fine("performance")),
        _ => Ok(Plan { what: format!("performance on {} of {all} frequency policies", steps.len()), steps }),
    }
}

fn busy_poll(cx: Context<'_>) -> Result<Plan, String> {
    let (mut steps, mut ports) = (Vec::new(), Vec::new());
    let mut there = 0;
    for port in cx.free {
        let knobs = [
            (TunableSetting::NapiDefer { interface: port.clone() }, "2"),
            (TunableSetting::GroFlush { interface: port.clone() }, "200000"),
        ];
        for (knob, wanted) in knobs {
            let Ok(now) = knob.read(cx.root) else { continue };
            there += 1;
            if now != wanted {
                steps.push((knob, wanted.to_owned()));
                if ports.last() != Some(port) {
                    ports.push(port.clone());
                }
            }
        }
    }
    match there {
        0 => Err("no free port with a device, or a kernel before 5.11".into()),
        _ if steps.is_empty() => Ok(Plan::fine("interrupts of the free ports are deferred")),
        _ => Ok(Plan {
            steps,
            what: format!("defer the interrupts of {} to the thread that polls", ports.join(", ")),
        }),
    }
}

fn module(cx: Context<'_>, name: &'static str) -> Result<Plan, String> {
    match machine::module(cx.root, cx.machine.kernel.release.as_deref(), name) {
        Module::Loaded => Ok(Plan::fine(format!("{name} is loaded"))),
        Module::Missing => Err(format!("this kernel has no module {name}")),
        Module::Available => Ok(Plan {
            steps: vec![(TunableSetting::Module { name: name.into() }, tunable_setting::LOADED.into())],
            what: format!("modprobe {name}"),
        }),
    }
}

fn noiommu(cx: Context<'_>) -> Result<Plan, String> {
    if cx.machine.iommu == Iommu::On {
        return Err("the IOMMU is on: vfio does without the risk".into());
    }
    let module = |name: &str| machine::module(cx.root, cx.machine.kernel.release.as_deref(), name);
    let mut steps = Vec::new();
    for (name, needed) in [("vfio", true), ("vfio-pci", false)] {
        match module(name) {
            Module::Missing => return Err(format!("this kernel has no module {name}")),
            Module::Available => {
                steps
                    .push((TunableSetting::Module { name: name.into() }, tunable_setting::LOADED.to_owned()));
            }
            Module::Loaded => {}
        }
        if needed && TunableSetting::Noiommu.read(cx.root).as_deref() != Ok("Y") {
            steps.push((TunableSetting::Noiommu, "Y".to_owned()));
        }
    }
    let what = if steps.is_empty() {
        "vfio-pci without an IOMMU"
    } else {
        "load vfio-pci for use without an IOMMU (unsafe)"
    };
    Ok(Plan { steps, what: what.into() })
}

/// Where a subset stands; a record that cannot be read counts as none.
pub(crate) fn state_of(root: &Root, machine: &Machine, name: Name) -> State {
    let record = Record::load(root).unwrap_or_default();
    state(Context { root, machine, free: &[] }, &record, name)
}

/// Where all subsets stand.
pub(crate) fn states(cx: Context<'_>) -> Result<Vec<(Name, State)>, TuneError> {
    let record = Record::load(cx.root)?;
    Ok(Name::ALL.map(|name| (name, state(cx, &record, name))).to_vec())
}

fn state(cx: Context<'_>, record: &Record, name: Name) -> State {
    let mut ours = record.of(name).peekable();
    if ours.peek().is_some() {
        let mut text = Vec::new();
        let mut changed = false;
        for entry in ours {
            let now = entry.knob.read(cx.root).unwrap_or_else(|_| "unreadable".into());
            changed |= !entry.is_ours(&now);
            text.push(format!("{} {} -> {now}", entry.knob, entry.before));
        }
        let more = text.len().saturating_sub(3);
        text.truncate(3);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let what = format!("{}{more}", text.join(", "));
        return if changed { State::Changed { what } } else { State::Applied { what } };
    }
    match plan(cx, name) {
        Err(what) => State::Impossible { what },
        Ok(plan) if plan.steps.is_empty() => State::Fine { what: plan.what },
        Ok(plan) => State::Available { what: plan.what },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_subsets_are_those_that_completions_offer() {
        assert_eq!(Name::ALL.map(Name::word), crate::SUBSETS);
        for name in Name::ALL {
            assert_eq!(serde_json::to_value(name).unwrap(), name.word());
            assert!(crate::TUNE_USAGE.contains(name.word()));
        }
    }
}
